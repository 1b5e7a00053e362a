/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "destination.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/io.h"
#include "export/mend.h"
#include "formats/formats.h"
#include "kernel/clocks.h"
#include "output/part.h"
#include "output/path.h"
#include "output/walk.h"

static int destination_unknown_format(const struct options *o, const char *path, struct error *err)
{
	_cleanup_buf_ struct buf known = BUF_INIT;
	const struct export_format *formats;
	size_t count;

	formats = export_formats(&count);
	for (size_t i = 0; i < count; i++)
		buf_printf(&known, "%s%s", i ? " " : "",
			   o->format ? formats[i].name : formats[i].extension);
	if (o->format)
		error_set(err, -EINVAL, "unknown format '%s'", o->format);
	else
		error_set(err, -EINVAL, "%s: cannot tell the format from its extension", path);
	return error_hint(err, o->format ? "use one of %s" : "use one of %s, or --format",
			  buf_string(&known) ?: "");
}

static int destination_fill_perfetto(struct destination *d, const struct options *o,
				     struct error *err)
{
	const struct {
		const char *key, *value;
		char **word;
	} all[] = {
		{ "generic", o->generic, &d->perfetto_words.generic },
		{ "compact-sched", o->compact_sched, &d->perfetto_words.compact_sched },
		{ "compress", o->compress, &d->perfetto_words.compress },
	};

	traced__control__perfetto__init(&d->perfetto_words);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		int r;

		if (!all[i].value)
			continue;
		*all[i].word = (char *)all[i].value;
		r = perfetto_options_set(&d->perfetto, all[i].key, all[i].value, err);
		if (r >= 0)
			r = export_format_check_perfetto(d->format, &d->perfetto, err);
		if (r < 0)
			return error_prefix(err, "--%s", all[i].key);
	}
	return 0;
}

static int destination_open_split(struct destination *d, const struct options *o, struct error *err)
{
	const struct export_rotate rotate = { .bytes = o->rotate_bytes, .ns = o->rotate_ns };
	_cleanup_buf_ struct buf last = BUF_INIT;
	int r;

	if (d->in_place)
		return error_set(err, -EINVAL, "%s: --rotate writes files", d->path);
	r = export_format_check_rotate(d->format, o->clock, &rotate, err);
	if (r < 0)
		return r;
	r = split_start(&d->split, d->path, d->format, o->keep, err);
	if (r == 0 && d->split.notes.len)
		cli_warn("%s", buf_string(&d->split.notes) ?: "");
	if (r == 0 && d->split.before && !o->quiet) {
		split_name(&d->split, d->split.before, &last);
		cli_warn("%s is there: the numbers of the files go on after it",
			 buf_string(&last) ?: d->path);
	}
	return r;
}

static int destination_open_directory(struct destination *d, struct error *err)
{
	if (strcmp(d->path, "-") != 0)
		return directory_start(&d->directory, d->path, err);
	error_set(err, -EINVAL, "a .%s is a directory and needs a name", d->format->name);
	return error_hint(err, "name it with -o DIR");
}

/* Writes to NAME.part: it can be read meanwhile, and survives if all writers are killed. */
static int destination_open_part(struct destination *d, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	_cleanup_buf_ struct buf name = BUF_INIT;
	int r, part;

	if (d->in_place)
		return output_name_open(&d->file, d->path, OUTPUT_FILE, err);
	r = place_check_owner(d->path, err);
	if (r < 0)
		return r;
	r = part_recover(d->path, d->format, &name);
	if (r > 0)
		cli_warn("%s" PART " of a killed recording is now %s", d->path,
			 buf_string(&name) ?: "");
	if (r < 0)
		return error_errno(err, r, "%s" PART, d->path);
	part = output_name_open(&d->file, d->path, OUTPUT_PART, &why);
	if (part != -EEXIST && part != -ENAMETOOLONG)
		return part < 0 ? error_move(err, &why) : part;
	r = output_name_open(&d->file, d->path, OUTPUT_FILE, err);
	if (r < 0)
		return r;
	if (part == -EEXIST)
		cli_warn("%s" PART " belongs to another recording: this one appears when it ends",
			 d->path);
	else
		cli_warn("%s" PART " is too long a name: the file appears when it ends", d->path);
	return r;
}

