/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "outcome.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/parse.h"
#include "base/plural.h"
#include "base/visible.h"
#include "document.h"
#include "trace/trace_info.h"

#define JSON_CHARS_PER_EVENT 45
#define JSON_CHARS_PER_CALL 140
#define JSON_CHARS_PER_GRAPH_EVENT 62

void outcome_deinit(struct outcome *outcome)
{
	export_result_deinit(&outcome->result);
	*outcome = (struct outcome){ 0 };
}

static int outcome_copy_fallbacks(struct export_result *ret, const Traced__Control__ExportResult *m)
{
	ret->fallbacks = calloc(m->n_fallbacks ?: 1, sizeof(*ret->fallbacks));
	for (size_t i = 0; ret->fallbacks && i < m->n_fallbacks; i++) {
		const Traced__Control__Fallback *from = m->fallbacks[i];
		struct export_fallback *to = &ret->fallbacks[ret->fallback_count++];

		to->event = strdup(from->event);
		to->why = strdup(from->why);
		to->count = from->count;
		if (!to->event || !to->why)
			return -ENOMEM;
	}
	return ret->fallbacks ? 0 : -ENOMEM;
}

int outcome_copy_result(struct export_result *ret, const Traced__Control__ExportResult *m)
{
	*ret = (struct export_result){
		.events = m->events,
		.lost = m->lost,
		.bytes = m->bytes,
		.span_ns = m->span_ns,
		.own_events = m->own_events,
		.histograms = m->histograms,
		.begins_apart_ns = m->begins_apart_ns,
		.event_types = m->event_types,
		.fallback_events = m->fallback_events,
		.incomplete = m->incomplete,
		.marks_lost = m->marks_lost,
		.export_ns = m->export_ns,
		.cpu_ns = m->cpu_ns,
		.peak_rss_bytes = m->peak_rss_bytes,
	};
	ret->clock = strdup(m->clock);
	ret->segment_ends = calloc(m->n_segment_ends ?: 1, sizeof(*ret->segment_ends));
	ret->warnings = calloc(m->n_warnings ?: 1, sizeof(*ret->warnings));
	ret->ledger = calloc(m->n_ledger ?: 1, sizeof(*ret->ledger));
	if (!ret->clock || !ret->segment_ends || !ret->warnings || !ret->ledger)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_segment_ends; i++)
		ret->segment_ends[ret->segment_count++] = m->segment_ends[i];
	for (size_t i = 0; i < m->n_warnings; i++) {
		ret->warnings[i] = strdup(m->warnings[i]);
		if (!ret->warnings[i])
			return -ENOMEM;
		ret->warning_count++;
	}
	for (size_t i = 0; i < m->n_ledger; i++) {
		const Traced__Control__LedgerRow *row = m->ledger[i];

		ret->ledger[ret->ledger_count++] = (struct ledger_row){
			.cpu = row->cpu,
			.written = row->written,
			.events = row->events,
			.lost_overrun = row->lost_overrun,
			.lost_other = row->lost_other,
			.gaps = row->gaps,
			.unread = row->unread,
			.samples_lost = row->samples_lost,
			.left_out = row->left_out,
			.last_ts = row->last_ns,
		};
	}
	return outcome_copy_fallbacks(ret, m);
}

int outcome_from_finished(struct outcome *ret, const Traced__Control__Finished *finished,
			  struct error *err)
{
	_cleanup_outcome_ struct outcome outcome = { 0 };
	const Traced__Control__Session *session = finished->session;
	int r;

