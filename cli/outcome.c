/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "outcome.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "document.h"
#include "salvage.h"
#include "util/io.h"
#include "util/parse.h"
#include "util/visible.h"

#define JSON_CHARS_PER_EVENT 45
#define JSON_CHARS_PER_CALL 140
#define JSON_CHARS_PER_GRAPH_EVENT 62

void outcome_deinit(struct outcome *outcome)
{
	export_result_deinit(&outcome->result);
	*outcome = (struct outcome){ 0 };
}

static int copy_result(struct export_result *ret, const Traced__Control__ExportResult *m)
{
	*ret = (struct export_result){
		.events = m->events,
		.lost = m->lost,
		.bytes = m->bytes,
		.span_ns = m->span_ns,
		.own_events = m->own_events,
		.event_types = m->event_types,
		.fallback_events = m->fallback_events,
		.incomplete = m->incomplete,
		.export_ns = m->export_ns,
		.cpu_ns = m->cpu_ns,
		.peak_rss_bytes = m->peak_rss_bytes,
	};
	ret->warnings = calloc(m->n_warnings ?: 1, sizeof(*ret->warnings));
	ret->ledger = calloc(m->n_ledger ?: 1, sizeof(*ret->ledger));
	if (!ret->warnings || !ret->ledger)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_warnings; i++) {
		ret->warnings[i] = strdup(m->warnings[i]);
		if (!ret->warnings[i])
			return -ENOMEM;
		ret->warning_count++;
	}
	for (size_t i = 0; i < m->n_ledger; i++) {
		const Traced__Control__LedgerRow *row = m->ledger[i];

		ret->ledger[ret->ledger_count++] = (struct export_ledger_row){
			.cpu = row->cpu,
			.written = row->written,
			.events = row->events,
			.lost_overrun = row->lost_overrun,
			.lost_other = row->lost_other,
			.gaps = row->gaps,
			.unread = row->unread,
		};
	}
	return 0;
}

int outcome_from_finished(struct outcome *ret, const Traced__Control__Finished *finished,
			  struct error *err)
{
	_cleanup_outcome_ struct outcome outcome = { 0 };
	const Traced__Control__Session *session = finished->session;
	int r;

	if (!finished->result)
		return error_set(err, -EPROTO, "traced does not say what it wrote");
	r = copy_result(&outcome.result, finished->result);
	if (r < 0)
		return error_errno(err, r, "the outcome");
	if (session) {
		outcome.buffer_bytes = session->buffer_bytes;
		outcome.session = session;
	}
	*ret = outcome;
	outcome = (struct outcome){ 0 };
	return 0;
}

static unsigned cpus_seen(const struct export_result *r)
{
	unsigned count = 0;

	for (size_t i = 0; i < r->ledger_count; i++)
		count += r->ledger[i].events > 0;
	return count;
}

static void tell_file(const struct outcome *outcome)
{
	const struct export_result *r = &outcome->result;
	_cleanup_buf_ struct buf line = BUF_INIT;
	unsigned cpus = cpus_seen(r);

	buf_printf(&line, "%s: ", outcome->path);
	format_bytes(r->bytes, &line);
	buf_puts(&line, ", ");
	format_duration(r->span_ns, &line);
	buf_puts(&line, ", ");
	format_count(r->events, &line);
	buf_printf(&line, " event%s of %u type%s", r->events == 1 ? "" : "s", r->event_types,
		   r->event_types == 1 ? "" : "s");
	if (cpus)
		buf_printf(&line, " on %u CPU%s", cpus, cpus == 1 ? "" : "s");
	if (!r->lost)
		buf_puts(&line, ", none lost");
	cli_line(stderr, "%s", buf_string(&line) ?: outcome->path);
}

static void tell_removed(const struct split *split)
{
	unsigned removed = split_removed(split);

	if (removed)
		fprintf(stderr, "%u older file%s removed\n", removed,
			removed == 1 ? " was" : "s were");
}

