/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each capture is exported for itself, with its times moved to the clock of the machine that asked
 * for it, into a nameless file; the format then joins these parts. All that decodes runs in one
 * process, which for root is a confined one.
 */
#include "join.h"

#include <inttypes.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "confined.h"
#include "formats/formats.h"
#include "input.h"
#include "trace/host_clock.h"
#include "trace/host_numbers.h"

struct join_part {
	struct join_input *input;
	struct input_beside beside;
	struct host_origin origin;
	struct host_numbers numbers;
	int fd;		      /* the part */
	const char *unplaced; /* why it can't be in the file; NULL: it can */
	char tie[160];
};

struct join {
	const struct options *o;
	struct destination *dest;
	struct join_part parts[JOIN_MAX];
	size_t count;
};

int join_check(const struct options *o, const char *out, struct error *err)
{
	const struct export_format *format = export_format_find(o->format, out);

	if (format && format->join)
		return 0;
	error_set(err, -EINVAL, "%s can't hold several machines",
		  format ? format->extension : "this output");
	return error_hint(err, "write .json, .html, .pftrace or .txt, or convert each machine's "
			       "capture");
}

/* The file's name without folder and ending. */
static void part_take_name(struct join_part *p, size_t number)
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
static void join_name_part(struct join *j, size_t number)
{
	char *label = j->parts[number].origin.label, end[16];
	int len = snprintf(end, sizeof(end), "-%zu", number + 1);

	part_take_name(&j->parts[number], number);
	for (size_t i = 0; i < number; i++)
		if (strcmp(j->parts[i].origin.label, label) == 0) {
			strcpy(label + MIN(strlen(label), (size_t)(HOST_LABEL_BYTES - 1 - len)),
			       end);
			return;
		}
}

static int join_open_parts(struct join *j, struct error *err)
{
	for (size_t i = 0; i < j->count; i++) {
		struct join_part *p = &j->parts[i];
		int r = input_import(&p->input->fd, &p->beside, p->input->path, NULL, err);

		if (r == 0)
			r = host_origin_read(&p->origin, p->input->fd, err);
		if (r < 0)
			return r;
		join_name_part(j, i);
	}
	return 0;
}

/* The time of day that the common clock's time 0 is. False: unknown. */
static bool join_find_wall(const struct join *j, const struct join_part *reference, int64_t *ret)
{
	const struct host_origin *o = reference ? &reference->origin : NULL;

	for (size_t i = 0; !o && i < j->count; i++)
		if (j->parts[i].origin.wall_known)
			o = &j->parts[i].origin;
	if (!o || !o->wall_known)
		return false;
	*ret = o->wall;
	if (reference)
		*ret = (int64_t)((uint64_t)o->wall -
				 (host_clock_apply(&o->clock, o->first) - o->first));
	return true;
}

static void part_place_by_wall(struct join_part *p, bool known, int64_t wall)
{
	const int64_t offset = (int64_t)((uint64_t)p->origin.wall - (uint64_t)wall);

	if (!known || !p->origin.wall_known)
		p->unplaced = "nothing ties its clock to the other machines'";
	p->origin.clock = (struct host_clock){
		.mult = UINT32_C(1) << 31, .shift = 31, .offset = offset, .by_wall = true
	};
	snprintf(p->tie, sizeof(p->tie),
		 "placed by the time of day of the machines: the error is unknown");
}

/* Ties all clocks to one: that of the machine that asked for the first tied capture. */
static void join_place(struct join *j)
{
	const struct join_part *reference = NULL;
	int64_t wall = 0;
	bool known;

	for (size_t i = 0; !reference && i < j->count; i++)
		if (j->parts[i].origin.tied)
			reference = &j->parts[i];
	known = join_find_wall(j, reference, &wall);
	for (size_t i = 0; i < j->count; i++) {
		struct join_part *p = &j->parts[i];
		const struct host_clock *c = &p->origin.clock;
		char drift[32];

		if (!p->origin.tied || memcmp(p->origin.timeline, reference->origin.timeline,
					      HOST_TIMELINE_BYTES) != 0) {
			part_place_by_wall(p, known, wall);
			continue;
		}
		if (c->drift_known)
			snprintf(drift, sizeof(drift), "%+.3f ppm", c->drift / 1000);
		snprintf(p->tie, sizeof(p->tie),
			 "clock tied within %" PRIu64 ".%03" PRIu64 " us, drift %s",
			 c->bound / 1000, c->bound % 1000, c->drift_known ? drift : "unknown");
	}
}

