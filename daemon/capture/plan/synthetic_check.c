/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks the pieces of an event by SQL. Each piece has only what libtracefs makes of SQL; anything
 * else is refused, so that a client can't put a command of its own into a trigger.
 */
#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/capture/plan/event_triggers.h"
#include "daemon/capture/plan/synthetic.h"
#include "daemon/capture/plan/user_filter.h"
#include "daemon/capture/tracefs/event_field.h"
#include "daemon/capture/tracefs/events.h"
#include "daemon/capture/tracefs/feature.h"

#define NAME_LEN_MAX 40
#define KEYS_MAX 3	 /* TRACING_MAP_KEYS_MAX */
#define VARIABLES_MAX 16 /* TRACING_MAP_VARS_MAX */
#define FIELDS_MAX 32

/* A checker of one event: it says which, and where. */
struct sql_checker {
	const struct capture_sql *sql;
	struct error *err;
};

static int sql_wrong(const struct sql_checker *c, const char *what, const struct synthetic_piece *p)
{
	return error_set(c->err, -EINVAL, "the SQL event '%.*s': %s%s%.*s%s", NAME_LEN_MAX,
			 c->sql->name, what, p ? ": '" : "", p ? (int)MIN(p->len, 60U) : 0,
			 p ? p->text : "", p ? "'" : "");
}

static bool is_sql_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool sql_is_name(const char *text, size_t len)
{
	if (!len || len > 100 || isdigit((unsigned char)*text))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_sql_char(text[i]))
			return false;
	return true;
}

/* "SYSTEM:EVENT", or ":EVENT" for one of the recording's own. */
static bool sql_is_event(const char *event)
{
	const char *colon = strchr(event, ':');
	size_t len = colon ? (size_t)(colon - event) : 0;

	if (!colon || len > 100)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_sql_char(event[i]) && event[i] != '-')
			return false;
	return sql_is_name(colon + 1, strlen(colon + 1));
}

static int sql_check_keys(const struct sql_checker *c, const char *keys)
{
	struct synthetic_piece p;
	size_t count = 0;

	while (synthetic_next_piece(&keys, ',', &p)) {
		if (!sql_is_name(p.text, p.len))
			return sql_wrong(c, "no field to join on", &p);
		if (++count > KEYS_MAX)
			return sql_wrong(c, "the kernel joins on 3 fields at most", NULL);
	}
	return (int)count;
}

static bool sql_has_variable(const char *variables, const char *name, size_t len)
{
	struct synthetic_piece p;

	while (synthetic_next_piece(&variables, ',', &p))
		if (p.len > len && p.text[len] == '=' && memcmp(p.text, name, len) == 0)
			return true;
	return false;
}

/* Takes "$VARIABLE", "FIELD" or "common_timestamp.usecs". Returns its length; 0: it is wrong. */
static size_t sql_operand_len(const struct capture_sql *sql, const char *text, size_t len,
			      bool is_end, bool *uses)
{
	bool is_variable = len && *text == '$';
	size_t name = is_variable;

	while (name < len && is_sql_char(text[name]))
		name++;
	if (!sql_is_name(text + is_variable, name - is_variable))
		return 0;
	if (is_variable) {
		*uses = true;
		return is_end && sql_has_variable(sql->start.variables, text + 1, name - 1) ? name
											    : 0;
	}
	if (len - name >= 6 && memcmp(text + name, ".usecs", 6) == 0)
		return strncmp(text, "common_timestamp.", 17) == 0 ? name + 6 : 0;
	return name;
}

/* One operand, or two with a plus or minus between them. */
static bool sql_is_expression(const struct capture_sql *sql, const char *text, size_t len,
			      bool is_end, bool *uses)
{
	size_t first = sql_operand_len(sql, text, len, is_end, uses);

	if (!first || first == len)
		return first > 0;
	if (text[first] != '+' && text[first] != '-')
		return false;
	text += first + 1;
	len -= first + 1;
	return sql_operand_len(sql, text, len, is_end, uses) == len && len;
}