static void tell_how_to_open(const struct outcome *outcome)
{
	if (outcome->in_place || !outcome->format)
		return;
	if (!strncmp(outcome->format, "json", 4))
		fprintf(stderr, "open it in https://ui.perfetto.dev or chrome://tracing\n");
	else if (!strncmp(outcome->format, "pftrace", 7))
		fprintf(stderr, "open it in https://ui.perfetto.dev\n");
	else if (!strcmp(outcome->format, "traced"))
		cli_line(stderr, "turn it into another format: tracectl convert %s out.json",
			 outcome->path);
}

static void tell_loss(const struct outcome *outcome)
{
	const struct export_result *r = &outcome->result;
	_cleanup_buf_ struct buf line = BUF_INIT;
	double share = 100.0 * (double)r->lost / (double)(r->events + r->lost);
	char text[32];

	/* A share too small for its digits is still no zero, nor one of nearly all the whole. */
	if (share < 0.1)
		snprintf(text, sizeof(text), "under 0.1");
	else
		snprintf(text, sizeof(text), "%.1f", r->events ? MIN(share, 99.9) : share);
	format_count(r->lost, &line);
	buf_printf(&line, " event%s lost (%s %%): the gaps are marked in the trace",
		   r->lost == 1 ? "" : "s", text);
	cli_warn("%s", buf_string(&line) ?: "events were lost");
	if (outcome->buffer_bytes)
		fprintf(stderr,
			"  hint: a larger buffer (-b %" PRIu64 "K) or fewer events (-e, -f) "
			"help\n",
			outcome->buffer_bytes * 4 >> 10);
}

static void tell_ledger(const struct export_result *r)
{
	fprintf(stderr, "%5s %14s %14s %12s %12s %8s %12s\n", "CPU", "written", "in the file",
		"overwritten", "lost else", "gaps", "unread");
	for (size_t i = 0; i < r->ledger_count; i++) {
		const struct export_ledger_row *row = &r->ledger[i];

		fprintf(stderr,
			"%5u %14" PRIu64 " %14" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8" PRIu64
			" %12" PRIu64 "\n",
			row->cpu, row->written, row->events, row->lost_overrun, row->lost_other,
			row->gaps, row->unread);
	}
	fprintf(stderr, "printed by libtraceevent: %" PRIu64 " event%s\n", r->fallback_events,
		r->fallback_events == 1 ? "" : "s");
	for (size_t i = 0; i < r->fallback_count; i++) {
		_cleanup_buf_ struct buf line = BUF_INIT;

		buf_printf(&line, "  %10" PRIu64 "  ", r->fallbacks[i].count);
		buf_visible(&line, r->fallbacks[i].event, VISIBLE_MAX);
		buf_puts(&line, ": ");
		buf_visible(&line, r->fallbacks[i].why ?: "", VISIBLE_MAX);
		fprintf(stderr, "%s\n", buf_string(&line) ?: "");
	}
}

static void put_files(struct document *j, const struct split *split)
{
	unsigned first, last;

	document_open(j, "files", '[');
	for (bool any = split_range(split, &first, &last); any && first <= last; first++) {
		_cleanup_buf_ struct buf name = BUF_INIT;

		split_name(split, first, &name);
		document_string(j, NULL, buf_string(&name) ?: "");
	}
	document_close(j, ']');
	document_uint(j, "files_removed", split_removed(split));
}

static void print_json(const struct outcome *outcome)
{
	const struct export_result *r = &outcome->result;
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	document_open(&j, NULL, '{');
	document_string(&j, "file", outcome->path);
	if (outcome->split)
		put_files(&j, outcome->split);
	document_string(&j, "format", outcome->format);
	document_uint(&j, "bytes", r->bytes);
	document_uint(&j, "events", r->events);
	document_uint(&j, "own_events", r->own_events);
	document_uint(&j, "event_types", r->event_types);
	document_uint(&j, "lost", r->lost);
	document_bool(&j, "incomplete", r->incomplete);
	document_uint(&j, "span_ns", r->span_ns);
	document_uint(&j, "fallback_events", r->fallback_events);
	document_uint(&j, "export_ns", r->export_ns);
	document_uint(&j, "export_cpu_ns", r->cpu_ns);
	document_uint(&j, "export_peak_rss_bytes", r->peak_rss_bytes);
	document_open(&j, "warnings", '[');
	for (size_t i = 0; i < r->warning_count; i++)
		document_string(&j, NULL, r->warnings[i]);
	document_close(&j, ']');
	document_open(&j, "ledger", '[');
	for (size_t i = 0; i < r->ledger_count; i++) {
		document_open(&j, NULL, '{');
		document_uint(&j, "cpu", r->ledger[i].cpu);
		document_uint(&j, "written", r->ledger[i].written);
		document_uint(&j, "events", r->ledger[i].events);
		document_uint(&j, "lost_overrun", r->ledger[i].lost_overrun);
		document_uint(&j, "lost_other", r->ledger[i].lost_other);
		document_uint(&j, "gaps", r->ledger[i].gaps);
		document_uint(&j, "unread", r->ledger[i].unread);
		document_close(&j, '}');
	}
	document_close(&j, ']');
	document_close(&j, '}');
	document_print(&j);
}

