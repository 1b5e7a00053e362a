/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/synthetic.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/io.h"
#include "base/plural.h"
#include "daemon/capture/tracefs/events.h"

/* The kernel takes a line or a trigger in one write of less than a page. */
#define LINE_MAX_BYTES 4000
#define HIST_FILE_MAX (64U << 20)
#define START_MARK_TRIGGER "events/ftrace/print/trigger"

void synthetic_list_deinit(struct synthetic_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free(l->items[i].wanted);
		free(l->items[i].event);
		free(l->items[i].start);
		free(l->items[i].end);
	}
	free(l->items);
	*l = (struct synthetic_list){ 0 };
}

const struct synthetic_event *synthetic_find(const struct synthetic_list *l, const char *wanted)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i].wanted, wanted) == 0)
			return &l->items[i];
	return NULL;
}

void synthetic_put_shown(const char *event, struct buf *out)
{
	size_t system = strlen(SYNTHETIC_SYSTEM);

	if (strncmp(event, SYNTHETIC_SYSTEM, system) == 0 && synthetic_is_ours(event + system))
		buf_printf(out, SYNTHETIC_SYSTEM "%s", event + system + SYNTHETIC_PREFIX_LEN);
	else
		buf_puts(out, event);
}

bool synthetic_uses(const struct synthetic_list *l, const char *event)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i].start, event) == 0 || strcmp(l->items[i].end, event) == 0)
			return true;
	return false;
}

bool synthetic_is_ours(const char *name)
{
	size_t len = strlen(SYNTHETIC_PREFIX);

	return strncmp(name, SYNTHETIC_PREFIX, len) == 0 &&
	       strspn(name + len, "0123456789abcdef") == SYNTHETIC_PREFIX_LEN - len - 1 &&
	       name[SYNTHETIC_PREFIX_LEN - 1] == '_';
}

bool synthetic_next_piece(const char **at, char sep, struct synthetic_piece *ret)
{
	const char *end;

	if (!*at)
		return false;
	end = strchr(*at, sep);
	*ret = (struct synthetic_piece){ *at, end ? (size_t)(end - *at) : strlen(*at) };
	*at = end ? end + 1 : NULL;
	return true;
}

/* Finds the event of ":NAME" among the recording's own: earlier ones by SQL, and probes. */
static int synthetic_find_own(const char *name, const struct synthetic_list *earlier,
			      const struct probe_list *probes, char **ret, struct error *err)
{
	const struct synthetic_event *sql = synthetic_find(earlier, name);
	const char *found = sql ? sql->event : NULL;

	for (size_t i = 0; i < probes->count && !found; i++)
		if (strcmp(strchr(probes->specs[i].glob, ':') + 1, name) == 0)
			found = probes->specs[i].glob;
	if (!found)
		return error_set(err, -ENOENT, "no probe and no earlier --sql is called '%s'",
				 name);
	*ret = strdup(found);
	return *ret ? 0 : -ENOMEM;
}

static int synthetic_find_event(const char *event, const struct synthetic_list *earlier,
				const struct probe_list *probes, char **ret, struct error *err)
{
	int r = -ENOMEM;

	if (*event == ':') {
		r = synthetic_find_own(event + 1, earlier, probes, ret, err);
	} else {
		*ret = strdup(event);
		if (*ret)
			r = 0;
	}
	if (r < 0)
		*ret = NULL;
	return r == -ENOMEM ? error_set(err, -ENOMEM, "out of memory") : r;
}

static int synthetic_plan_event(struct plan *plan, const struct capture_sql *sql, const char *name,
				struct error *err)
{
	_cleanup_free_ char *line = NULL, *undo = NULL;

	if (asprintf(&line, "%s %s\n", name, sql->fields) < 0)
		line = NULL;
	if (asprintf(&undo, "!%s\n", name) < 0)
		undo = NULL;
	if (!line || !undo)
		return error_set(err, -ENOMEM, "out of memory");
	if (strlen(line) > LINE_MAX_BYTES)
		return error_set(err, -E2BIG, "the SQL event '%s' has too many fields", sql->name);
	plan_add(plan, SYNTHETIC_EVENTS, line, undo);
	return 0;
}