/* Whether the format can do what the options ask for. */
static int destination_check_options(struct destination *d, const struct options *o,
				     struct error *err)
{
	d->function_view = o->function_view;
	if (destination_fill_perfetto(d, o, err) < 0)
		return -EINVAL;
	if (export_format_check_functions(d->format, d->function_view, err) < 0)
		return error_prefix(err, "--function-view");
	if (o->json_array && export_format_check_array(d->format, err) < 0)
		return error_prefix(err, "--json-array");
	if ((o->page.events || o->page.bytes) && export_format_check_page(d->format, err) < 0)
		return error_prefix(err, "--html-max");
	if (o->merge_count && export_format_check_merges(d->format, err) < 0)
		return error_prefix(err, "--merge");
	return 0;
}

static int destination_create(struct destination *d, const struct options *o, struct error *err)
{
	int r;

	d->rotates = o->rotate_bytes || o->rotate_ns;
	if (d->rotates)
		return destination_open_split(d, o, err);
	if (d->format->directory)
		return destination_open_directory(d, err);
	r = o->stream ? destination_open_part(d, err)
		      : output_name_open(&d->file, d->path, OUTPUT_FILE, err);
	return r < 0 ? r : export_format_check_file(d->format, &d->perfetto, d->file.fd, err);
}

const char *output_ending(const struct options *o, const char *usual)
{
	const struct export_format *format = o->format ? export_format_find(o->format, NULL) : NULL;

	return format && !format->only_live ? format->extension : usual;
}

const char *output_default(const struct options *o, const char *usual, char **ret)
{
	if (asprintf(ret, OUTPUT_STEM "%s", output_ending(o, usual)) < 0)
		*ret = NULL;
	return *ret;
}

int destination_open(struct destination *ret, const struct options *o, const char *path)
{
	_cleanup_destination_ struct destination d = DESTINATION_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	enum path_kind kind;
	bool to_stdout;

	d.path = path ?: o->output ?: output_default(o, OUTPUT_ENDING, &d.own_path);
	if (!d.path) {
		error_errno(&err, -ENOMEM, "the output");
		return cli_fail(&err);
	}
	/* A link to standard output may have a known ending. */
	d.format = export_format_find(o->format, d.path);
	/* Not for files. */
	if (d.format && d.format->only_live)
		d.format = NULL;
	if (path_descriptor(d.path) == STDOUT_FILENO)
		d.path = "-";
	to_stdout = !strcmp(d.path, "-");
	kind = path_kind(d.path);
	d.in_place = kind == PATH_IN_PLACE;
	if (to_stdout && o->json) {
		error_set(&err, -EINVAL, "--json and -o - both write to standard output");
		return cli_usage(&err);
	}
	if (!d.format && !o->format && to_stdout)
		d.format = export_format_find(NULL, OUTPUT_DEFAULT);
	if (kind == PATH_DIRECTORY && !(d.format && d.format->directory)) {
		path_refuse_directory(d.path, &err);
		return cli_fail(&err);
	}
	if (!d.format) {
		destination_unknown_format(o, d.path, &err);
		return cli_usage(&err);
	}
	if (destination_check_options(&d, o, &err) < 0)
		return cli_usage(&err);
	if (o->clock && (clocks_check(o->clock, &err) < 0 ||
			 export_format_check_clock(d.format, o->clock, &err) < 0))
		return cli_fail(&err);
	if (to_stdout && isatty(STDOUT_FILENO) && !d.format->for_terminal) {
		error_set(&err, -EINVAL, "cannot write %s to a terminal", d.format->name);
		error_hint(&err, "use -o FILE or a pipe");
		return cli_usage(&err);
	}
	if (destination_create(&d, o, &err) < 0)
		return destination_framed(&d) && err.code == EINVAL ? cli_usage(&err)
								    : cli_fail(&err);
	*ret = d;
	d = DESTINATION_INIT;
	return 0;
}