/* Gives each machine its numbers. seen: without CPUs of which nothing was recorded. */
static int join_try_numbers(struct join *j, bool seen)
{
	struct host_numbers all[JOIN_MAX];
	int r;

	for (size_t i = 0; i < j->count; i++) {
		const struct host_origin *o = &j->parts[i].origin;

		all[i] = (struct host_numbers){ o->label, (uint32_t)i,
						seen ? o->cpus_seen : o->cpus, 0 };
		if (o->cpus_seen <= HOST_CPUS_MAX)
			continue;
		j->parts[i].unplaced = "viewers can't show so many CPUs";
		all[i].cpus = 0;
	}
	r = host_numbers_place(all, j->count);
	for (size_t i = 0; r == 0 && i < j->count; i++)
		j->parts[i].numbers = all[i];
	return r;
}

static int join_number(struct join *j, struct error *err)
{
	if (!j->dest->format->host_numbers || join_try_numbers(j, false) == 0 ||
	    join_try_numbers(j, true) == 0)
		return 0;
	error_set(err, -EINVAL,
		  "the machines have more than %u CPUs together: viewers of %s can't show them",
		  HOST_CPUS_MAX, j->dest->format->extension);
	return error_hint(err, "write .pftrace or .txt");
}

static int result_add_warning(struct export_result *to, const char *label, const char *warning)
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

static int result_add(struct export_result *to, const char *label, const struct export_result *part)
{
	int r = 0;

	to->events += part->events;
	to->own_events += part->own_events;
	to->lost += part->lost;
	to->marks += part->marks;
	to->fallback_events += part->fallback_events;
	to->incomplete |= part->incomplete;
	to->span_ns = MAX(to->span_ns, part->span_ns);
	to->event_types = MAX(to->event_types, part->event_types);
	to->export_ns += part->export_ns;
	to->cpu_ns += part->cpu_ns;
	to->peak_rss_bytes = MAX(to->peak_rss_bytes, part->peak_rss_bytes);
	for (size_t i = 0; r == 0 && i < part->warning_count; i++)
		r = result_add_warning(to, label, part->warnings[i]);
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

static int join_export(struct join *j, struct join_part *p, struct export_result *ret,
		       struct error *err)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	struct export_options options = {
		.format = j->dest->format->part,
		.raw_addresses = j->o->raw_addresses,
		.tgid = j->o->tgid,
		.perfetto = j->dest->perfetto,
		.pages_fd = p->beside.pages_fd,
		.host = &p->origin.clock,
		.numbers = j->dest->format->host_numbers ? &p->numbers : NULL,
	};
	int r;

	if (p->unplaced) {
		error_set(err, -EINVAL, "%s: %s", p->origin.label, p->unplaced);
		return error_hint(err, "record them together: tracectl -H A -H B record");
	}
	/* All machines recorded from then on. Each had begun a moment earlier, alone. */
	if (p->origin.start && !p->origin.clock.by_wall) {
		options.selection.from = (struct moment){ MOMENT_AT, .ns = p->origin.start };
		options.selection.is_whole = true;
	}
	r = export_stream(p->input->fd, p->fd, &options, &result, err);
	if (r < 0)
		return error_prefix(err, "%s", p->origin.label);
	r = result_add(ret, p->origin.label, &result);
	return r < 0 ? error_errno(err, r, "the outcome") : 0;
}

