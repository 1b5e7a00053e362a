/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "outcome.h"

/* The file's name without folder and ending. */
static void part_take_name(struct host_part *p, size_t number)
{
	const char *slash = strrchr(p->input->path, '/');
	const char *name = slash ? slash + 1 : p->input->path;

	if (*p->origin.label)
		return;
	snprintf(p->origin.label, sizeof(p->origin.label), "%.*s",
		 (int)MIN(strcspn(name, "."), (size_t)HOST_LABEL_BYTES - 1), name);
	if (!*p->origin.label)
		snprintf(p->origin.label, sizeof(p->origin.label), "host%zu", number + 1);
	host_label_tidy(p->origin.label);
}

/* A later part of the same name gets its number behind it. */
static void host_part_name(struct host_part *parts, size_t number)
{
	char *label = parts[number].origin.label, name[HOST_LABEL_BYTES], end[24];
	size_t suffix = number;

	part_take_name(&parts[number], number);
	strcpy(name, label);
	for (size_t i = 0; i < number; i++)
		if (strcmp(parts[i].origin.label, label) == 0) {
			int len = snprintf(end, sizeof(end), "-%zu", ++suffix);

			strcpy(label, name);
			strcpy(label + MIN(strlen(name), (size_t)(HOST_LABEL_BYTES - 1 - len)),
			       end);
			/* Another may have this one, too. */
			i = SIZE_MAX;
		}
}

int host_parts_open(struct host_part *parts, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct host_part *p = &parts[i];
		int r = input_import(&p->input->fd, &p->beside, p->input->path, NULL, err);

		if (r == 0)
			r = host_origin_read(&p->origin, p->input->fd, err);
		if (r < 0)
			return r;
		host_part_name(parts, i);
	}
	return 0;
}

/*
 * The time of day that the common clock's time 0 is: the reference's, or else that of the machine
 * that booted first. False: unknown.
 */
static bool host_parts_find_wall(const struct host_part *parts, size_t count,
				 const struct host_part *reference, int64_t *ret)
{
	const struct host_origin *o = reference ? &reference->origin : NULL;

	for (size_t i = 0; !reference && i < count; i++)
		if (parts[i].origin.wall_known && (!o || parts[i].origin.wall < o->wall))
			o = &parts[i].origin;
	if (!o || !o->wall_known)
		return false;
	*ret = o->wall;
	if (reference)
		*ret = (int64_t)((uint64_t)o->wall -
				 (host_clock_apply(&o->clock, o->first) - o->first));
	return true;
}

static void part_place_by_wall(struct host_part *p, bool known, int64_t wall)
{
	const int64_t offset = (int64_t)((uint64_t)p->origin.wall - (uint64_t)wall);

	if (!known || !p->origin.wall_known)
		p->unplaced = "nothing ties its clock to the other machines'";
	else if (offset < 0 && p->origin.first < 0 - (uint64_t)offset)
		p->unplaced = "it was recorded before the other machines booted";
	p->origin.clock = (struct host_clock){
		.mult = UINT32_C(1) << 31, .shift = 31, .offset = offset, .by_wall = true
	};
	snprintf(p->tie, sizeof(p->tie),
		 "placed by the time of day of the machines: the error is unknown");
}

static const char *const tie_kinds[TIE_KINDS] = {
	[TIES_EXCHANGES] = "exchanges",
	[TIES_UTC] = "the machines' synchronised clocks",
	[TIES_PHC] = "the network cards' PTP clocks",
};

int host_parts_place(struct host_part *parts, size_t count, struct export_result *result)
{
	const struct host_part *reference = NULL;
	int64_t wall = 0;
	bool known;
	int r = 0;

	for (size_t i = 0; !reference && i < count; i++)
		if (parts[i].origin.tied)
			reference = &parts[i];
	known = host_parts_find_wall(parts, count, reference, &wall);
	for (size_t i = 0; i < count; i++) {
		struct host_part *p = &parts[i];
		const struct host_clock *c = &p->origin.clock;
		char drift[32];

		if (p->origin.lacks && r == 0)
			r = host_part_add_warning(result, p->origin.label, p->origin.lacks);
		if (!p->origin.tied || memcmp(p->origin.timeline, reference->origin.timeline,
					      HOST_TIMELINE_BYTES) != 0) {
			part_place_by_wall(p, known, wall);
			continue;
		}
		if (c->drift_known)
			snprintf(drift, sizeof(drift), "%+.3f ppm", c->drift / 1000);
		snprintf(p->tie, sizeof(p->tie),
			 "clock tied within %" PRIu64 ".%03" PRIu64 " us by %s, drift %s",
			 c->bound / 1000, c->bound % 1000, tie_kinds[c->by],
			 c->drift_known ? drift : "unknown");
	}
	return r;
}

int host_part_options(const struct host_part *p, struct export_options *o, struct error *err)
{
	if (p->unplaced) {
		error_set(err, -EINVAL, "%s: %s", p->origin.label, p->unplaced);
		return error_hint(err, "record them together: tracectl -H A -H B record");
	}
	o->pages_fd = p->beside.pages_fd;
	o->host = &p->origin.clock;
	/* All machines recorded from then on. Each had begun a moment earlier, alone. */
	if (p->origin.start && !p->origin.clock.by_wall) {
		o->selection.from = (struct moment){ MOMENT_AT, .ns = p->origin.start };
		o->selection.is_whole = true;
	}
	return 0;
}

int host_part_add_warning(struct export_result *to, const char *label, const char *warning)
{
	char *text, **grown;

	if (asprintf(&text, "%s: %s", label, warning) < 0)
		return -ENOMEM;
	grown = reallocarray(to->warnings, to->warning_count + 1, sizeof(*grown));
	if (!grown) {
		free(text);
		return -ENOMEM;
	}
	to->warnings = grown;
	to->warnings[to->warning_count++] = text;
	return 0;
}

int host_part_add_result(struct export_result *to, const char *label,
			 const struct export_result *part)
{
	_cleanup_buf_ struct buf loss = BUF_INIT;
	int r = 0;

	to->events += part->events;
	to->own_events += part->own_events;
	to->lost += part->lost;
	to->marks += part->marks;
	to->fallback_events += part->fallback_events;
	to->incomplete |= part->incomplete;
	to->marks_lost |= part->marks_lost;
	to->span_ns = MAX(to->span_ns, part->span_ns);
	to->event_types = MAX(to->event_types, part->event_types);
	to->export_ns += part->export_ns;
	to->cpu_ns += part->cpu_ns;
	to->peak_rss_bytes = MAX(to->peak_rss_bytes, part->peak_rss_bytes);
	for (size_t i = 0; r == 0 && i < part->warning_count; i++)
		r = host_part_add_warning(to, label, part->warnings[i]);
	outcome_put_loss(part, &loss);
	if (r == 0 && loss.len)
		r = host_part_add_warning(to, label, buf_string(&loss) ?: "events were lost");
	if (r == 0 && part->ledger_count) {
		struct ledger_row *rows = reallocarray(
			to->ledger, to->ledger_count + part->ledger_count, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		memcpy(rows + to->ledger_count, part->ledger, part->ledger_count * sizeof(*rows));
		to->ledger = rows;
		to->ledger_count += part->ledger_count;
	}
	return r;
}