static int sql_check_variables(const struct sql_checker *c, const char *variables, bool is_end)
{
	const char *at = variables;
	struct synthetic_piece p;
	bool uses = false;
	size_t count = 0;

	while (synthetic_next_piece(&at, ',', &p)) {
		const char *equal = memchr(p.text, '=', p.len);
		size_t len = equal ? (size_t)(equal - p.text) : 0;

		if (!equal || !sql_is_name(p.text, len) ||
		    !sql_is_expression(c->sql, equal + 1, p.len - len - 1, is_end, &uses))
			return sql_wrong(c, "no variable of the kernel's", &p);
		if (at && sql_has_variable(at, p.text, len))
			return sql_wrong(c, "two variables have the same name", &p);
		if (++count > VARIABLES_MAX)
			return sql_wrong(c, "the kernel takes 16 values of an event at most", NULL);
	}
	if (!is_end || uses)
		return 0;
	/* The kernel compares the keys only to find a variable. */
	sql_wrong(c, "it selects nothing of the first event", NULL);
	return error_hint(c->err, "without that the kernel would not match the two: select a field "
				  "of the first event, or the time between them");
}

static bool sql_is_type(const char *type, size_t len)
{
	static const char *const types[] = { "pid_t", "gfp_t", "bool", "char", "unsigned char",
					     "s8",    "u8",    "s16",  "u16",  "s32",
					     "u32",   "s64",   "u64" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i]) == len && memcmp(types[i], type, len) == 0)
			return true;
	return false;
}

/* Length of the name in "NAME", "NAME[]" or "NAME[16]", where only a text may be an array. */
static size_t sql_field_name_len(const char *name, size_t len, bool is_char)
{
	size_t plain = 0, digits;

	while (plain < len && is_sql_char(name[plain]))
		plain++;
	if (plain == len)
		return plain;
	digits = strspn(name + plain + 1, "0123456789");
	return is_char && name[plain] == '[' && digits < 5 && plain + digits + 2 == len &&
			       name[len - 1] == ']'
		       ? plain
		       : 0;
}

/* Splits "TYPE NAME". False: it is no field of a synthetic event. */
static bool sql_split_field(struct synthetic_piece p, struct synthetic_piece *ret_name)
{
	const char *blank;
	size_t type, name;

	while (p.len && *p.text == ' ') {
		p.text++;
		p.len--;
	}
	blank = memrchr(p.text, ' ', p.len);
	if (!blank)
		return false;
	type = (size_t)(blank - p.text);
	name = sql_field_name_len(blank + 1, p.len - type - 1, type == 4);
	*ret_name = (struct synthetic_piece){ blank + 1, name };
	return sql_is_type(p.text, type) && sql_is_name(blank + 1, name);
}

static int sql_check_fields(const struct sql_checker *c)
{
	struct synthetic_piece p, names[FIELDS_MAX];
	const char *at = c->sql->fields;
	size_t count = 0;

	while (synthetic_next_piece(&at, ';', &p)) {
		if (!at && !p.len)
			break;
		if (count == FIELDS_MAX)
			return sql_wrong(c, "it has more than 32 fields", NULL);
		if (!sql_split_field(p, &names[count]))
			return sql_wrong(c, "no field of an event", &p);
		for (size_t i = 0; i < count; i++) {
			if (names[i].len != names[count].len ||
			    memcmp(names[i].text, names[count].text, names[i].len) != 0)
				continue;
			sql_wrong(c, "two fields have the same name", &names[i]);
			return error_hint(c->err, "name one of them: AS OTHER");
		}
		count++;
	}
	return (int)count;
}

static int sql_check_arguments(const struct sql_checker *c, int fields)
{
	const char *at = c->sql->arguments;
	struct synthetic_piece p;
	int count = 0;

	while (synthetic_next_piece(&at, ',', &p)) {
		if (!sql_is_name(p.text, p.len) ||
		    !sql_has_variable(c->sql->end.variables, p.text, p.len))
			return sql_wrong(c, "no variable of the second event", &p);
		count++;
	}
	return fields && fields == count ? 0
					 : sql_wrong(c, "fields and values differ in number", NULL);
}

static int sql_check_name(const struct sql_checker *c)
{
	const char *name = c->sql->name;

	if (sql_is_name(name, strlen(name)) && strlen(name) <= NAME_LEN_MAX)
		return 0;
	error_set(c->err, -EINVAL, "'%.60s' is not a valid name of an event by SQL", name);
	return error_hint(c->err, "1 to %d letters, digits and underscores, not a digit first",
			  NAME_LEN_MAX);
}