/* The common time from which on the part counts, or that of its first reading of the clock. */
static uint64_t join_part_begin(const struct join_part *p)
{
	uint64_t first = host_clock_apply(&p->origin.clock, p->origin.first);

	return p->origin.clock.by_wall ? first : MAX(first, p->origin.start);
}

/* A machine whose capture can't be read is left out, and that is reported. */
static int join_export_all(struct join *j, struct export_part *parts, size_t *ret_count,
			   struct export_result *ret, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	size_t count = 0;

	for (size_t i = 0; i < j->count; i++) {
		struct join_part *p = &j->parts[i];
		int r = join_export(j, p, ret, &why);

		if (r == -EBADMSG || r == -ENODATA || r == -EINVAL) {
			result_add_warning(ret, "left out", why.message ?: p->origin.label);
			ret->incomplete = true;
			continue;
		}
		if (r < 0)
			return error_move(err, &why);
		if (!j->o->quiet)
			cli_warn("%s: %s", p->origin.label, p->tie);
		parts[count++] = (struct export_part){
			.fd = p->fd,
			.label = p->origin.label,
			.first = join_part_begin(p),
			.tie = p->tie,
			.clock = &p->origin.clock,
			.numbers = &p->numbers,
		};
	}
	*ret_count = count;
	return count ? 0 : error_move(err, &why);
}

static int join_decode(void *userdata, struct export_result *ret, struct error *err)
{
	struct join *j = userdata;
	struct export_part parts[JOIN_MAX];
	size_t count;
	int r;

	if (confined_here())
		j->dest->file.dir_fd = close_fd(j->dest->file.dir_fd);
	r = join_open_parts(j, err);
	if (r < 0)
		return r;
	join_place(j);
	r = join_number(j, err);
	if (r == 0)
		r = join_export_all(j, parts, &count, ret, err);
	return r < 0 ? r
		     : export_join(j->dest->format, parts, count, destination_fd(j->dest), ret,
				   err);
}

static int join_prepare(struct join *j, struct join_input *inputs, size_t count, struct error *err)
{
	for (; j->count < count; j->count++) {
		struct join_part *p = &j->parts[j->count];

		*p = (struct join_part){ .input = &inputs[j->count], .fd = input_create_temp() };
		if (p->fd < 0)
			return error_errno(err, p->fd, "cannot create a temporary file in %s",
					   input_temp_place());
		if (confined_wanted())
			input_reserve_temps(&p->beside);
	}
	return 0;
}

static void join_deinit(struct join *j)
{
	for (size_t i = 0; i < j->count; i++) {
		input_beside_deinit(&j->parts[i].beside);
		close_fd(j->parts[i].fd);
	}
}

int join_check_destination(const struct destination *d, struct error *err)
{
	if (d->perfetto.compression == PERFETTO_PLAIN)
		return 0;
	error_set(err, -EINVAL, "--compress does not go with several machines");
	return error_hint(err, "name the output .pftrace.gz");
}

int join_captures(const struct options *o, struct join_input *inputs, size_t count, const char *out)
{
	_cleanup_destination_ struct destination dest = DESTINATION_INIT;
	_cleanup_(join_deinit) struct join j = { .o = o, .dest = &dest };
	_cleanup_outcome_ struct outcome outcome = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf files = BUF_INIT;
	int r;

	if (join_check(o, out, &err) < 0)
		return cli_usage(&err);
	r = destination_open(&dest, o, out);
	if (r)
		return r;
	if (join_check_destination(&dest, &err) < 0)
		return cli_usage(&err);
	if (join_prepare(&j, inputs, count, &err) < 0)
		return cli_fail(&err);
	input_confine(dest.file.dir_fd);
	r = confined_run(join_decode, &j, &outcome.result, &err);
	destination_passed(&dest);
	if (r < 0)
		return destination_fail(&dest, &err);
	if (destination_commit(&dest, &outcome, &files, &err) < 0)
		return cli_fail(&err);
	return outcome_tell(&outcome, o);
}
