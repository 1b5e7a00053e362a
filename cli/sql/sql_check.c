/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks SQL before libtracefs gets it, and finds mistakes that libtracefs does not name. */
#include <ctype.h>
#include <string.h>

#include "base/caret.h"
#include "sql.h"

#define SQL_LEN_MAX 4000
/* libtracefs derives longer names from these; traced takes up to 100 characters. */
#define WORD_LEN_MAX 80

bool sql_is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
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

/* Names, but no texts in quotes. */
static int sql_check_words(const char *sql, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;
	size_t len;

	for (const char *p = sql; *p; p += len) {
		const char *end = *p == '"' || *p == '\'' ? strchr(p + 1, *p) : NULL;

		len = end ? (size_t)(end - p) + 1 : 0;
		while (!end && sql_is_word_char(p[len]))
			len++;
		if (!end && len > WORD_LEN_MAX) {
			buf_put_caret(&place, sql, p);
			error_set(err, -EINVAL,
				  "the SQL of '%s': a name has more than %d characters%s", name,
				  WORD_LEN_MAX, buf_string(&place) ?: "");
			return error_hint(err, "give it a shorter one");
		}
		len += !len;
	}
	return 0;
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
	if (r < 0 || sql[strspn(sql, " ")])
		return r;
	error_set(err, -EINVAL, "the SQL of '%s' is empty", name);
	return error_hint(err, SQL_EXAMPLE);
}

int sql_check_option_name(const char *name, struct error *err)
{
	size_t len = 0;

	while (sql_is_word_char(name[len]))
		len++;
	if (len && !name[len] && len <= 40 && !isdigit((unsigned char)*name))
		return 0;
	error_set(err, -EINVAL, "'%.60s' is not a valid name of an event by SQL", name);
	return error_hint(err, "1 to 40 letters, digits and underscores, not a digit first");
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

const char *sql_find_unknown(const char *sql, const struct sql_format *formats, size_t count)
{
	const char *list = sql + MIN(strspn(sql, " ") + strlen("SELECT"), strlen(sql));
	const char *from = strcasestr(list, " FROM ") ?: list + strlen(list);

	while (list && list < from) {
		const char *field = list, *end = sql_item_field(&field);
		const char *dot = memrchr(field, '.', (size_t)(end - field));
		const char *name = dot ? dot + 1 : field;
		/* TIMESTAMP and the like are no fields. */
		bool found = end == name || isupper((unsigned char)*name);

		for (size_t i = 0; i < count && !found; i++)
			found = sql_format_has(formats[i].text, name, (size_t)(end - name));
		if (!found)
			return field;
		list = strchr(list, ',');
		if (list)
			list++;
	}
	return NULL;
}