void destination_deinit(struct destination *d)
{
	output_name_deinit(&d->file);
	split_deinit(&d->split);
	framed_deinit(&d->directory);
	merge_files_deinit(&d->merges);
	sequels_deinit(&d->sequels);
	free(d->own_path);
}

struct framed *destination_framed(struct destination *d)
{
	if (d->rotates)
		return &d->split.process;
	return d->format->directory ? &d->directory : NULL;
}

void destination_give_up(struct destination *d)
{
	struct framed *f = destination_framed(d);

	d->given_up = true;
	if (f)
		framed_give_up(f);
}

int destination_fd(struct destination *d)
{
	struct framed *f = destination_framed(d);

	return f ? f->fd : d->file.fd;
}

void destination_passed(struct destination *d)
{
	struct framed *f = destination_framed(d);

	if (f)
		f->fd = close_fd(f->fd);
}

void destination_put_place(const struct destination *d, struct buf *out)
{
	const char *path = d->rotates ? d->split.stem : d->path;
	char folder[PATH_MAX];

	if (d->in_place || !strcmp(d->path, "-"))
		return;
	if (path[0] != '/' && getcwd(folder, sizeof(folder)))
		buf_printf(out, "%s/", folder);
	buf_puts(out, path);
	if (d->rotates)
		buf_printf(out, ".*%s", d->split.ending);
}

bool destination_may_go_on(const struct destination *d)
{
	return d->format->one_string && !d->in_place && !d->rotates;
}

static void destination_fill_merges(struct destination *d, Traced__Control__Output *ret)
{
	struct merge_files *m = &d->merges;

	for (size_t i = 0; i < m->count; i++) {
		Traced__Control__Merge *message = &d->merge_messages[i];

		traced__control__merge__init(message);
		message->name = (char *)m->files[i].name;
		message->clock = (char *)m->clocks[i];
		d->fds[d->fd_count++] = m->files[i].fd;
		if (m->files[i].sync_name) {
			message->syncs = true;
			message->sync_name = (char *)m->files[i].sync_name;
			d->fds[d->fd_count++] = m->files[i].sync_fd;
		}
		d->merge_list[i] = message;
	}
	if (m->scratch_fd)
		d->fds[d->fd_count++] = m->scratch_fd;
	ret->merges = d->merge_list;
	ret->n_merges = m->count;
}

void destination_fill(struct destination *d, const struct options *o, Traced__Control__Output *ret)
{
	*ret = (Traced__Control__Output)TRACED__CONTROL__OUTPUT__INIT;
	ret->format = (char *)d->format->name;
	ret->raw_addresses = o->raw_addresses;
	ret->tgid = o->tgid;
	ret->perfetto = &d->perfetto_words;
	ret->function_view = (char *)function_view_name(d->function_view);
	ret->rotate_bytes = o->rotate_bytes;
	ret->rotate_ns = o->rotate_ns;
	ret->page_events = o->page.events;
	ret->page_bytes = o->page.bytes;
	ret->json_array = o->json_array;
	ret->segments = destination_may_go_on(d);
	ret->bound_max_ns = o->sync_bound_ns;
	d->fd_count = 0;
	d->fds[d->fd_count++] = destination_fd(d);
	destination_fill_merges(d, ret);
}

/*
 * "DIR/out.json.gz" as "DIR/out.pftrace"; for the rest after a partial file,
 * "DIR/out.rest.json.gz".
 */
static void destination_put_other_name(const struct destination *d, const char *path,
				       bool as_pftrace, struct buf *out)
{
	size_t len = strlen(path), ending = strlen(d->format->extension);

	if (len > ending && !strcasecmp(path + len - ending, d->format->extension))
		len -= ending;
	buf_append(out, path, len);
	if (d->streams)
		buf_puts(out, ".rest");
	buf_puts(out, as_pftrace ? ".pftrace" : path + len);
}

static bool destination_is_full(const struct error *err)
{
	return err->code == ENOSPC || err->code == EDQUOT;
}

/*
 * The daemon knows no file names: adds the name behind its hint. full: the disk of the output is
 * full.
 */