static bool among(const char *text, char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(list[i], text))
			return true;
	}
	return false;
}

/* The exporter's, and those of the session that nobody has said yet. */
static void tell_warnings(const struct outcome *outcome)
{
	const Traced__Control__Session *s = outcome->session, *told = outcome->told;
	const struct export_result *r = &outcome->result;

	for (size_t i = 0; i < r->warning_count; i++) {
		/* That one is said louder. */
		if (!strcmp(r->warnings[i], EXPORT_NOTHING))
			continue;
		if (!told || !among(r->warnings[i], told->warnings, told->n_warnings))
			cli_pass_on(r->warnings[i]);
	}
	for (size_t i = 0; s && i < s->n_warnings; i++) {
		if (!among(s->warnings[i], r->warnings, r->warning_count) &&
		    !(told && among(s->warnings[i], told->warnings, told->n_warnings)))
			cli_pass_on(s->warnings[i]);
	}
}

int outcome_tell(const struct outcome *outcome, const struct options *o)
{
	const struct export_result *r = &outcome->result;
	bool nothing = r->events <= r->own_events;
	bool failed = outcome->session && *outcome->session->error;
	bool missing =
		r->incomplete || outcome->ended_early || outcome->unmerged || failed || nothing;

	if (o->json)
		print_json(outcome);
	if (!o->quiet && !o->json && !nothing)
		tell_file(outcome);
	if (!o->quiet && !o->json && outcome->split)
		tell_removed(outcome->split);
	tell_warnings(outcome);
	if (failed)
		cli_pass_on(outcome->session->error);
	if (r->incomplete || outcome->ended_early)
		cli_warn("%s is INCOMPLETE: it ends before the recording did", outcome->path);
	if (r->lost)
		tell_loss(outcome);
	if (nothing) {
		cli_warn("%s: NOT ONE EVENT was recorded", outcome->path);
		fputs(outcome->extracted
			      ? "  hint: the buffer is empty, or somebody has read it before\n"
			      : "  hint: nothing happened that was asked for, or a filter let "
				"nothing "
				"through: see -e, -f, -P, --cpus and 'tracectl doctor'\n",
		      stderr);
	}
	if (o->verbose)
		tell_ledger(r);
	if (!o->quiet && !o->json && !nothing)
		tell_how_to_open(outcome);
	return missing || (o->fail_on_loss && r->lost) ? CLI_MISSING : CLI_WHOLE;
}

static int unknown_format(const struct options *o, const char *path, struct error *err)
{
	_cleanup_buf_ struct buf known = BUF_INIT;
	const struct export_format *formats;
	size_t count;

	formats = export_formats(&count);
	for (size_t i = 0; i < count; i++)
		buf_printf(&known, "%s%s", i ? " " : "",
			   o->format ? formats[i].name : formats[i].extension);
	if (o->format)
		error_set(err, -EINVAL, "there is no format '%s'", o->format);
	else
		error_set(err, -EINVAL, "%s: the ending tells no format", path);
	return error_hint(err,
			  o->format ? "the formats are: %s"
				    : "known are: %s; --format says it otherwise",
			  buf_string(&known) ?: "");
}

static int fill_perfetto(struct destination *d, const struct options *o, struct error *err)
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

