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
#include "reports/arrow_pass.h"
#include "trace/host_clock.h"
#include "trace/host_numbers.h"

struct join {
	const struct options *o;
	struct destination *dest;
	struct host_part parts[HOST_PARTS_MAX];
	size_t count;
	struct arrow_pass arrows;
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

/* Gives each machine its numbers. seen: without CPUs of which nothing was recorded. */
static int join_try_numbers(struct join *j, bool seen)
{
	struct host_numbers all[HOST_PARTS_MAX];
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

static int join_export(struct join *j, struct host_part *p, struct export_result *ret,
		       struct error *err)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	struct export_options options = {
		.format = j->dest->format->part,
		.raw_addresses = j->o->raw_addresses,
		.tgid = j->o->tgid,
		.perfetto = j->dest->perfetto,
		.numbers = j->dest->format->host_numbers ? &p->numbers : NULL,
		.arrows = p->has_arrows ? &j->arrows.traffic.arrows[p->machine] : NULL,
	};
	int r = host_part_options(p, &options, err);

	if (r < 0)
		return r;
	r = export_stream(p->input->fd, p->fd, &options, &result, err);
	if (r < 0)
		return error_prefix(err, "%s", p->origin.label);
	r = host_part_add_result(ret, p->origin.label, &result);
	return r < 0 ? error_errno(err, r, "the outcome") : 0;
}

/* The common time from which on the part counts, or that of its first reading of the clock. */
static uint64_t join_part_begin(const struct host_part *p)
{
	uint64_t first = host_clock_apply(&p->origin.clock, p->origin.first);

	return p->origin.clock.by_wall ? first : MAX(first, p->origin.start);
}

/* The most by which the begins of two parts may differ: both clocks may be wrong. 0: unknown. */
static uint64_t begins_apart(const struct export_part *a, const struct export_part *b)
{
	if (a->clock->by_wall || b->clock->by_wall)
		return 0;
	return MAX(a->first, b->first) - MIN(a->first, b->first) + a->clock->bound +
	       b->clock->bound;
}

static uint64_t join_begins_apart(const struct export_part *parts, size_t count)
{
	uint64_t worst = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++) {
			uint64_t apart = begins_apart(&parts[i], &parts[k]);

			if (!apart)
				return 0;
			worst = MAX(worst, apart);
		}
	return worst;
}

/* Readers that know machines draw no arrow from one to another. */
static int join_read_arrows(struct join *j, struct error *err)
{
	for (size_t i = 0; i < j->count && j->arrows.fd >= 0; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		struct host_part *p = &j->parts[i];
		struct export_options options = { 0 };
		int r = host_part_options(p, &options, &why);

		if (r == 0)
			r = arrow_pass_read(&j->arrows, p->input->fd, p->origin.label, &options,
					    &why);
		if (r == -ENOMEM)
			return error_move(err, &why);
		/* A damaged one is reported when it is exported. */
		p->has_arrows = r >= 0;
		p->machine = r < 0 ? 0 : (uint32_t)r;
	}
	return j->arrows.fd < 0 ? 0
				: arrow_pass_end(&j->arrows, j->dest->format->host_numbers, err);
}

/* A machine whose capture can't be read is left out, and that is reported. */
static int join_export_all(struct join *j, struct export_part *parts, size_t *ret_count,
			   struct export_result *ret, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	size_t count = 0;

	for (size_t i = 0; i < j->count; i++) {
		struct host_part *p = &j->parts[i];
		int r = join_export(j, p, ret, &why);

		if (r == -EBADMSG || r == -ENODATA || r == -EINVAL) {
			host_part_add_warning(ret, "left out", why.message ?: p->origin.label);
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
	struct export_part parts[HOST_PARTS_MAX];
	size_t count;
	int r;

	if (confined_here())
		j->dest->file.dir_fd = close_fd(j->dest->file.dir_fd);
	r = host_parts_open(j->parts, j->count, err);
	if (r < 0)
		return r;
	r = host_parts_place(j->parts, j->count, ret);
	if (r < 0)
		return error_errno(err, r, "the outcome");
	r = join_number(j, err);
	if (r == 0)
		r = join_read_arrows(j, err);
	if (r == 0)
		r = join_export_all(j, parts, &count, ret, err);
	if (r == 0)
		ret->begins_apart_ns = join_begins_apart(parts, count);
	return r < 0 ? r
		     : export_join(j->dest->format, parts, count, destination_fd(j->dest), ret,
				   err);
}

static int join_prepare(struct join *j, struct host_input *inputs, size_t count, struct error *err)
{
	for (; j->count < count; j->count++) {
		struct host_part *p = &j->parts[j->count];

		*p = (struct host_part){ .input = &inputs[j->count], .fd = input_create_temp() };
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
	arrow_pass_deinit(&j->arrows);
	for (size_t i = 0; i < j->count; i++) {
		input_beside_deinit(&j->parts[i].beside);
		close_fd(j->parts[i].fd);
	}
}

static void join_tell_begins(const struct export_result *r)
{
	const uint64_t ns = r->begins_apart_ns;

	if (ns)
		cli_warn("the machines' recordings begin within %" PRIu64 ".%03" PRIu64
			 " us of one another",
			 ns / 1000, ns % 1000);
}

int join_check_destination(const struct destination *d, struct error *err)
{
	if (d->perfetto.compression == PERFETTO_PLAIN)
		return 0;
	error_set(err, -EINVAL, "--compress does not go with several machines");
	return error_hint(err, "name the output .pftrace.gz");
}

int join_captures(const struct options *o, struct host_input *inputs, size_t count, const char *out)
{
	_cleanup_destination_ struct destination dest = DESTINATION_INIT;
	_cleanup_(join_deinit) struct join j = { .o = o, .dest = &dest, .arrows.fd = -EBADF };
	_cleanup_outcome_ struct outcome outcome = { .of_hosts = true };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf files = BUF_INIT;
	int r;

	if (join_check(o, out, &err) < 0)
		return cli_usage(&err);
	r = destination_open(&dest, o, out);
	if (r)
		return r;
	if (join_check_destination(&dest, &err) < 0 ||
	    arrow_pass_open(&j.arrows, o, dest.format, &err) < 0)
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
	if (!o->quiet)
		join_tell_begins(&outcome.result);
	return outcome_tell(&outcome, o);
}