	if (!finished->result)
		return error_set(err, -EPROTO, "traced sent no result");
	r = outcome_copy_result(&outcome.result, finished->result);
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

static unsigned outcome_cpus(const struct export_result *r)
{
	unsigned count = 0;

	for (size_t i = 0; i < r->ledger_count; i++)
		count += r->ledger[i].events > 0;
	return count;
}

static void outcome_tell_file(const struct outcome *outcome)
{
	const struct export_result *r = &outcome->result;
	_cleanup_buf_ struct buf line = BUF_INIT;
	unsigned cpus = outcome_cpus(r), removed = 0;

	buf_puts(&line, outcome->path);
	/* The sums include removed files. */
	if (outcome->split)
		split_removed(outcome->split, &removed);
	if (removed)
		buf_printf(&line, " and %u older one%s, removed since", removed, plural_s(removed));
	if (outcome->sequels)
		buf_printf(&line, " and %zu more", outcome->sequels->count);
	buf_puts(&line, ": ");
	format_bytes(r->bytes, &line);
	buf_puts(&line, ", ");
	if (!r->clock || !trace_clock_counts(r->clock)) {
		format_duration(r->span_ns, &line);
		buf_puts(&line, ", ");
	}
	format_count(r->events, &line);
	buf_printf(&line, " event%s of %u type%s", plural_s(r->events), r->event_types,
		   plural_s(r->event_types));
	if (r->histograms)
		buf_puts(&line, ", histograms");
	if (cpus)
		buf_printf(&line, " on %u CPU%s", cpus, plural_s(cpus));
	/* The lines below say what is missing. */
	if (!r->lost && !r->incomplete && !export_result_gaps(r))
		buf_puts(&line, ", none lost");
	cli_line(stderr, "%s", buf_string(&line) ?: outcome->path);
}

/* Files of earlier recordings that --keep removed; outcome_tell_file() counts the own ones. */
static void outcome_tell_removed(const struct split *split)
{
	unsigned own, removed = split_removed(split, &own);

	removed -= own;
	if (removed)
		fprintf(stderr, "%u file%s of earlier recordings %s removed\n", removed,
			plural_s(removed), plural(removed, "was", "were"));
}

static void outcome_tell_how_to_open(const struct outcome *outcome)
{
	if (outcome->in_place || !outcome->format)
		return;
	if (outcome->format->recording)
		cli_line(stderr, "convert it to another format: tracectl convert %s out.json",
			 outcome->path);
	else if (outcome->format->open_hint)
		fprintf(stderr, "%s\n", outcome->format->open_hint);
}

static void outcome_tell_clock(const struct outcome *outcome)
{
	const struct export_format *format = outcome->format;
	const char *clock = outcome->result.clock;

	for (const char *const *c = format ? format->raw_clocks : NULL; clock && c && *c; c++) {
		if (strcmp(*c, clock) == 0)
			fprintf(stderr,
				"%s shows times of the clock %s as whole numbers: record with "
				"-C mono for seconds\n",
				format->raw_clock_reader, *c);
	}
}

/* A file that no viewer could open has become several. */
static void outcome_tell_sequels(const struct outcome *outcome)
{
	_cleanup_buf_ struct buf others = BUF_INIT;

	if (outcome->unsplit)
		cli_warn("%s holds %zu traces, one behind the other: no viewer opens it",
			 outcome->path, outcome->result.segment_count + 1);
	if (!outcome->sequels)
		return;
	sequels_put(outcome->sequels, &others);
	if (outcome->format->has_tables) {
		cli_warn("%s goes on in %s: a page shows only so much at ease (--html-max)",
			 outcome->path, buf_string(&others) ?: "other files");
		return;
	}
	cli_warn("%s goes on in %s: a viewer opens at most %" PRIu64 " characters at once",
		 outcome->path, buf_string(&others) ?: "other files", EXPORT_JSON_MAX);
}

void outcome_put_loss(const struct export_result *r, struct buf *out)
{
	const double share = 100.0 * (double)r->lost / (double)(r->events + r->lost);
	const uint64_t gaps = export_result_gaps(r);
	char text[32];

	if (!r->lost && gaps)
		buf_printf(out,
			   "events were lost at %" PRIu64 " place%s (count unknown): the gaps "
			   "are marked in the trace",
			   gaps, plural_s(gaps));
	if (!r->lost)
		return;
	/* Don't round small shares to 0, nor large ones to 100. */
	if (share < 0.1)
		snprintf(text, sizeof(text), "under 0.1");
	else
		snprintf(text, sizeof(text), "%.1f", r->events ? MIN(share, 99.9) : share);
	format_count(r->lost, out);
	buf_printf(out, " event%s lost (%s %%): the gaps are marked in the trace",
		   plural_s(r->lost), text);
}

static void outcome_tell_loss(const struct outcome *outcome, const struct options *o)
{
	const struct export_result *r = &outcome->result;
	_cleanup_buf_ struct buf line = BUF_INIT;

	outcome_put_loss(r, &line);
	if (line.len && !outcome->of_hosts)
		cli_warn("%s%s%s", o->of_host ?: "", o->of_host ? ": " : "",
			 buf_string(&line) ?: "events were lost");
	if (r->lost && outcome->buffer_bytes)
		fprintf(stderr,
			"  hint: a larger buffer (-b %" PRIu64 "K) or fewer events (-e, -f) "
			"help\n",
			outcome->buffer_bytes * 4 >> 10);
	else if (r->lost && o->told)
		fputs("  hint: a larger buffer (-b) or fewer events (-e, -f) help\n", stderr);
}

static void outcome_tell_ledger(const struct export_result *r)
{
	fprintf(stderr, "%5s %14s %14s %12s %12s %8s %12s %14s\n", "CPU", "written", "in the file",
		"overrun", "other loss", "gaps", "unread", "left out");
	for (size_t i = 0; i < r->ledger_count; i++) {
		const struct ledger_row *row = &r->ledger[i];

		fprintf(stderr,
			"%5u %14" PRIu64 " %14" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8" PRIu64
			" %12" PRIu64 " %14" PRIu64 "\n",
			row->cpu, row->written, row->events, row->lost_overrun, row->lost_other,
			row->gaps, row->unread, row->left_out);
	}
	for (size_t i = 0; i < r->ledger_count; i++)
		if (r->ledger[i].samples_lost)
			fprintf(stderr, "records of samples lost on CPU %u: %" PRIu64 "\n",
				r->ledger[i].cpu, r->ledger[i].samples_lost);
	fprintf(stderr, "printed field by field: %" PRIu64 " event%s\n", r->fallback_events,
		plural_s(r->fallback_events));
	for (size_t i = 0; i < r->fallback_count; i++) {
		_cleanup_buf_ struct buf line = BUF_INIT;

		buf_printf(&line, "  %10" PRIu64 "  ", r->fallbacks[i].count);
		buf_visible(&line, r->fallbacks[i].event, VISIBLE_MAX);
		buf_puts(&line, ": ");
		buf_visible(&line, r->fallbacks[i].why ?: "", VISIBLE_MAX);
		fprintf(stderr, "%s\n", buf_string(&line) ?: "");
	}
}

static void outcome_put_sequels(struct document *j, const struct outcome *outcome)
{
	document_open(j, "files", '[');
	document_string(j, NULL, outcome->path);
	for (size_t i = 0; i < outcome->sequels->count; i++)
		document_string(j, NULL, outcome->sequels->paths[i]);
	document_close(j, ']');
}

static void outcome_put_files(struct document *j, const struct split *split)
{
	unsigned first, last, removed, own;

	document_open(j, "files", '[');
	for (bool any = split_range(split, &first, &last); any && first <= last; first++) {
		_cleanup_buf_ struct buf name = BUF_INIT;

		if (!split_has(split, first))
			continue;
		split_name(split, first, &name);
		document_string(j, NULL, buf_string(&name) ?: "");
	}
	document_close(j, ']');
	removed = split_removed(split, &own);
	document_uint(j, "files_removed", removed);
	document_uint(j, "own_files_removed", own);
}

static void outcome_print_json(const struct outcome *outcome)
{
	const struct export_result *r = &outcome->result;
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);

