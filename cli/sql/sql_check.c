/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks SQL before libtracefs gets it, and finds mistakes that libtracefs does not name. */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/caret.h"
#include "sql.h"

#define SQL_LEN_MAX 4000
/* libtracefs derives longer names from these; traced takes up to 100 characters. */
#define WORD_LEN_MAX 80
/* The name that --as gives. */
#define NAME_LEN_MAX 40

bool sql_is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

const char *sql_quote_end(const char *quote)
{
	const char *end = strchr(quote + 1, *quote);

	while (end && *quote == '\'' && end[1] == '\'')
		end = strchr(end + 2, '\'');
	return end;
}

bool sql_is_word(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(text, word, len) == 0;
}

static int sql_check_char(const char *sql, const char *at, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;
	const unsigned char c = (unsigned char)*at;

	if (c >= ' ' && c < 0x7f)
		return 0;
	buf_put_caret(&place, sql, at);
	if (c < 0x80) {
		error_set(err, -EINVAL, "the SQL of '%s' has the control character 0x%02x%s", name,
			  c, buf_string(&place) ?: "");
		return error_hint(err, "leave it out");
	}
	error_set(err, -EINVAL, "the SQL of '%s' has a character that is not ASCII%s", name,
		  buf_string(&place) ?: "");
	return error_hint(err, "names of events and fields are ASCII, and so are the "
			       "quotes: \" and '");
}

/* Not "1e3", nor what 64 bits can't have. */
static bool sql_is_number(const char *text, size_t len, bool negative)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	return errno == 0 && end == text + len && (!negative || value <= 1ULL << 63);
}

static int sql_wrong_number(const char *sql, const char *at, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;

	buf_put_caret(&place, sql, at);
	error_set(err, -EINVAL, "the SQL of '%s': this is no number of the kernel's%s", name,
		  buf_string(&place) ?: "");
	return error_hint(err, "numbers are decimal or 0x..., from -%llu to %llu", 1ULL << 63,
			  ULLONG_MAX);
}

static int sql_no_stack(const char *sql, const char *at, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;

	buf_put_caret(&place, sql, at);
	error_set(err, -EINVAL, "the SQL of '%s': events by SQL have no stacks%s", name,
		  buf_string(&place) ?: "");
	if (!strcasestr(sql, " JOIN "))
		return error_hint(err, "count stacks with 'tracectl hist EVENT --key stacktrace'");
	return error_hint(err, "leave it out, and record the stack of one of the two events beside "
			       "this one: --trigger 'EVENT: stacktrace if FILTER'");
}

static int sql_check_quoted(const char *sql, const char *quote, const char *end, const char *name,
			    struct error *err)
{
	const char *inner = memchr(quote, '"', (size_t)(end - quote));
	_cleanup_buf_ struct buf place = BUF_INIT;

	if (*quote == '"' || !inner)
		return 0;
	buf_put_caret(&place, sql, inner);
	error_set(err, -EINVAL, "the SQL of '%s': libtracefs takes no text with a double quote%s",
		  name, buf_string(&place) ?: "");
	return error_hint(err, "compare with ~, and write ? in its place, which is any character");
}

static int sql_check_word(const char *sql, const char *word, size_t len, const char *name,
			  struct error *err)
{
	const bool begins = word == sql || word[-1] != '.';
	_cleanup_buf_ struct buf place = BUF_INIT;

	if (len > WORD_LEN_MAX) {
		buf_put_caret(&place, sql, word);
		error_set(err, -EINVAL, "the SQL of '%s': a name has more than %d characters%s",
			  name, WORD_LEN_MAX, buf_string(&place) ?: "");
		return error_hint(err, "give it a shorter one");
	}
	if (begins && isdigit((unsigned char)*word) &&
	    !sql_is_number(word, len, word > sql && word[-1] == '-'))
		return sql_wrong_number(sql, word, name, err);
	/* libtracefs takes these since 1.7 for the kernel's stack. */
	if (sql_is_word(word, len, "STACKTRACE") || sql_is_word(word, len, "common_stacktrace"))
		return sql_no_stack(sql, word, name, err);
	return 0;
}

/* Names, numbers, and texts in quotes. */
static int sql_check_words(const char *sql, const char *name, struct error *err)
{
	size_t len;
	int r = 0;

	for (const char *p = sql; *p && r == 0; p += len) {
		const char *end = strchr("\"'", *p) ? sql_quote_end(p) : NULL;

		len = 1;
		if (end) {
			r = sql_check_quoted(sql, p, end, name, err);
			len = (size_t)(end - p) + 1;
		} else if (sql_is_word_char(*p)) {
			while (sql_is_word_char(p[len]))
				len++;
			r = sql_check_word(sql, p, len, name, err);
		}
	}
	return r;
}