int synthetic_plan(struct plan *plan, const struct capture_request *request, const char *group,
		   const struct probe_list *probes, struct synthetic_list *ret, struct error *err)
{
	int r = 0;

	ret->items = calloc(request->sql_count + 1, sizeof(*ret->items));
	if (!ret->items)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < request->sql_count && r == 0; i++) {
		const struct capture_sql *sql = &request->sql[i];
		struct synthetic_event *e = &ret->items[i];

		e->wanted = strdup(sql->name);
		if (asprintf(&e->event, SYNTHETIC_SYSTEM SYNTHETIC_PREFIX "%s_%s",
			     group + strlen(PROBE_GROUP_PREFIX), sql->name) < 0)
			e->event = NULL;
		e->name = e->event ? e->event + strlen(SYNTHETIC_SYSTEM) : NULL;
		e->only_counted = sql->only_counted;
		r = e->wanted && e->event ? 0 : error_set(err, -ENOMEM, "out of memory");
		if (r == 0)
			r = synthetic_find_event(sql->start.event, ret, probes, &e->start, err);
		if (r == 0)
			r = synthetic_find_event(sql->end.event, ret, probes, &e->end, err);
		/* Now it is one of those that the next may name. */
		ret->count = i + 1;
		if (r == 0)
			r = synthetic_plan_event(plan, sql, e->name, err);
	}
	return r;
}

/*
 * Puts variables with a number before their names, as the names of one file's variables must
 * differ: "a=$b" as "s0_a=$s0_b".
 */
static void synthetic_put_variables(const char *variables, size_t number, struct buf *out)
{
	bool begins = true;

	for (const char *p = variables; *p; p++) {
		if (begins || *p == '$')
			buf_printf(out, "%ss%zu_", *p == '$' ? "$" : "", number);
		if (*p != '$')
			buf_putc(out, *p);
		begins = *p == ',';
	}
}

static void synthetic_put_arguments(const char *arguments, size_t number, struct buf *out)
{
	struct synthetic_piece piece;
	bool any = false;

	while (synthetic_next_piece(&arguments, ',', &piece)) {
		buf_printf(out, "%s$s%zu_%.*s", any ? "," : "", number, (int)piece.len, piece.text);
		any = true;
	}
}

static int synthetic_plan_trigger(struct plan *plan, const char *instance, const char *event,
				  struct buf *trigger, struct error *err)
{
	char file[512];

	if (!buf_string(trigger))
		return error_set(err, -ENOMEM, "out of memory");
	if (trigger->len > LINE_MAX_BYTES)
		return error_set(err, -E2BIG, "the SQL is too long for the kernel");
	event_file(event, "trigger", file, sizeof(file));
	plan_trigger(plan, instance, file, trigger->data);
	return 0;
}

static int synthetic_plan_side(struct plan *plan, const struct capture_sql *sql,
			       const struct synthetic_event *e, bool is_end, size_t number,
			       const char *clock, const char *instance, struct error *err)
{
	const struct capture_sql_side *side = is_end ? &sql->end : &sql->start;
	const char *colon = strchr(e->start, ':');
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_printf(&text, "hist:keys=%s:", side->keys);
	synthetic_put_variables(side->variables, number, &text);
	/* Without a clock, the kernel sets the buffer's to "global". */
	buf_printf(&text, ":clock=%s:size=%d:pause", clock, SYNTHETIC_KEYS);
	if (is_end) {
		buf_printf(&text, ":onmatch(%.*s.%s).%s(", (int)(colon - e->start), e->start,
			   colon + 1, e->name);
		synthetic_put_arguments(sql->arguments, number, &text);
		buf_putc(&text, ')');
	}
	if (side->filter && *side->filter)
		buf_printf(&text, " if %s", side->filter);
	return synthetic_plan_trigger(plan, instance, is_end ? e->end : e->start, &text, err);
}

/* True if the number-th event is the same as an earlier one; each item has two. */
static bool synthetic_event_is_known(const struct synthetic_list *l, size_t number)
{
	const struct synthetic_event *items = l->items;
	const char *event = number % 2 ? items[number / 2].end : items[number / 2].start;

	for (size_t i = 0; i < number; i++)
		if (strcmp(i % 2 ? items[i / 2].end : items[i / 2].start, event) == 0)
			return true;
	return false;
}

int synthetic_plan_triggers(struct plan *plan, const struct capture_request *request,
			    const struct synthetic_list *l, const char *clock, const char *instance,
			    struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < l->count && r == 0; i++) {
		r = synthetic_plan_side(plan, &request->sql[i], &l->items[i], false, i, clock,
					instance, err);
		if (r == 0)
			r = synthetic_plan_side(plan, &request->sql[i], &l->items[i], true, i,
						clock, instance, err);
	}
	for (size_t i = 0; i < 2 * l->count && r == 0; i++) {
		const struct synthetic_event *e = &l->items[i / 2];
		char go_on[256];

		if (synthetic_event_is_known(l, i))
			continue;
		snprintf(go_on, sizeof(go_on), "enable_hist:%s", i % 2 ? e->end : e->start);
		plan_trigger(plan, instance, START_MARK_TRIGGER, go_on);
	}
	return r < 0 || !plan->failed ? r : error_set(err, -ENOMEM, "out of memory");
}

