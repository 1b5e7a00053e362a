/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The histogram of `hist --sql`. SQL of two events makes an event, whose fields are counted. SQL of
 * one event is a histogram already, in libtracefs's words: fields are keys, those that are cast to
 * _COUNTER_ are values.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/caret.h"
#include "base/io.h"
#include "hist.h"
#include "sql.h"

/* TRACING_MAP_KEYS_MAX */
#define KEYS_MAX 3

/* Takes the name of the next "TYPE NAME;" or "char NAME[16];". NULL: there is none. */
static char *sql_next_field(const char **fields)
{
	size_t len = strcspn(*fields, ";");
	const char *begin = *fields, *blank = memrchr(begin, ' ', len);
	const char *name = blank ? blank + 1 : begin;

	*fields += len;
	*fields += strspn(*fields, "; ");
	len -= (size_t)(name - begin);
	return len ? strndup(name, MIN(len, strcspn(name, "["))) : NULL;
}

/* The number-th piece of a list "a,b,c". */
static const char *sql_piece(const char *list, size_t number, size_t *ret_len)
{
	for (; number && list; number--) {
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	*ret_len = list ? strcspn(list, ",") : 0;
	return list;
}

/* Whether the field's value, a variable of the second event, is in microseconds. */
static bool sql_is_in_usecs(const Traced__Control__Sql *sql, size_t field)
{
	size_t len, piece_len;
	const char *variable = sql_piece(sql->arguments, field, &len), *piece;

	for (size_t i = 0; (piece = sql_piece(sql->end->variables, i, &piece_len)); i++)
		if (len && piece_len > len && piece[len] == '=' && !memcmp(piece, variable, len))
			return memmem(piece, piece_len, ".usecs", strlen(".usecs"));
	return false;
}

static int sql_check_key(const Traced__Control__Sql *sql, struct key_option *key,
			 char usecs[static 40], struct error *err)
{
	const char *fields = sql->fields;
	char *name;

	for (size_t i = 0; (name = sql_next_field(&fields)); i++) {
		bool is_key = strcmp(name, key->field) == 0;

		free(name);
		if (!is_key || !key->bucket_ns || !sql_is_in_usecs(sql, i))
			continue;
		if (key->bucket_ns % NSEC_PER_USEC)
			return error_set(err, -EINVAL,
					 "%s is in microseconds: its buckets can't be smaller",
					 key->field);
		snprintf(usecs, 40, "buckets=%" PRIu64, key->bucket_ns / NSEC_PER_USEC);
		key->modifier = usecs;
	}
	return 0;
}

static int sql_too_many_keys(const Traced__Control__Sql *sql, struct error *err)
{
	error_set(err, -EINVAL, "the kernel counts by %d fields at most, and '%s' selects more",
		  KEYS_MAX, sql->name);
	return error_hint(err, "choose with --key");
}

/* Every selected field is a key. */
static int sql_select_keys(const Traced__Control__Sql *sql, struct key_option keys[KEYS_MAX],
			   size_t *ret_count, struct error *err)
{
	const char *fields = sql->fields;
	char *name;

	while ((name = sql_next_field(&fields))) {
		if (*ret_count == KEYS_MAX) {
			free(name);
			return sql_too_many_keys(sql, err);
		}
		keys[(*ret_count)++].field = name;
	}
	return *ret_count ? 0 : error_set(err, -ENOMEM, "out of memory");
}

int sql_hist_of_sql(const struct options *o, const Traced__Control__Sql *sql, struct buf *out,
		    struct error *err)
{
	struct key_option keys[KEYS_MAX] = { 0 };
	char usecs[KEYS_MAX][40];
	size_t own = 0, count = MIN(o->key_count, (size_t)KEYS_MAX);
	int r = 0;

	if (o->key_count > KEYS_MAX)
		return sql_too_many_keys(sql, err);
	if (count)
		memcpy(keys, o->keys, count * sizeof(*keys));
	else
		r = sql_select_keys(sql, keys, &own, err);
	count += own;
	if (r == 0 && o->lone_buckets.modifier) {
		keys[count - 1].modifier = o->lone_buckets.modifier;
		keys[count - 1].bucket_ns = o->lone_buckets.bucket_ns;
	}
	for (size_t i = 0; i < count && r == 0; i++)
		r = sql_check_key(sql, &keys[i], usecs[i], err);
	if (r == 0)
		hist_put(o, sql->name, keys, count, out);
	for (size_t i = 0; i < own; i++)
		free((char *)(uintptr_t)keys[i].field);
	return r;
}

int sql_hist_of_event(const struct options *o, const char *event, const char *fields, size_t len,
		      const char *filter, struct buf *out, struct error *err)
{
	const char *other = o->key_count     ? "key"
			    : o->vals.count  ? "val"
			    : o->lone_filter ? "filter"
					     : NULL;
	const char *values = memmem(fields, len, ":vals=", strlen(":vals="));
	size_t keys = values ? (size_t)(values - fields) : len;

	if (other) {
		error_set(err, -EINVAL, "--%s is not of SQL without JOIN", other);
		return error_hint(err, "SELECT names the keys, CAST(FIELD AS _COUNTER_) a value, "
				       "WHERE filters");
	}
	buf_printf(out, "%s:%.*s", event + (*event == ':'), (int)keys, fields);
	if (o->lone_buckets.modifier)
		buf_printf(out, ".%s", o->lone_buckets.modifier);
	buf_append(out, fields + keys, len - keys);
	if (o->entries)
		buf_printf(out, ":size=%u", o->entries);
	if (filter && *filter)
		buf_printf(out, " if %s", filter);
	return 0;
}

/* Finds "CAST" outside of quoted texts. libtracefs ignores it in SQL of two events. */
static const char *sql_find_cast(const char *sql)
{
	static const char word[] = "cast";

	for (const char *p = sql; *p; p++) {
		p = (strchr("\"'", *p) ? sql_quote_end(p) : NULL) ?: p;
		if ((p > sql && (isalnum((unsigned char)p[-1]) || strchr("_.", p[-1]))) ||
		    strncasecmp(p, word, strlen(word)) != 0)
			continue;
		if (p[strlen(word) + strspn(p + strlen(word), " ")] == '(')
			return p;
	}
	return NULL;
}

int sql_check_casts(const char *name, const char *sql, struct error *err)
{
	const char *cast = sql_find_cast(sql);
	_cleanup_buf_ struct buf place = BUF_INIT;

	if (!cast)
		return 0;
	buf_put_caret(&place, sql, cast);
	error_set(err, -EINVAL, "the SQL of '%s': CAST is of SQL without JOIN%s", name,
		  buf_string(&place) ?: "");
	return error_hint(err, "tracectl hist --sql 'SELECT ... JOIN ...' --as NAME --sql 'SELECT "
			       "FIELD, CAST(FIELD AS _COUNTER_) FROM NAME'; or choose with --key, "
			       "--val");
}
