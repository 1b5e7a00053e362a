/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Explains a step that the kernel refused: its error_log, and what to ask for instead. */
#include <ctype.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/nearest.h"
#include "base/parse.h"
#include "daemon/capture/plan/event_triggers.h"
#include "daemon/capture/plan/hists.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/plan/probes.h"
#include "daemon/capture/plan/synthetic.h"
#include "daemon/capture/tracefs/setting.h"

#define FIELDS_MAX 64
#define NAME_MAX_BYTES 64

struct fields {
	char names[FIELDS_MAX][NAME_MAX_BYTES];
	const char *list[FIELDS_MAX];
	size_t count;
};

static bool is_field_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/*
 * "char prev_comm[16];\toffset:8;...", "__data_loc char[] name;...": takes the last word, without
 * its array size.
 */
static void fields_add(struct fields *f, const char *decl)
{
	size_t end = strcspn(decl, ";"), begin;

	if (end && decl[end - 1] == ']') {
		while (end && decl[end - 1] != '[')
			end--;
		end -= end > 0;
	}
	for (begin = end; begin && is_field_char(decl[begin - 1]);)
		begin--;
	if (begin == end || end - begin >= NAME_MAX_BYTES || f->count == FIELDS_MAX ||
	    !strncmp(decl + begin, "common_", 7))
		return;
	memcpy(f->names[f->count], decl + begin, end - begin);
	f->names[f->count][end - begin] = '\0';
	f->list[f->count] = f->names[f->count];
	f->count++;
}

static void fields_read(struct fields *f, const char *format)
{
	f->count = 0;
	for (const char *p = strstr(format, "field:"); p; p = strstr(p, "field:")) {
		p += strlen("field:");
		fields_add(f, p);
	}
}

/* Names that the kernel accepts in any filter, besides the fields. */
static bool field_is_generic(const char *name)
{
	static const char *const generic[] = { "CPU", "cpu", "COMM", "comm", "stacktrace" };

	for (size_t i = 0; i < ARRAY_SIZE(generic); i++) {
		if (!strcmp(name, generic[i]))
			return true;
	}
	return !strncmp(name, "common_", 7);
}

static bool fields_has(const struct fields *f, const char *name)
{
	for (size_t i = 0; i < f->count; i++) {
		if (!strcmp(f->list[i], name))
			return true;
	}
	return field_is_generic(name);
}

/* Finds the first name left of an operator that is not a field. */
static bool fields_find_unknown(const struct fields *f, const char *filter,
				char name[static NAME_MAX_BYTES])
{
	for (const char *p = filter; *p;) {
		size_t len = 0;
		const char *after;

		if (*p == '"') {
			p = strchr(p + 1, '"') ?: p;
			p++;
			continue;
		}
		while (is_field_char(p[len]))
			len++;
		after = p + len + strspn(p + len, " \t");
		if (len && len < NAME_MAX_BYTES && !isdigit((unsigned char)*p) &&
		    strchr("=!<>~&", *after) && *after && strncmp(after, "&&", 2) != 0) {
			memcpy(name, p, len);
			name[len] = '\0';
			if (!fields_has(f, name))
				return true;
		}
		p += len ?: 1;
	}
	return false;
}

void plan_put_fields(const char *format, const char *filter, struct buf *out)
{
	char unknown[NAME_MAX_BYTES];
	const char *best[NEAREST_MAX];
	struct fields f;
	size_t n = 0;

	fields_read(&f, format);
	if (!f.count)
		return;
	if (fields_find_unknown(&f, filter, unknown))
		n = nearest_names(unknown, f.list, f.count, best);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s'%s'", i ? ", " : "did you mean ", best[i]);
	buf_puts(out, n ? "? Its fields are" : "its fields are");
	for (size_t i = 0; i < f.count; i++)
		buf_printf(out, "%s %s", i ? "," : "", f.list[i]);
}