	document_open(&j, NULL, '{');
	document_string(&j, "file", outcome->path);
	if (outcome->split)
		outcome_put_files(&j, outcome->split);
	if (outcome->sequels)
		outcome_put_sequels(&j, outcome);
	if (outcome->format)
		document_string(&j, "format", outcome->format->name);
	document_uint(&j, "bytes", r->bytes);
	document_uint(&j, "events", r->events);
	document_uint(&j, "own_events", r->own_events);
	document_uint(&j, "histograms", r->histograms);
	document_uint(&j, "event_types", r->event_types);
	document_uint(&j, "lost", r->lost);
	document_bool(&j, "incomplete", r->incomplete);
	document_bool(&j, "marks_lost", r->marks_lost);
	document_uint(&j, "span_ns", r->span_ns);
	if (r->begins_apart_ns)
		document_uint(&j, "begins_apart_ns", r->begins_apart_ns);
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
		document_uint(&j, "samples_lost", r->ledger[i].samples_lost);
		document_uint(&j, "left_out", r->ledger[i].left_out);
		document_close(&j, '}');
	}
	document_close(&j, ']');
	document_close(&j, '}');
	document_print(&j);
}

static bool outcome_among(const char *text, char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(list[i], text))
			return true;
	}
	return false;
}

/* A machine's warning that it printed itself is not repeated. */
static void outcome_pass_on(const char *warning, const struct options *o)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	if (o->of_host)
		buf_printf(&line, "%s: ", o->of_host);
	buf_puts(&line, warning);
	if (!buf_string(&line) || !o->told ||
	    !outcome_among(line.data, (char *const *)o->told->items, o->told->count))
		cli_pass_on(buf_string(&line) ?: warning);
}

