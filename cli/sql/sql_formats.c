/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtracefs looks at formats for the fields' names, types and sizes. So the format of an event
 * that the recording will make can be written from its definition. The kernel checks the sizes
 * again when it gets the triggers.
 */
#include <ctype.h>
#include <string.h>

#include "sql.h"

static void sql_put_head(struct buf *out, const char *name, size_t len)
{
	/* Numbers of events only have to differ. */
	static unsigned id = 40000;

	buf_printf(out,
		   "name: %.*s\nID: %u\nformat:\n"
		   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		   "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		   "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		   (int)len, name, id++);
}

static void sql_put_field(struct buf *out, const char *type, size_t type_len, const char *name,
			  size_t name_len, unsigned size, bool is_signed)
{
	buf_printf(out, "\tfield:%.*s %.*s;\toffset:8;\tsize:%u;\tsigned:%d;\n", (int)type_len,
		   type, (int)name_len, name, size, is_signed);
}

static char *sql_format_end(struct buf *out)
{
	buf_puts(out, "\nprint fmt: \"\"\n");
	return buf_string(out) ? TAKE_PTR(out->data) : NULL;
}

/* Puts a field of a type of probes: "u8" to "s64", "x32", "string". Skips others. */
static void sql_put_typed(struct buf *out, const char *type, size_t type_len, const char *name,
			  size_t name_len)
{
	static const char *const plain[] = { "8", "16", "32", "64" };
	char kernel[4] = "";

	if ((type_len == 6 && memcmp(type, "string", 6) == 0) ||
	    (type_len == 7 && memcmp(type, "ustring", 7) == 0)) {
		sql_put_field(out, "__data_loc char[]", 17, name, name_len, 4, true);
		return;
	}
	if (type_len < 2 || type_len > 3 || !strchr("usx", *type))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		if (strlen(plain[i]) != type_len - 1 ||
		    memcmp(plain[i], type + 1, type_len - 1) != 0)
			continue;
		snprintf(kernel, sizeof(kernel), "%c%s", *type == 's' ? 's' : 'u', plain[i]);
		sql_put_field(out, kernel, type_len, name, name_len, 1U << i, *type == 's');
	}
}

/* "NAME=FETCH:TYPE". Without a type the kernel takes a whole word, unless it knows better by BTF.
 */
static void sql_put_argument(struct buf *out, const char *argument, size_t len)
{
	const char *equal = memchr(argument, '=', len), *fetch, *colon;
	size_t name_len = equal ? (size_t)(equal - argument) : 0, fetch_len;

	if (!name_len)
		return;
	fetch = equal + 1;
	fetch_len = len - name_len - 1;
	colon = memrchr(fetch, ':', fetch_len);
	if (colon)
		sql_put_typed(out, colon + 1, fetch_len - (size_t)(colon + 1 - fetch), argument,
			      name_len);
	else if (fetch_len == 5 && memcmp(fetch, "$comm", 5) == 0)
		sql_put_typed(out, "string", 6, argument, name_len);
	else if (fetch_len && strchr("%$@+-", *fetch))
		sql_put_typed(out, sizeof(long) == 8 ? "u64" : "u32", 3, argument, name_len);
}

char *sql_format_of_probe(const char *definition, char **ret_name)
{
	const char *colon = strchr(definition, ':'), *name = colon ? colon + 1 : "";
	size_t len = strcspn(name, " ");
	const char *p = name + len;
	_cleanup_buf_ struct buf out = BUF_INIT;

	*ret_name = NULL;
	/* Without a name of its own the probe can't be named in SQL. */
	if (!len || !strchr("pr", *definition) ||
	    memchr(definition, ' ', (size_t)(name - definition)))
		return NULL;
	sql_put_head(&out, name, len);
	sql_put_field(&out, "unsigned long", 13, "__probe_ip", 10, sizeof(long), false);
	/* The first word is the place. */
	for (bool place = true; *p; place = false) {
		size_t word;

		p += strspn(p, " ");
		word = strcspn(p, " ");
		if (!place)
			sql_put_argument(&out, p, word);
		p += word;
	}
	*ret_name = strndup(name, len);
	return sql_format_end(&out);
}

static void sql_put_synthetic_field(struct buf *out, const char *text, size_t len)
{
	static const struct {
		const char *type;
		unsigned size;
		bool is_signed;
	} types[] = { { "pid_t", 4, true },
		      { "gfp_t", 4, false },
		      { "bool", 1, false },
		      { "char", 1, true },
		      { "unsigned char", 1, false } };
	const char *blank = memrchr(text, ' ', len), *name = blank ? blank + 1 : text;
	size_t type_len = blank ? (size_t)(blank - text) : 0,
	       name_len = len - (size_t)(name - text);
	const char *bracket = memchr(name, '[', name_len);

	if (bracket && bracket[1] == ']') {
		sql_put_typed(out, "string", 6, name, (size_t)(bracket - name));
		return;
	}
	if (bracket) {
		sql_put_field(out, text, type_len, name, name_len,
			      (unsigned)strtoul(bracket + 1, NULL, 10), true);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i].type) == type_len && memcmp(types[i].type, text, type_len) == 0)
			sql_put_field(out, text, type_len, name, name_len, types[i].size,
				      types[i].is_signed);
	sql_put_typed(out, text, type_len, name, name_len);
}

char *sql_format_of_fields(const char *name, const char *fields)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	sql_put_head(&out, name, strlen(name));
	while (*fields) {
		size_t len = strcspn(fields, ";");

		sql_put_synthetic_field(&out, fields, len);
		fields += len;
		fields += strspn(fields, "; ");
	}
	return sql_format_end(&out);
}