/* Appends error_log's last message verbatim, on its own lines: the caret must keep its column. */
static void explain_add_error_log(const struct plan_step *s, const struct tracefs *fs,
				  struct buf *out)
{
	_cleanup_free_ char *log = tracefs_last_error(fs, s->instance);
	char *save = NULL;

	if (!log)
		return;
	for (char *p = strtok_r(log, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
		buf_printf(out, "\n%s", p);
}

static void explain_add_fields(const struct plan_step *s, const struct tracefs *fs,
			       const char *filter, struct buf *out)
{
	_cleanup_buf_ struct buf format = BUF_INIT;
	_cleanup_free_ char *path = NULL;

	/* An event's filter and format are in one directory. */
	if (asprintf(&path, "%.*s/format", (int)(strrchr(s->file, '/') - s->file), s->file) < 0)
		return;
	if (tracefs_read(tracefs_root(fs), path, &format) == 0 && buf_string(&format))
		plan_put_fields(format.data, filter, out);
}

static bool filter_is_unbalanced(const char *filter)
{
	int depth = 0;

	for (; *filter; filter++)
		depth += (*filter == '(') - (*filter == ')');
	return depth != 0;
}

/*
 * A filter that cannot be parsed fails with -EINVAL, but with -1 to -3 for unbalanced parentheses
 * and quotes. A refusal for lack of rights leaves no message in error_log; before Linux 6.2,
 * neither does a filter of a trigger.
 */
static bool explain_is_unparsed(const struct plan_step *s, const struct tracefs *fs, int code)
{
	_cleanup_free_ char *log = code == -EPERM ? tracefs_last_error(fs, s->instance) : NULL;

	return log || (code == -EPERM && filter_is_unbalanced(s->value)) || code == -EINVAL ||
	       code == -ENOENT || code == -ESRCH;
}

static int explain_filter(const struct plan_step *s, const struct tracefs *fs, int code,
			  struct error *err)
{
	/* events/SYSTEM/EVENT/filter, or trigger */
	const char *what = s->kind == PLAN_TRIGGER ? "trigger" : "filter";
	_cleanup_free_ char *event = strdup(s->file + strlen("events/"));
	_cleanup_buf_ struct buf log = BUF_INIT, fields = BUF_INIT;
	char *slash = event ? strchr(event, '/') : NULL, *end = event ? strrchr(event, '/') : NULL;

	if (!slash || end == slash)
		return error_errno(err, code, "cannot write %s", s->file);
	*slash = ':';
	*end = '\0';
	if (code == -EPERM || code == -ESRCH)
		code = -EINVAL;
	explain_add_error_log(s, fs, &log);
	explain_add_fields(s, fs, s->value, &fields);
	error_set(err, code, "the kernel refuses the %s '%s' for event %s%s", what, s->value, event,
		  buf_string(&log) ?: "");
	if (fields.len)
		buf_puts(&fields, "; ");
	return error_hint(err, "%sa %s applies to every event that its glob matches",
			  buf_string(&fields) ?: "", what);
}

static int explain_clock(const struct plan_step *s, const struct tracefs *fs, int code,
			 struct error *err)
{
	_cleanup_buf_ struct buf clocks = BUF_INIT;

	error_set(err, code, "this kernel has no trace clock '%s'", s->value);
	if (tracefs_list(fs, TRACEFS_CLOCKS, &clocks) == 0 && buf_string(&clocks))
		return error_hint(err, "it has: %s", clocks.data);
	return -err->code;
}

static int explain_buffer(const struct plan_step *s, int code, struct error *err)
{
	uint64_t bytes = strtoull(s->value, NULL, 10) * 1024;
	_cleanup_buf_ struct buf size = BUF_INIT;

	format_bytes(bytes, &size);
	error_errno(err, code, "the kernel cannot allocate a ring buffer of %s for each of %d CPUs",
		    buf_string(&size) ?: "?", get_nprocs_conf());
	return error_hint(err, "ask for a smaller buffer (-b)");
}

static int explain_tracer(const struct plan_step *s, int code, struct error *err)
{
	error_set(err, code, "this kernel runs the tracer '%s' only in the top-level buffer",
		  s->value);
	return error_hint(err, "--top-level uses that buffer, with its tracer, filters, options, "
			       "clock and sizes, and restores all of them at the end");
}

static int explain_option(const struct plan_step *s, int code, struct error *err)
{
	error_set(err, code, "the option '%s' exists only in the top-level buffer",
		  s->file + strlen("options/"));
	return error_hint(err, "--top-level uses that buffer during the recording");
}

static int explain_hist(const struct plan_step *s, const struct tracefs *fs, int code,
			struct error *err)
{
	_cleanup_buf_ struct buf log = BUF_INIT, fields = BUF_INIT;
	const char *filter = strstr(s->value, " if ");

	explain_add_error_log(s, fs, &log);
	/* Before 6.2 the kernel logs no mistakes in filters of triggers. */
	if (filter)
		explain_add_fields(s, fs, filter + strlen(" if "), &fields);
	hists_explain(s, buf_string(&log), code, err);
	return fields.len ? error_hint(err, "%s", buf_string(&fields) ?: "") : code;
}

static const char *explain_reason(int code)
{
	switch (code) {
	case -EPERM:
		return "the kernel may be locked down (see 'tracectl doctor')";
	case -EACCES:
		return "run as root";
	case -EBUSY:
		return "another tool may be using it";
	case -ENOENT:
		return "this kernel does not have it, or somebody removed the instance";
	case -EINVAL:
		return "this kernel does not take that value";
	default:
		return NULL;
	}
}

int plan_explain(const struct plan_step *s, const struct tracefs *fs, int code, struct error *err)
{
	if (!err)
		return code;
	if (s->file && strncmp(s->file, PROBE_EVENTS, strlen(PROBE_EVENTS)) == 0 &&
	    setting_file_ends(s->file, "/enable"))
		return probe_enable_explain(s, code, err);
	if (s->kind == PLAN_ADD && probes_are_in(s->file))
		return probes_explain(s, fs, code, err);
	if (synthetic_makes(s))
		return synthetic_explain(s, fs, code, err);
	if (s->kind == PLAN_TRIGGER && strncmp(s->value, "hist:", 5) == 0)
		return explain_hist(s, fs, code, err);
	if (s->kind == PLAN_INSTANCE) {
		if (code == -EEXIST)
			return error_set(
				err, code,
				"a recording of that name is already running (tracefs instance %s)",
				s->instance);
		error_errno(err, code, "cannot create the tracefs instance %s", s->instance);
	} else if (s->kind == PLAN_TRIGGER && event_trigger_explain(s, fs, err) < 0) {
		return -err->code;
	} else if ((s->kind == PLAN_TRIGGER || setting_file_ends(s->file, "/filter")) &&
		   explain_is_unparsed(s, fs, code)) {
		return explain_filter(s, fs, code, err);
	} else if (setting_file_ends(s->file, "trace_clock") && code == -EINVAL) {
		return explain_clock(s, fs, code, err);
	} else if (setting_file_ends(s->file, "tracing_cpumask") && code != -EACCES &&
		   code != -EPERM) {
		error_set(err, code, "the list of CPUs names CPUs that this machine does not have");
		return error_hint(err, "it has 0 to %d", get_nprocs_conf() - 1);
	} else if (setting_file_ends(s->file, "buffer_size_kb") && s->value) {
		return explain_buffer(s, code, err);
	} else if (strcmp(s->file, "current_tracer") == 0 && s->instance && code == -EINVAL) {
		return explain_tracer(s, code, err);
	} else if (strncmp(s->file, "options/", 8) == 0 && s->instance && code == -ENOENT) {
		return explain_option(s, code, err);
	} else {
		error_errno(err, code, "cannot write '%.60s' to %s", s->value ?: "", s->file);
	}
	if (explain_reason(code))
		error_hint(err, "%s", explain_reason(code));
	return code;
}