/* The field with which an item of the list of SELECT begins. Returns its end. */
static const char *sql_item_field(const char **item)
{
	static const char cast[] = "CAST";
	const char *open;

	*item += strspn(*item, " ");
	if (strncasecmp(*item, cast, strlen(cast)) == 0) {
		open = *item + strlen(cast) + strspn(*item + strlen(cast), " ");
		if (*open == '(')
			*item = open + 1;
	}
	*item += strspn(*item, "( ");
	return *item + strcspn(*item, " ,()+-");
}

/* libtracefs makes a field of its own of a sum or a difference. */
static bool sql_item_is_sum(const char *field_end)
{
	field_end += strspn(field_end, " ");
	return *field_end == '+' || *field_end == '-';
}

/* libtracefs loops on a field that is selected twice. */
static int sql_check_list(const char *sql, const char *name, struct error *err)
{
	const char *list = sql + MIN(strspn(sql, " ") + strlen("SELECT"), strlen(sql));
	const char *from = strcasestr(list, " FROM ") ?: list + strlen(list);
	_cleanup_buf_ struct buf place = BUF_INIT;

	for (const char *comma = list; (comma = strchr(comma, ',')) && comma < from; comma++) {
		const char *field = comma + 1, *end = sql_item_field(&field), *next = list;

		for (; next <= comma; next = strchr(next, ',') + 1) {
			const char *same = next, *same_end = sql_item_field(&same);

			if (end > field && same_end - same == end - field &&
			    !sql_item_is_sum(end) && !sql_item_is_sum(same_end) &&
			    memcmp(same, field, (size_t)(end - field)) == 0) {
				buf_put_caret(&place, sql, field);
				error_set(err, -EINVAL,
					  "the SQL of '%s': a field is selected twice%s", name,
					  buf_string(&place) ?: "");
				return error_hint(err, "select each field once");
			}
		}
	}
	return 0;
}

const char *sql_event_name(const char *at, size_t *ret_len)
{
	const char *event = at + strspn(at, " "), *next = event + strcspn(event, " ");

	next += strspn(next, " ");
	if (strncasecmp(next, "AS ", 3) == 0)
		event = next + 3 + strspn(next + 3, " ");
	else if (*next && strncasecmp(next, "JOIN ", 5) != 0 && strncasecmp(next, "ON ", 3) != 0)
		event = next;
	*ret_len = strcspn(event, " ");
	return event;
}

/* Whether "EVENT.FIELD" is of this event. */
static bool sql_is_of(const char *field, const char *end, const char *event, size_t len)
{
	const char *dot = memrchr(field, '.', (size_t)(end - field));

	return dot && (size_t)(dot - field) == len && memcmp(field, event, len) == 0;
}

/* libtracefs takes a difference the other way round, or not at all. */
static int sql_check_sums(const char *sql, const char *name, struct error *err)
{
	const char *list = sql + MIN(strspn(sql, " ") + strlen("SELECT"), strlen(sql));
	const char *from = strcasestr(list, " FROM ");
	const char *join = from ? strcasestr(from, " JOIN ") : NULL, *first, *second;
	_cleanup_buf_ struct buf place = BUF_INIT;
	size_t first_len, second_len;

	if (!join)
		return 0;
	first = sql_event_name(from + strlen(" FROM "), &first_len);
	second = sql_event_name(join + strlen(" JOIN "), &second_len);
	for (; list && list < from; list = strchr(list, ',')) {
		const char *field, *end, *other, *other_end;

		list += *list == ',';
		field = list;
		end = sql_item_field(&field);
		if (!sql_item_is_sum(end))
			continue;
		other = strpbrk(end, "+-") + 1;
		other_end = sql_item_field(&other);
		if (!sql_is_of(field, end, first, first_len) &&
		    !sql_is_of(other, other_end, second, second_len))
			continue;
		buf_put_caret(&place, sql, field);
		error_set(err, -EINVAL,
			  "the SQL of '%s': the second event comes first in a sum or a "
			  "difference%s",
			  name, buf_string(&place) ?: "");
		return error_hint(err, "write it as in (%.*s.FIELD - %.*s.FIELD) AS NAME",
				  (int)second_len, second, (int)first_len, first);
	}
	return 0;
}

#define DEPTH_MAX 64

/* For libtracefs, || binds more tightly than &&; for SQL and the kernel it is the other way. */
static int sql_check_logic(const char *sql, const char *name, struct error *err)
{
	const char *p = strcasestr(sql, " WHERE ");
	_cleanup_buf_ struct buf place = BUF_INIT;
	char seen[DEPTH_MAX] = "";
	size_t depth = 0;

	for (; p && *p; p++) {
		const char *end = strchr("\"'", *p) ? sql_quote_end(p) : NULL;

		if (end) {
			p = end;
		} else if (*p == '(') {
			if (++depth == DEPTH_MAX)
				return 0;
			seen[depth] = '\0';
		} else if (*p == ')' && depth) {
			depth--;
		} else if ((*p == '&' || *p == '|') && p[1] == *p) {
			if (seen[depth] && seen[depth] != *p) {
				buf_put_caret(&place, sql, p);
				error_set(err, -EINVAL,
					  "the SQL of '%s': && and || beside each other%s", name,
					  buf_string(&place) ?: "");
				return error_hint(err, "put one of them into parentheses");
			}
			seen[depth] = *p++;
		}
	}
	return 0;
}