static void destination_name_file(const struct destination *d, bool full, struct error *err)
{
	bool elsewhere = full && !d->in_place;
	_cleanup_buf_ struct buf hint = BUF_INIT;
	const char *path = d->path;

	if (!err->hint || !err->hint_needs_output)
		return;
	if (destination_is_full(err))
		error_prefix(err, "%s", d->file.path ?: d->path);
	buf_printf(&hint, "%s ", err->hint);
	/* The same folder is as full as before. */
	if (elsewhere) {
		buf_puts(&hint, "DIR/");
		path = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	}
	if (d->in_place)
		buf_puts(&hint, "FILE");
	else if (err->code == EOVERFLOW || d->streams)
		destination_put_other_name(d, path, err->code == EOVERFLOW, &hint);
	else
		buf_puts(&hint, path);
	if (!d->in_place && err->code != EOVERFLOW &&
	    export_format_find(NULL, d->path) != d->format)
		buf_printf(&hint, " --format %s", d->format->name);
	if (elsewhere)
		buf_puts(&hint, " (DIR on another disk)");
	if (buf_string(&hint))
		error_hint(err, "%s", hint.data);
}

/* "out.0001.pftrace to out.0004.pftrace"; empty without files. */
static void destination_put_range(const struct split *split, struct buf *out)
{
	unsigned first, last, count = 0;

	if (!split_range(split, &first, &last))
		return;
	for (unsigned n = first; n <= last; n++)
		count += split_has(split, n);
	/* Some numbers in between belong to another recording. */
	if (count < last - first + 1)
		buf_printf(out, "%u files from ", count);
	split_name(split, first, out);
	if (last > first)
		buf_puts(out, " to ");
	if (last > first)
		split_name(split, last, out);
}

/* A writer that was killed may still be in its last write. */
#define LAST_WRITE_MS 100

static bool destination_keep_file(struct destination *d)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (!d->file.base)
		return false;
	usleep(LAST_WRITE_MS * 1000);
	if (sequels_mend(&d->sequels, d->file.fd, d->file.path, d->format, &err) > 0 &&
	    output_name_commit(&d->file, &err) == 0)
		return true;
	if (!err.message)
		return false;
	if (output_name_leave(&d->file))
		error_hint(&err, "%s" PART " is kept: the next recording of that name recovers it",
			   d->path);
	cli_fail(&err);
	return false;
}

/* Prefers the file writer's error: its exit breaks the exporter's socket. */
static void destination_prefer_writers_error(struct error *own, struct error *err)
{
	if (!own->message || own->code == EPIPE)
		return;
	/* Combine both hints: where the rest is, and how to make room. */
	if (err->hint && own->hint)
		error_hint(own, "%s; %s", own->hint, err->hint);
	else if (err->hint)
		error_hint(own, "%s", err->hint);
	error_move(err, own);
}

static bool destination_has_files(const struct split *split)
{
	unsigned first, last;

	return split_range(split, &first, &last);
}

/* kept: names of the complete files; NULL: none. */
static void destination_explain_given_up(const char *kept, struct error *err)
{
	_cleanup_free_ char *why = err->message ? strdup(err->message) : NULL;

	if (kept)
		error_set(err, -ECANCELED, "%s: nothing after %s was written", why ?: "cancelled",
			  kept);
	else
		error_set(err, -ECANCELED, "%s: nothing was written", why ?: "cancelled");
}

static void destination_explain_nothing(struct error *err)
{
	char *hint = TAKE_PTR(err->hint);

	error_set(err, -err->code, "%s: nothing was written", err->message ?: "out of memory");
	err->hint = hint;
}

/* "out.json and out.0002.json" */
static void destination_put_sequels(const struct destination *d, struct buf *out)
{
	buf_puts(out, d->path);
	if (d->sequels.count)
		buf_puts(out, " and ");
	sequels_put(&d->sequels, out);
}

static void destination_tell_left(struct destination *d)
{
	const struct framed *f = destination_framed(d);

	if (f && f->left)
		cli_warn("%s: its file system does not answer: process %d, which writes there, "
			 "ends when it does",
			 d->path, (int)f->left);
}