static int open_split(struct destination *d, const struct options *o, struct error *err)
{
	const struct export_rotate rotate = { .bytes = o->rotate_bytes, .ns = o->rotate_ns };
	struct stat st;
	int r;

	if (!strcmp(d->path, "-") || (stat(d->path, &st) == 0 && !S_ISREG(st.st_mode)))
		return error_set(err, -EINVAL, "%s: --rotate makes files", d->path);
	r = export_format_check_rotate(d->format, o->clock, &rotate, err);
	if (r < 0)
		return r;
	d->rotates = true;
	return split_start(&d->split, d->path, d->format, o->keep, err);
}

int destination_open(struct destination *ret, const struct options *o, const char *path)
{
	_cleanup_destination_ struct destination d = DESTINATION_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	bool to_stdout;

	d.path = path ?: o->output ?: OUTPUT_DEFAULT;
	to_stdout = !strcmp(d.path, "-");
	if (to_stdout && o->json) {
		error_set(&err, -EINVAL, "--json and -o - both want standard output");
		return cli_usage(&err);
	}
	d.format = export_format_find(o->format, d.path);
	if (!d.format && !o->format && to_stdout)
		d.format = export_format_find("json", NULL);
	if (!d.format) {
		unknown_format(o, d.path, &err);
		return cli_usage(&err);
	}
	if (fill_perfetto(&d, o, &err) < 0)
		return cli_usage(&err);
	d.function_view = o->function_view;
	if (export_format_check_functions(d.format, d.function_view, &err) < 0) {
		error_prefix(&err, "--function-view");
		return cli_usage(&err);
	}
	if (o->json_array && export_format_check_array(d.format, &err) < 0) {
		error_prefix(&err, "--json-array");
		return cli_usage(&err);
	}
	if (o->merge_count && export_format_check_merges(d.format, &err) < 0) {
		error_prefix(&err, "--merge");
		return cli_usage(&err);
	}
	if (o->clock && export_format_check_clock(d.format, o->clock, &err) < 0)
		return cli_fail(&err);
	if (to_stdout && isatty(STDOUT_FILENO) && strcmp(d.format->name, "json") &&
	    strcmp(d.format->name, "txt")) {
		error_set(&err, -EINVAL, "%s is not for a terminal", d.format->name);
		error_hint(&err, "-o FILE, or a pipe after it");
		return cli_usage(&err);
	}
	if (o->rotate_bytes || o->rotate_ns) {
		if (open_split(&d, o, &err) < 0)
			return err.code == EINVAL ? cli_usage(&err) : cli_fail(&err);
	} else if (result_file_open(&d.file, d.path, &err) < 0) {
		return cli_fail(&err);
	}
	*ret = d;
	d = DESTINATION_INIT;
	return 0;
}

void destination_deinit(struct destination *d)
{
	result_file_deinit(&d->file);
	split_deinit(&d->split);
	merge_files_deinit(&d->merges);
}

int destination_fd(const struct destination *d)
{
	return d->rotates ? d->split.fd : d->file.fd;
}

void destination_passed(struct destination *d)
{
	d->split.fd = close_fd(d->split.fd);
}

static void fill_merges(struct destination *d, Traced__Control__Output *ret)
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
	ret->json_array = o->json_array;
	ret->bound_max_ns = o->sync_bound_ns;
	d->fd_count = 0;
	d->fds[d->fd_count++] = destination_fd(d);
	fill_merges(d, ret);
}

/* "DIR/out.json.gz" as "DIR/out.pftrace"; behind a part of it, "DIR/out.rest.json.gz". */
static void put_other_name(const struct destination *d, bool as_pftrace, struct buf *out)
{
	size_t len = strlen(d->path), ending = strlen(d->format->extension);

	if (len > ending && !strcasecmp(d->path + len - ending, d->format->extension))
		len -= ending;
	buf_append(out, d->path, len);
	if (d->streams)
		buf_puts(out, ".rest");
	buf_puts(out, as_pftrace ? ".pftrace" : d->path + len);
}