/*
 * Prints warnings of the exporter, unless a report repeats them, and those of the session that were
 * not printed yet.
 */
static void outcome_tell_warnings(const struct outcome *outcome, const struct options *o)
{
	const Traced__Control__Session *s = outcome->session, *reported = outcome->reported;
	const struct export_result *r = &outcome->result;

	for (size_t i = 0; !o->report_follows && i < r->warning_count; i++) {
		/* Reported separately, as an error. */
		if (!strcmp(r->warnings[i], EXPORT_NOTHING))
			continue;
		if (!reported ||
		    !outcome_among(r->warnings[i], reported->warnings, reported->n_warnings))
			outcome_pass_on(r->warnings[i], o);
	}
	for (size_t i = 0; s && i < s->n_warnings; i++) {
		if (!outcome_among(s->warnings[i], r->warnings, r->warning_count) &&
		    !(reported &&
		      outcome_among(s->warnings[i], reported->warnings, reported->n_warnings)))
			cli_pass_on(s->warnings[i]);
	}
}

static bool outcome_is_nothing(const struct export_result *r)
{
	return r->events <= r->own_events && !r->histograms;
}

static void outcome_tell_nothing(const struct outcome *outcome, const struct options *o)
{
	const struct export_result *r = &outcome->result;

	cli_warn("%s: NOT ONE EVENT %s", outcome->path,
		 r->incomplete ? "could be read" : "was recorded");
	if (r->incomplete || outcome->ended_early)
		return;
	fputs(outcome->extracted ? "  hint: the buffer is empty, or its events were already read\n"
				 : "  hint: no selected event happened, or a filter dropped all: "
				   "check -e, -f, "
				   "-P, --thread, --cpus and 'tracectl doctor'\n",
	      stderr);
	if (o->pid_count && !o->follow)
		fputs("  hint: -P leaves out the processes that PID starts: -F adds them\n",
		      stderr);
}

/* A report on the same recording says this, too. */
static void outcome_tell_missing(const struct outcome *outcome, const struct options *o)
{
	const struct export_result *r = &outcome->result;

	if (!outcome->ended_early && r->incomplete)
		cli_warn("%s is INCOMPLETE: see the messages above", outcome->path);
	outcome_tell_loss(outcome, o);
	if (outcome_is_nothing(r))
		outcome_tell_nothing(outcome, o);
}

int outcome_tell(const struct outcome *outcome, const struct options *o)
{
	const struct export_result *r = &outcome->result;
	bool nothing = outcome_is_nothing(r);
	bool failed = outcome->session && *outcome->session->error;
	bool missing = r->incomplete || outcome->ended_early || outcome->unmerged ||
		       outcome->unsplit || failed || nothing;

	/* The file exists even if the report cannot be printed. */
	if (o->json) {
		outcome_print_json(outcome);
		missing |= !cli_flush();
	}
	if (!o->quiet && !o->json && !nothing)
		outcome_tell_file(outcome);
	if (!o->quiet && !o->json && outcome->split)
		outcome_tell_removed(outcome->split);
	outcome_tell_sequels(outcome);
	outcome_tell_warnings(outcome, o);
	if (failed)
		cli_pass_on(outcome->session->error);
	if (outcome->ended_early)
		cli_warn("%s is INCOMPLETE: it ends before the recording did", outcome->path);
	if (!o->report_follows)
		outcome_tell_missing(outcome, o);
	if (o->verbose)
		outcome_tell_ledger(r);
	if (!o->quiet && !o->json && !nothing)
		outcome_tell_how_to_open(outcome);
	if (!o->quiet && !o->json && !nothing)
		outcome_tell_clock(outcome);
	missing |= o->fail_on_loss && (r->lost || export_result_gaps(r) || r->marks_lost);
	return missing ? CLI_MISSING : CLI_WHOLE;
}

/* Measured: characters for time, task and event name, and per byte of the record. */
uint64_t json_text_estimate(const char *tracer, uint64_t events, uint64_t bytes)
{
	/* Elements of traceEvents; two thirds of the text are member names. */
	if (tracer && strcmp(tracer, "function") == 0)
		return events * JSON_CHARS_PER_CALL;
	if (tracer && strcmp(tracer, "function_graph") == 0)
		return events * JSON_CHARS_PER_GRAPH_EVENT;
	return events * JSON_CHARS_PER_EVENT + bytes * 3 / 2;
}
