/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl convert`: runs the exporter with the caller's rights; for root, with none. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "cli.h"
#include "confined.h"
#include "destination.h"
#include "detached.h"
#include "formats/formats.h"
#include "hosts/join.h"
#include "input.h"
#include "progress.h"
#include "reports/arrow_pass.h"
#include "reports/page_tables.h"
#include "samples.h"
#include "selection.h"

static bool same_file(int in, const char *out)
{
	struct stat a, b;

	return !fstat(in, &a) && !stat(out, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void show_progress(void *userdata, double done)
{
	char text[32];

	snprintf(text, sizeof(text), "%3.0f %%", done * 100);
	progress_text(userdata, text);
}

static int convert_refuse_joined(const struct options *o, struct error *err)
{
	static const int few[] = { OPT_FORMAT,	      OPT_NET_ARROWS, OPT_OUTPUT, OPT_GENERIC,
				   OPT_COMPACT_SCHED, OPT_COMPRESS,   OPT_TGID,	  OPT_RAW_ADDRESSES,
				   OPT_QUIET,	      OPT_VERBOSE,    OPT_JSON,	  OPT_FAIL_ON_LOSS,
				   OPT_SOCKET };

	for (size_t i = 0; i < o->typed_count; i++) {
		bool taken = false;

		for (size_t k = 0; k < ARRAY_SIZE(few); k++)
			taken |= o->typed[i].id == few[k];
		if (!taken)
			return error_set(err, -EINVAL, "--%s does not go with several inputs",
					 option_specs[o->typed[i].id].name);
	}
	return 0;
}

/* OUT, or its usual place -o OUT. */
static int convert_choose_output(const struct options *o, const char **ret, struct error *err)
{
	if (o->arg_count > 2) {
		error_set(err, -EINVAL, "several inputs need -o OUT");
		return error_hint(err, "tracectl convert a.traced b.traced -o out.pftrace");
	}
	*ret = o->output ?: o->args[1];
	if (*ret)
		return 0;
	error_set(err, -EINVAL, "convert: the output file is missing");
	return error_hint(err, "tracectl convert %s out.json", o->args[0]);
}

/*
 * Ctrl-C while several files are written: the next write fails. The incomplete last file is
 * removed, since it can be made again. A second Ctrl-C kills us.
 */
static struct framed *interrupted_pipe;
static int broken_pipe = -EBADF;
static volatile sig_atomic_t interrupted;

static void convert_on_interrupt(int sig _unused_)
{
	interrupted = 1;
	framed_give_up(interrupted_pipe);
	dup2(broken_pipe, interrupted_pipe->fd);
	confined_kill();
}

static int convert_catch_interrupts(struct framed *framed, struct error *err)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = convert_on_interrupt,
					  .sa_flags = SA_RESETHAND };
	struct sigaction old;
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	close_fd(pipes[0]);
	broken_pipe = pipes[1];
	interrupted_pipe = framed;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	return 0;
}

/* Names the file and adds a hint. For several files or a directory, the writer did that. */
static void convert_explain_full(const struct destination *d, struct error *err)
{
	if (d->rotates || err->hint || (err->code != ENOSPC && err->code != EDQUOT))
		return;
	error_prefix(err, "%s", d->path);
	error_hint(err, "free some space or name an output on another disk");
}

/* Input and output of the decoding process. */
struct conversion {
	const struct options *o;
	struct destination *dest;
	const struct samples *samples;
	const struct chosen_part *part;
	struct page_tables *tables;
	struct arrow_pass *arrows;
	struct input_beside *beside;
	struct progress progress;
	int in;
};

static int convert_read_arrows(struct conversion *c, struct export_options *options,
			       struct error *err)
{
	int r;

	if (c->arrows->fd < 0)
		return 0;
	r = arrow_pass_read(c->arrows, c->in, "", options, err);
	if (r < 0)
		return r;
	options->arrows = &c->arrows->traffic.arrows[r];
	return arrow_pass_end(c->arrows, true, err);
}

static int convert_export(struct conversion *c, struct export_result *ret, struct error *err)
{
	const struct samples *samples = c->samples;
	struct destination *dest = c->dest;
	const struct options *o = c->o;
	struct export_options options = {
		.format = dest->format->name,
		.raw_addresses = o->raw_addresses,
		.page = o->page,
		.json_array = o->json_array,
		.tgid = o->tgid,
		.perfetto = dest->perfetto,
		.function_view = dest->function_view,
		.segments = destination_may_go_on(dest),
		.rotate = { .bytes = o->rotate_bytes, .ns = o->rotate_ns },
		.merges = dest->merges.files,
		.merge_count = dest->merges.count,
		.profiles = samples->profiles,
		.profile_count = samples->profile_count,
		.symbols = &samples->symbols,
		.selection = c->part->wanted,
		.bound_max_ns = o->sync_bound_ns,
		.scratch_fd = dest->merges.scratch_fd ?: samples->scratch_fd,
		.pages_fd = c->beside->pages_fd,
		.progress = c->progress.on ? show_progress : NULL,
		.userdata = &c->progress,
	};
	_cleanup_error_ struct error lacks = ERROR_INIT;
	int r = page_tables_make(c->tables, c->in, &options, &lacks);

	if (r < 0 && r != -ENODATA)
		return error_move(err, &lacks);
	r = convert_read_arrows(c, &options, err);
	if (r < 0)
		return r;
	r = export_stream(c->in, destination_fd(dest), &options, ret, err);
	/* The page is whole without the report, but that is missing. */
	if (r >= 0 && lacks.message) {
		cli_pass_on(lacks.message);
		ret->incomplete = true;
	}
	progress_clear(&c->progress);
	samples_tell(samples);
	return r;
}

/* Parses the input; for root in a process of its own. */
static int convert_decode(void *userdata, struct export_result *ret, struct error *err)
{
	struct conversion *c = userdata;
	const char *path = c->o->args[0];
	int r;

	if (confined_here())
		c->dest->file.dir_fd = close_fd(c->dest->file.dir_fd);
	r = input_import(&c->in, c->beside, path, c->o->instance, err);
	if (r < 0)
		return r;
	r = convert_export(c, ret, err);
	if (r == -EBADMSG || r == -ENODATA)
		input_explain_damage(path, err);
	return r;
}

/* Several inputs, each a machine's. */
static int convert_join(const struct options *o)
{
	struct host_input inputs[HOST_PARTS_MAX];
	_cleanup_error_ struct error err = ERROR_INIT;
	int status = CLI_FAILED;
	size_t count = 0;

	if (o->arg_count == 2 && access(o->args[1], F_OK) < 0) {
		error_set(&err, -EINVAL,
			  "two outputs are given: %s and %s; or %s is an input that does not exist",
			  o->args[1], o->output, o->args[1]);
		return cli_usage(&err);
	}
	if (o->arg_count > HOST_PARTS_MAX) {
		error_set(&err, -EINVAL, "%zu inputs are given: one file holds at most %d machines",
			  o->arg_count, HOST_PARTS_MAX);
		return cli_usage(&err);
	}
	if (convert_refuse_joined(o, &err) < 0)
		return cli_usage(&err);
	for (size_t i = 0; i < o->arg_count; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;

		inputs[count] = (struct host_input){ input_open(o->args[i], &why), o->args[i] };
		if (inputs[count].fd < 0) {
			error_add(&err, &why);
			continue;
		}
		count++;
		if (strcmp(o->output, "-") != 0 && same_file(inputs[count - 1].fd, o->output)) {
			error_set(&err, -EINVAL, "%s is an input and would be overwritten",
				  o->output);
			break;
		}
	}
	if (!err.message)
		status = join_captures(o, inputs, count, o->output);
	else
		status = err.code == EINVAL ? cli_usage(&err) : cli_fail(&err);
	for (size_t i = 0; i < count; i++)
		close_fd(inputs[i].fd);
	return status;
}

static int convert_run(const struct options *o)
{
	_cleanup_destination_ struct destination dest = DESTINATION_INIT;
	_cleanup_buf_ struct buf files = BUF_INIT;
	_cleanup_outcome_ struct outcome outcome = { 0 };
	_cleanup_samples_ struct samples samples = { 0 };
	_cleanup_chosen_part_ struct chosen_part part = CHOSEN_PART_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_input_beside_ struct input_beside beside = { 0 };
	_cleanup_page_tables_ struct page_tables tables = PAGE_TABLES_INIT;
	_cleanup_arrow_pass_ struct arrow_pass arrows = { .fd = -EBADF };
	struct conversion c = {
		o, &dest, &samples, &part, &tables, &arrows, &beside, { 0 }, -EBADF
	};
	_cleanup_close_ int in = -EBADF;
	const char *out;
	int r;

	if (o->output && o->arg_count > 1)
		return convert_join(o);
	r = convert_choose_output(o, &out, &err);
	if (r < 0)
		return cli_usage(&err);
	in = input_open(o->args[0], &err);
	if (in < 0)
		return cli_fail(&err);
	if (strcmp(out, "-") != 0 && same_file(in, out)) {
		error_set(&err, -EINVAL, "%s is the input and would be overwritten", out);
		error_hint(&err, "name another output");
		return cli_usage(&err);
	}
	if (chosen_part_open(&part, o, &err) < 0)
		return cli_usage(&err);
	if (samples_open(&samples, o, confined_opener(), &err) < 0)
		return cli_fail(&err);
	r = destination_open(&dest, o, out);
	if (r)
		return r;
	if (page_tables_open(&tables, o, dest.format, &err) < 0 ||
	    arrow_pass_open(&arrows, o, dest.format, &err) < 0)
		return cli_usage(&err);
	if (merge_files_open(&dest.merges, o, &err) < 0 ||
	    (dest.rotates && convert_catch_interrupts(&dest.split.process, &err) < 0))
		return cli_fail(&err);
	if (confined_wanted())
		input_reserve_temps(&beside);
	progress_init(&c.progress, !o->quiet, destination_fd(&dest));
	c.in = TAKE_FD(in);
	/* From here on the input is parsed. */
	input_confine(dest.file.dir_fd);
	r = confined_run(convert_decode, &c, &outcome.result, &err);
	in = c.in;
	destination_passed(&dest);
	if (r == -EPIPE && !destination_framed(&dest))
		return cli_fail(&err);
	if (r < 0 && interrupted)
		error_set(&err, -ECANCELED, "cancelled");
	if (r < 0) {
		convert_explain_full(&dest, &err);
		return destination_fail(&dest, &err);
	}
	if (destination_commit(&dest, &outcome, &files, &err) < 0)
		return dest.rotates ? destination_fail(&dest, &err) : cli_fail(&err);
	return outcome_tell(&outcome, o);
}

static const struct option_text convert_texts[] = {
	{ OPT_EVENT, "only these events: an event, a system or a glob; may be repeated" },
	{ OPT_FILTER, "only events of which this holds: 'sched_switch: next_prio < 100'" },
	{ OPT_REPORT, "also show these reports in a .html" },
	{ 0 },
};

const struct command command_convert = {
	.name = "convert",
	.synopsis = "IN OUT | IN... -o OUT",
	.summary = "convert a recording or a trace.dat into another format",
	.text = "Needs no privilege and no daemon, and works on another machine, another day. IN "
		"is\n"
		"a capture stream or a trace.dat of trace-cmd, also as .gz or .zst; IN - is\n"
		"standard input, OUT - is standard output. -v shows for each CPU what was written\n"
		"and lost, and which events had no compiled printer.",
	.texts = convert_texts,
	.options = OPTION_SET(OPTIONS_RESULT, OPTIONS_ROTATE, OPTION(SPLIT), OPTION(CPU_PROFILE),
			      OPTION(SYMBOLS), OPTIONS_SELECTION, OPTION(INSTANCE), OPTION(REPORT),
			      OPTION(NET_ARROWS)),
	.own = OPTION_SET(OPTION(CPU_PROFILE), OPTION(SYMBOLS), OPTIONS_SELECTION, OPTION(REPORT),
			  OPTION(INSTANCE), OPTION(NET_ARROWS)),
	.args_min = 1,
	.args_max = UINT_MAX,
	.complete = COMPLETE_FILE,
	.run = convert_run,
};