/* The daemon, which knows no names, ends its hint with "tracectl convert SPOOL FILE". */
static void name_the_file(const struct destination *d, struct error *err)
{
	static const char file[] = " FILE";
	size_t len = err->hint ? strlen(err->hint) : 0;
	_cleanup_buf_ struct buf hint = BUF_INIT;

	if (len < sizeof(file) || strcmp(err->hint + len - strlen(file), file) ||
	    !strcmp(d->path, "-"))
		return;
	buf_append(&hint, err->hint, len - strlen(file) + 1);
	if (err->code == EOVERFLOW || d->streams)
		put_other_name(d, err->code == EOVERFLOW, &hint);
	else
		buf_puts(&hint, d->path);
	if (buf_string(&hint))
		error_hint(err, "%s", hint.data);
}

/* "out.0001.pftrace to out.0004.pftrace"; empty: there is none. */
static void put_range(const struct split *split, struct buf *out)
{
	unsigned first, last;

	if (!split_range(split, &first, &last))
		return;
	split_name(split, first, out);
	if (last > first)
		buf_puts(out, " to ");
	if (last > first)
		split_name(split, last, out);
}

/* A writer that was killed may still be within its last write. */
#define LAST_WRITE_MS 100

static bool keep_file(struct destination *d)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (!d->file.base)
		return false;
	usleep(LAST_WRITE_MS * 1000);
	if (salvage(d->file.fd, d->format->name, &err) > 0 &&
	    result_file_commit(&d->file, &err) == 0)
		return true;
	if (err.message)
		cli_fail(&err);
	return false;
}

/* Whose error it is: that which made the files ends who writes to it, too. */
static bool keep_files(struct destination *d, struct error *err)
{
	_cleanup_error_ struct error own = ERROR_INIT;
	unsigned first, last;

	if (err->code == ECANCELED)
		split_give_up(&d->split);
	if (split_finish(&d->split, &own) < 0 && own.code != EPIPE) {
		if (err->hint && !own.hint)
			error_hint(&own, "%s", err->hint);
		error_move(err, &own);
	}
	return split_range(&d->split, &first, &last);
}

int destination_fail(struct destination *d, struct error *err)
{
	_cleanup_buf_ struct buf kept = BUF_INIT;
	bool any;

	name_the_file(d, err);
	any = d->rotates ? keep_files(d, err)
			 : d->streams && err->code != ECANCELED && keep_file(d);
	cli_fail(err);
	if (!any)
		return CLI_FAILED;
	if (d->rotates)
		put_range(&d->split, &kept);
	cli_warn("%s is INCOMPLETE: it ends before the recording did",
		 d->rotates ? buf_string(&kept) ?: d->path : d->path);
	return CLI_MISSING;
}

/* Measured: time, task and name of an event, and what is printed of its bytes. */
uint64_t json_text_estimate(const char *tracer, uint64_t events, uint64_t bytes)
{
	/* Elements of traceEvents, of which two thirds are names of members. */
	if (tracer && strcmp(tracer, "function") == 0)
		return events * JSON_CHARS_PER_CALL;
	if (tracer && strcmp(tracer, "function_graph") == 0)
		return events * JSON_CHARS_PER_GRAPH_EVENT;
	return events * JSON_CHARS_PER_EVENT + bytes * 3 / 2;
}

int destination_commit(struct destination *d, struct outcome *outcome, struct buf *files,
		       struct error *err)
{
	int r = d->rotates ? split_finish(&d->split, err) : result_file_commit(&d->file, err);

	if (r < 0)
		return r;
	outcome->path = d->file.path;
	outcome->format = d->format->name;
	outcome->in_place = !strcmp(d->path, "-");
	if (!d->rotates)
		return 0;
	outcome->split = &d->split;
	put_range(&d->split, files);
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
		error_set(&err, -EPROTO, "traced gave an answer to something else");
		return cli_fail(&err);
	}
	if (outcome_from_finished(&outcome, reply->finished, &err) < 0)
		return cli_fail(&err);
	if (destination_commit(d, &outcome, &files, &err) < 0)
		return d->rotates ? destination_fail(d, &err) : cli_fail(&err);
	outcome.ended_early = d->ended_early;
	outcome.extracted = d->extracted;
	outcome.told = d->told;
	outcome.unmerged = d->merges.missing;
	return outcome_tell(&outcome, o);
}