int destination_fail(struct destination *d, struct error *err)
{
	_cleanup_error_ struct error own = ERROR_INIT;
	_cleanup_buf_ struct buf kept = BUF_INIT;
	bool any;

	if (err->code == ECANCELED)
		destination_give_up(d);
	if (destination_framed(d))
		framed_finish(destination_framed(d), &own);
	destination_tell_left(d);
	destination_name_file(d, destination_is_full(err) || destination_is_full(&own), err);
	destination_prefer_writers_error(&own, err);
	any = d->rotates ? destination_has_files(&d->split)
			 : d->streams && !d->given_up && destination_keep_file(d);
	if (d->rotates)
		destination_put_range(&d->split, &kept);
	if (err->code == ECANCELED)
		destination_explain_given_up(any ? buf_string(&kept) : NULL, err);
	else if (err->code == ECONNRESET && !any && (d->file.base || destination_framed(d)))
		destination_explain_nothing(err);
	cli_fail(err);
	if (!any)
		return CLI_FAILED;
	if (err->code == ECANCELED)
		return CLI_MISSING;
	if (!d->rotates)
		destination_put_sequels(d, &kept);
	cli_warn("%s is INCOMPLETE: it ends before the recording did",
		 buf_string(&kept) ?: d->path);
	return CLI_MISSING;
}

/* A file whose segments can't be moved stays whole. */
static void destination_move_sequels(struct destination *d, struct outcome *outcome)
{
	const struct export_result *r = &outcome->result;
	const struct segment_ends ends = { r->segment_ends, r->segment_count, 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	if (!ends.count)
		return;
	if (sequels_move(&d->sequels, d->file.fd, d->file.path, d->format, &ends, false, &err) ==
	    0) {
		outcome->sequels = &d->sequels;
		return;
	}
	outcome->unsplit = true;
	cli_fail(&err);
}

/* If the name must be new and is taken, the file is the next one of that name: "lab-2.json". */
static int destination_commit_file(struct destination *d, struct error *err)
{
	_cleanup_free_ char *stem = NULL, *ending = NULL;
	/* A commit that fails sets it. */
	const bool fresh = d->file.fresh;

	for (unsigned n = 2;; n++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		_cleanup_free_ char *path = NULL;
		int r = output_name_commit(&d->file, &why);

		if (r != -EEXIST || !fresh)
			return r < 0 ? error_move(err, &why) : 0;
		if ((!stem && path_split_ending(d->path, d->format, &stem, &ending) < 0) ||
		    asprintf(&path, "%s-%u%s", stem, n, ending) < 0)
			return error_errno(err, -ENOMEM, "%s", d->path);
		r = output_name_change(&d->file, path, err);
		if (r < 0)
			return r;
	}
}

int destination_commit(struct destination *d, struct outcome *outcome, struct buf *files,
		       struct error *err)
{
	struct framed *f = destination_framed(d);
	int r;

	if (!f)
		destination_move_sequels(d, outcome);
	r = f ? framed_finish(f, err) : destination_commit_file(d, err);
	if (r < 0)
		return r;
	outcome->path = f ? d->path : d->file.path;
	outcome->format = d->format;
	outcome->in_place = d->in_place;
	if (!d->rotates)
		return 0;
	outcome->split = &d->split;
	destination_put_range(&d->split, files);
	outcome->path = buf_string(files) ?: d->path;
	return 0;
}

int destination_finish(struct destination *d, const struct options *o,
		       const Traced__Control__Reply *reply)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_outcome_ struct outcome outcome = { 0 };
	_cleanup_buf_ struct buf files = BUF_INIT;

	if (reply->body_case != TRACED__CONTROL__REPLY__BODY_FINISHED) {
		error_set(&err, -EPROTO, "unexpected reply from traced");
		return cli_fail(&err);
	}
	if (outcome_from_finished(&outcome, reply->finished, &err) < 0)
		return cli_fail(&err);
	if (destination_commit(d, &outcome, &files, &err) < 0)
		return d->rotates ? destination_fail(d, &err) : cli_fail(&err);
	if (o->shown)
		outcome.path = o->shown;
	outcome.ended_early = d->ended_early;
	outcome.extracted = d->extracted;
	outcome.reported = d->reported;
	outcome.unmerged = d->merges.missing;
	return outcome_tell(&outcome, o);
}