/* Blanks in place of line breaks and tabs keep the places of errors. */
int sql_check_text(char *sql, const char *name, struct error *err)
{
	int r = 0;

	if (strlen(sql) > SQL_LEN_MAX) {
		error_set(err, -E2BIG, "the SQL of '%s' has more than %d bytes", name, SQL_LEN_MAX);
		return error_hint(err, "select less, or give it fewer conditions");
	}
	/* libtracefs would read beyond the end of some texts, so it gets ASCII alone. */
	for (char *p = sql; *p && r == 0; p++) {
		if (strchr("\n\r\t", *p))
			*p = ' ';
		r = sql_check_char(sql, p, name, err);
	}
	if (r == 0)
		r = sql_check_words(sql, name, err);
	if (r == 0)
		r = sql_check_list(sql, name, err);
	if (r == 0)
		r = sql_check_sums(sql, name, err);
	if (r == 0)
		r = sql_check_logic(sql, name, err);
	if (r < 0 || sql[strspn(sql, " ")])
		return r;
	error_set(err, -EINVAL, "the SQL of '%s' is empty", name);
	return error_hint(err, SQL_EXAMPLE);
}

int sql_check_option_name(const char *name, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;
	size_t len = 0;

	while (len < NAME_LEN_MAX && sql_is_word_char(name[len]))
		len++;
	if (isdigit((unsigned char)*name))
		len = 0;
	if (len && !name[len])
		return 0;
	buf_put_caret(&place, name, name + len);
	error_set(err, -EINVAL, "'%.60s' is not a valid name of an event by SQL%s", name,
		  buf_string(&place) ?: "");
	return error_hint(err, "1 to %d letters, digits and underscores, not a digit first",
			  NAME_LEN_MAX);
}

/* Whether an event's format has "field:TYPE NAME;" or "field:TYPE NAME[16];". TYPE may end in "[]".
 */
static bool sql_format_has(const char *format, const char *name, size_t len)
{
	for (const char *p = format; (p = strstr(p, "\tfield:")); p++) {
		const char *end = p + strcspn(p, ";");
		const char *bracket = end[-1] == ']' ? memrchr(p, '[', (size_t)(end - p)) : NULL;

		end = bracket ?: end;
		if ((size_t)(end - p) > len && memcmp(end - len, name, len) == 0 &&
		    !sql_is_word_char(end[-1 - (ptrdiff_t)len]))
			return true;
	}
	return false;
}

/* Whether FROM or JOIN have an event or an alias of that name. */
static bool sql_names_event(const char *from, const char *name, size_t len)
{
	const char *p = from;

	for (; len && (p = memmem(p, strlen(p), name, len)); p += len)
		if (!sql_is_word_char(p[-1]) && !sql_is_word_char(p[len]) && p[len] != '.')
			return true;
	return false;
}

/* Finds why a selected field is wrong. NULL: it is not. */
static const char *sql_judge_selected(const char *field, const char *end, const char *from,
				      const struct sql_format *formats, size_t count)
{
	const char *dot = memrchr(field, '.', (size_t)(end - field));
	const char *name = dot ? dot + 1 : field, *event = dot;
	const size_t len = (size_t)(end - name);

	while (event && event > field && sql_is_word_char(event[-1]))
		event--;
	if (dot && !sql_names_event(from, event, (size_t)(dot - event)))
		return "FROM and JOIN have no such event";
	if (!dot && strcasestr(from, " JOIN "))
		return "a field of SQL with JOIN needs its event: EVENT.FIELD";
	for (size_t i = 0; i < count; i++)
		if (sql_format_has(formats[i].text, name, len))
			return NULL;
	if (dot &&
	    (sql_is_word(name, len, "TIMESTAMP") || sql_is_word(name, len, "TIMESTAMP_USECS")))
		return NULL;
	return SQL_NO_FIELD;
}

const char *sql_find_unknown(const char *sql, const struct sql_format *formats, size_t count,
			     const char **ret_why)
{
	const char *list = sql + MIN(strspn(sql, " ") + strlen("SELECT"), strlen(sql));
	const char *from = strcasestr(list, " FROM ") ?: list + strlen(list);

	while (list && list < from) {
		const char *field = list, *end = sql_item_field(&field);

		*ret_why =
			end > field ? sql_judge_selected(field, end, from, formats, count) : NULL;
		if (*ret_why)
			return field;
		/* The second part of a sum, or the next item. */
		list = sql_item_is_sum(end) ? strpbrk(end, "+-") : strchr(list, ',');
		if (list)
			list++;
	}
	return NULL;
}