static int sql_check_filter(const struct sql_checker *c, const char *filter)
{
	for (const char *p = filter; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return sql_wrong(c, "its WHERE has a control character", NULL);
	return 0;
}

int synthetic_check_pieces(const struct capture_sql *sql, struct error *err)
{
	const struct sql_checker c = { sql, err };
	int r = sql_check_name(&c), keys, fields;

	if (r == 0 && (!sql_is_event(sql->start.event) || !sql_is_event(sql->end.event)))
		r = sql_wrong(&c, "it names no event", NULL);
	if (r < 0)
		return r;
	keys = sql_check_keys(&c, sql->start.keys);
	r = keys < 0 ? keys : sql_check_keys(&c, sql->end.keys);
	if (r >= 0 && r != keys)
		r = sql_wrong(&c, "the events have different numbers of keys", NULL);
	/* The names of variables are made of those of fields. */
	if (r >= 0)
		r = fields = sql_check_fields(&c);
	if (r >= 0)
		r = sql_check_variables(&c, sql->end.variables, true);
	if (r >= 0)
		r = sql_check_variables(&c, sql->start.variables, false);
	if (r >= 0)
		r = sql_check_arguments(&c, fields);
	if (r >= 0)
		r = sql_check_filter(&c, sql->start.filter);
	return r < 0 ? r : sql_check_filter(&c, sql->end.filter);
}

/* Refuses options with which times would be of another clock, or undoing would be unsafe. */
static int sql_check_request(const struct capture_request *request, struct error *err)
{
	const char *other = request->top_level ? "--top-level" : request->cpus ? "--cpus" : NULL;

	for (size_t i = 0; i < request->functions.only.count; i++)
		if (strstr(request->functions.only.items[i], ":traceon"))
			other = "a function that turns tracing on";
	if (event_triggers_have(request, "traceon"))
		other = "a trigger that turns tracing on";
	if (!other)
		return 0;
	error_set(err, -EINVAL, "--sql cannot be combined with %s", other);
	return error_hint(
		err, "%s",
		request->top_level
			? "triggers in the top-level buffer could not be told from others'"
			: "where nothing is recorded, the kernel takes times from another "
			  "clock");
}

static int sql_lacks(const char *part, const struct capture_sql *sql, struct error *err)
{
	error_set(err, -EOPNOTSUPP, "this kernel has no %s (%s)", part,
		  feature_needs(FEATURE_PART, part));
	/* Other SQL makes the event. */
	if (*sql->start.event == ':' || *sql->end.event == ':')
		return error_hint(err, "boot a kernel that has them");
	return error_hint(err, "boot a kernel that has them, or record both events: -e %s -e %s",
			  sql->start.event, sql->end.event);
}

static int sql_check_kernel(const struct tracefs *fs, const struct capture_sql *sql,
			    struct error *err)
{
	const char *event = *sql->start.event != ':' ? sql->start.event : sql->end.event;
	const char *colon = strchr(event, ':');
	char path[512];
	int folder;

	if (faccessat(tracefs_root(fs), SYNTHETIC_EVENTS, F_OK, 0) < 0)
		return sql_lacks("synthetic events", sql, err);
	folder = snprintf(path, sizeof(path), "events/%.*s/%s", (int)(colon - event), event,
			  colon + 1);
	if (colon == event || faccessat(tracefs_root(fs), path, F_OK, 0) < 0)
		return 0;
	snprintf(path + folder, sizeof(path) - (size_t)folder, "/hist");
	return faccessat(tracefs_root(fs), path, F_OK, 0) < 0 ? sql_lacks("histograms", sql, err)
							      : 0;
}

int synthetic_check(const struct tracefs *fs, const struct capture_request *request,
		    struct error *err)
{
	int r = request->sql_count ? sql_check_request(request, err) : 0;

	if (request->sql_count > SYNTHETIC_MAX)
		return error_set(err, -E2BIG, "more than %d events by SQL", SYNTHETIC_MAX);
	for (size_t i = 0; i < request->sql_count && r == 0; i++) {
		r = synthetic_check_pieces(&request->sql[i], err);
		for (size_t k = 0; k < i && r == 0; k++)
			if (strcmp(request->sql[k].name, request->sql[i].name) == 0)
				r = error_set(err, -EINVAL, "two events by SQL are called '%s'",
					      request->sql[i].name);
		if (r == 0)
			r = sql_check_kernel(fs, &request->sql[i], err);
	}
	return r;
}

/* Times, and what the kernel says of every event, are no addresses. */
static bool sql_field_is_common(const char *name, size_t len)
{
	static const char *const open[] = { "common_timestamp", "common_cpu", "common_comm" };

	for (size_t i = 0; i < ARRAY_SIZE(open); i++)
		if (strlen(open[i]) == len && memcmp(open[i], name, len) == 0)
			return true;
	return false;
}

static int sql_judge_field(const struct sql_checker *c, const char *event, const char *format,
			   const char *name, size_t len)
{
	enum event_field_kind kind = sql_field_is_common(name, len)
					     ? EVENT_FIELD_OPEN
					     : event_field_judge(format, name, len);

	if (kind == EVENT_FIELD_OPEN)
		return 0;
	error_set(c->err, kind == EVENT_FIELD_MISSING ? -EINVAL : -EPERM,
		  "the SQL event '%s': %s'%.*s' of %s %s", c->sql->name,
		  kind == EVENT_FIELD_MISSING ? "" : "only root may use ", (int)len, name, event,
		  event_field_reason(kind));
	return error_hint(c->err,
			  "'tracectl events -v %s' lists its fields; root may use all, or "
			  "allow it: \"raw_addresses = yes\" in [users] of traced.conf",
			  event);
}

/* Judges each field in the keys and in the variables' expressions. */
static int sql_judge_side(const struct sql_checker *c, const struct capture_sql_side *side,
			  const char *event, const char *format)
{
	const char *at = side->keys;
	struct synthetic_piece p;
	int r = 0;

	while (r == 0 && synthetic_next_piece(&at, ',', &p))
		r = sql_judge_field(c, event, format, p.text, p.len);
	at = side->variables;
	while (r == 0 && synthetic_next_piece(&at, ',', &p)) {
		const char *end = p.text + p.len, *q = (const char *)memchr(p.text, '=', p.len) + 1;

		while (r == 0 && q < end) {
			size_t len = 0;

			while (q + len < end && is_sql_char(q[len]))
				len++;
			if (len && q[-1] != '$' && q[-1] != '.')
				r = sql_judge_field(c, event, format, q, len);
			q += len + 1;
		}
	}
	return r == 0 && *side->filter ? user_filter_check(event, format, side->filter, c->err) : r;
}

static int sql_check_user_side(const struct tracefs *fs, const struct sql_checker *c,
			       const struct capture_event_bounds *bounds,
			       const struct capture_sql_side *side, const char *event)
{
	_cleanup_buf_ struct buf format = BUF_INIT;
	int r;

	if (*side->event != ':' && !event_is_within(bounds, event))
		return error_set(c->err, -EPERM, "only root may use '%s' in SQL", event);
	if (!bounds->hide_addresses)
		return 0;
	r = tracefs_format(fs, event, &format);
	if (r == 0 && !buf_string(&format))
		r = -ENOMEM;
	return r < 0 ? error_errno(c->err, r, "the SQL event '%s': no format of %s", c->sql->name,
				   event)
		     : sql_judge_side(c, side, event, format.data);
}

int synthetic_check_user(const struct tracefs *fs, const struct capture_request *request,
			 const struct synthetic_list *l, struct error *err)
{
	const struct capture_event_bounds *bounds = &request->bounds;
	int r = 0;

	if (l->count && bounds->only.count) {
		error_set(err, -EPERM, "only root may make events by SQL here");
		return error_hint(err, "events_allowed in [users] of traced.conf says which events "
				       "others may record");
	}
	for (size_t i = 0; i < l->count && r == 0; i++) {
		const struct capture_sql *sql = &request->sql[i];
		const struct sql_checker c = { sql, err };

		r = sql_check_user_side(fs, &c, bounds, &sql->start, l->items[i].start);
		if (r == 0)
			r = sql_check_user_side(fs, &c, bounds, &sql->end, l->items[i].end);
	}
	return r;
}
