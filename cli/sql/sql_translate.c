/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SQL in libtracefs's words. It knows TIMESTAMP_DELTA since 1.8 only, no single quotes, and of
 * numbers those from 0 to LONG_MAX. It takes over texts in quotes as they are. So other numbers
 * become texts that begin with a character that no SQL has, and lose the quotes afterwards.
 */
#include <ctype.h>
#include <string.h>

#include "sql.h"

#define NUMBER_MARK '\x01'

void sql_translation_deinit(struct sql_translation *t)
{
	buf_deinit(&t->sql);
	buf_deinit(&t->places);
}

/* Appends text of which each byte is `step` bytes of the SQL behind the one before it. */
static void sql_put(struct sql_translation *t, const char *text, size_t len, size_t place,
		    size_t step)
{
	for (size_t i = 0; i < len; i++, place += step) {
		const uint16_t at = (uint16_t)place;

		buf_putc(&t->sql, text[i]);
		buf_append(&t->places, &at, sizeof(at));
	}
}

static void sql_put_word(struct sql_translation *t, const char *word, size_t place)
{
	sql_put(t, word, strlen(word), place, 0);
}

/* The two events of a JOIN, as the SQL calls them. */
struct sql_pair {
	const char *from; /* NULL: there is no JOIN */
	const char *first, *second;
	size_t first_len, second_len;
};

static struct sql_pair sql_find_pair(const char *sql)
{
	const char *from = strcasestr(sql, " FROM "),
		   *join = from ? strcasestr(from, " JOIN ") : NULL;
	struct sql_pair pair = { 0 };

	if (join) {
		pair.from = from;
		pair.first = sql_event_name(from + strlen(" FROM "), &pair.first_len);
		pair.second = sql_event_name(join + strlen(" JOIN "), &pair.second_len);
	}
	return pair;
}

/* A word of the list of SELECT. False: it stands for no difference. */
static bool sql_put_delta(struct sql_translation *t, const struct sql_pair *pair, const char *sql,
			  const char *word, size_t len)
{
	const bool in_usecs = sql_is_word(word, len, "TIMESTAMP_DELTA_USECS");
	const char *unit = in_usecs ? "_USECS" : "";
	_cleanup_buf_ struct buf difference = BUF_INIT;

	if (!in_usecs && !sql_is_word(word, len, "TIMESTAMP_DELTA"))
		return false;
	if (word == sql || !strchr(" ,(", word[-1]) || !strchr(" ,", word[len]))
		return false;
	buf_printf(&difference, "(%.*s.TIMESTAMP%s - %.*s.TIMESTAMP%s)", (int)pair->second_len,
		   pair->second, unit, (int)pair->first_len, pair->first, unit);
	sql_put_word(t, buf_string(&difference) ?: "", (size_t)(word - sql));
	return true;
}

/* Length of a number behind an operator that libtracefs does not take. 0: there is none. */
static size_t sql_other_number_len(const char *where, const char *p)
{
	const bool negative = *p == '-';
	const char *before = p - 1;
	size_t len = negative;

	while (sql_is_word_char(p[len]))
		len++;
	while (before > where && *before == ' ')
		before--;
	if (!isdigit((unsigned char)p[negative]) || !strchr("<>=&", *before))
		return 0;
	errno = 0;
	strtol(p, NULL, 0);
	return negative || errno ? len : 0;
}

static void sql_put_number(struct sql_translation *t, const char *number, size_t len, size_t place)
{
	sql_put(t, (const char[]){ '"', NUMBER_MARK }, 2, place, 0);
	sql_put(t, number, len, place, 1);
	sql_put_word(t, "\"", place);
}

/* A text in single quotes, in which two of them are one. */
static void sql_put_text(struct sql_translation *t, const char *sql, const char *quote,
			 const char *end)
{
	sql_put_word(t, "\"", (size_t)(quote - sql));
	for (const char *p = quote + 1; p < end; p += *p == '\'' ? 2 : 1)
		sql_put(t, p, 1, (size_t)(p - sql), 0);
	sql_put_word(t, "\"", (size_t)(end - sql));
}

int sql_translate(const char *sql, struct sql_translation *t)
{
	const char *where = strcasestr(sql, " WHERE ");
	const struct sql_pair pair = sql_find_pair(sql);
	size_t len;

	for (const char *p = sql; *p; p += len) {
		const char *end = strchr("\"'", *p) ? sql_quote_end(p) : NULL;
		const size_t place = (size_t)(p - sql);

		len = 1;
		if (end) {
			len = (size_t)(end - p) + 1;
			if (*p == '\'')
				sql_put_text(t, sql, p, end);
			else
				sql_put(t, p, len, place, 1);
		} else if (where && p > where && (len = sql_other_number_len(where, p))) {
			sql_put_number(t, p, len, place);
		} else {
			len = 1;
			while (sql_is_word_char(*p) && sql_is_word_char(p[len]))
				len++;
			if (!pair.from || p >= pair.from || !sql_put_delta(t, &pair, sql, p, len))
				sql_put(t, p, len, place, 1);
		}
	}
	return buf_string(&t->sql) && buf_error(&t->places) == 0 ? 0 : -ENOMEM;
}

size_t sql_translation_place(const struct sql_translation *t, size_t at)
{
	uint16_t place = 0;

	if (!t->sql.len)
		return 0;
	memcpy(&place, t->places.data + MIN(at, t->sql.len - 1) * sizeof(place), sizeof(place));
	return at < t->sql.len ? place : (size_t)place + 1;
}

void sql_put_numbers_back(const char *text, struct buf *out)
{
	static const char begin[] = { '"', NUMBER_MARK, '\0' };

	for (const char *p; (p = strstr(text, begin)); text += *text == '"') {
		buf_append(out, text, (size_t)(p - text));
		text = p + strlen(begin);
		buf_append(out, text, strcspn(text, "\""));
		text += strcspn(text, "\"");
	}
	buf_puts(out, text);
}