/*
 * True if a line, up to its filter, defines a variable as synthetic_put_variables() names it:
 * ":s0_a=".
 */
static bool synthetic_is_definition(const char *line)
{
	const char *end = line + strcspn(line, " \n");

	for (const char *p = line; (p = memmem(p, (size_t)(end - p), ":s", 2)); p += 2) {
		size_t digits = strspn(p + 2, "0123456789");

		if (digits && p[2 + digits] == '_')
			return true;
	}
	return false;
}

/*
 * The count at the end of a histogram. A key may be a text that a program chose, so what looks like
 * the count before the end is none.
 */
static uint64_t synthetic_last_drops(const char *text, const char *end)
{
	static const char word[] = "\n    Dropped: ";
	const char *last = NULL;

	for (const char *p = text; (p = memmem(p, (size_t)(end - p), word, strlen(word)));)
		last = p += strlen(word);
	return last ? strtoull(last, NULL, 10) : 0;
}

static uint64_t synthetic_read_drops(const struct tracefs *fs, const char *instance,
				     const char *event)
{
	static const char head[] = "# event histogram\n#\n# trigger info: ";
	const char *colon = strchr(event, ':');
	_cleanup_buf_ struct buf text = BUF_INIT;
	uint64_t drops = 0;
	char path[512];

	snprintf(path, sizeof(path), "instances/%s/events/%.*s/%s/hist", instance,
		 (int)(colon - event), event, colon + 1);
	if (read_file_at(tracefs_root(fs), path, HIST_FILE_MAX, &text) < 0 || !buf_string(&text))
		return 0;
	/* The file has all histograms of the event, each with its own definition before it. */
	for (const char *p = strstr(text.data, head), *next; p; p = next) {
		p += strlen(head);
		next = strstr(p, head);
		if (synthetic_is_definition(p))
			drops += synthetic_last_drops(p, next ?: text.data + text.len);
	}
	return drops;
}

void synthetic_report_drops(const struct synthetic_list *l, const struct tracefs *fs,
			    const char *instance, struct capture_report *report)
{
	for (size_t i = 0; i < 2 * l->count; i++) {
		const struct synthetic_event *e = &l->items[i / 2];
		const char *event = i % 2 ? e->end : e->start;
		uint64_t drops = synthetic_event_is_known(l, i)
					 ? 0
					 : synthetic_read_drops(fs, instance, event);

		if (drops)
			report_warn_missing(report,
					    "--sql: %" PRIu64 " event%s %s had keys beyond the "
					    "first %d: no event was made of %s",
					    drops, plural_s(drops), event, SYNTHETIC_KEYS,
					    plural(drops, "it", "them"));
	}
}

static void synthetic_put_log(const struct plan_step *s, const struct tracefs *fs, struct buf *out)
{
	_cleanup_free_ char *log = tracefs_last_error(fs, s->instance);
	const char *first = s->kind == PLAN_ADD ? "synth" : "hist:";
	char *save = NULL;

	/* An older entry is about something else. */
	if (!log || !strstr(log, first))
		return;
	for (char *p = strtok_r(log, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
		buf_printf(out, "\n%s", p);
}

bool synthetic_makes(const struct plan_step *s)
{
	if (s->kind == PLAN_ADD)
		return strcmp(s->file, SYNTHETIC_EVENTS) == 0;
	return s->kind == PLAN_TRIGGER &&
	       (strcmp(s->file, START_MARK_TRIGGER) == 0 || synthetic_is_definition(s->value));
}

int synthetic_explain(const struct plan_step *s, const struct tracefs *fs, int code,
		      struct error *err)
{
	bool is_event = s->kind == PLAN_ADD;
	const char *name = s->value;
	_cleanup_buf_ struct buf log = BUF_INIT;

	synthetic_put_log(s, fs, &log);
	if (is_event) {
		name += synthetic_is_ours(name) ? SYNTHETIC_PREFIX_LEN : 0;
		error_set(err, code, "the kernel refuses the SQL event '%.*s': %s%s",
			  (int)strcspn(name, " \n"), name, strerror(-code), buf_string(&log) ?: "");
	} else {
		error_set(err, code, "the kernel refuses the trigger '%.500s' in %s: %s%s",
			  s->value, s->file, strerror(-code), buf_string(&log) ?: "");
	}
	/* The kernel logs nothing about conditions. */
	if (code == -EINVAL && !log.len && strstr(s->value, " if "))
		return error_hint(err, "a condition compares numbers with numbers, and texts with "
				       "quoted texts");
	if (code == -ENOENT)
		return error_hint(err, "'tracectl events' lists this kernel's events");
	return code == -EBUSY ? error_hint(err, "another tool may be using it") : code;
}
