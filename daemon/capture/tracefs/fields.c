/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/fields.h"

#include <ctype.h>
#include <string.h>

#include "base/nearest.h"

#define FIELDS_MAX 64
#define NAME_MAX_BYTES 64

struct fields {
	char names[FIELDS_MAX][NAME_MAX_BYTES];
	const char *list[FIELDS_MAX];
	size_t count;
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/*
 * "char prev_comm[16];\toffset:8;...", "__data_loc char[] name;...": takes the last word, without
 * its array size.
 */
static void add_field(struct fields *f, const char *decl)
{
	size_t end = strcspn(decl, ";"), begin;

	if (end && decl[end - 1] == ']') {
		while (end && decl[end - 1] != '[')
			end--;
		end -= end > 0;
	}
	for (begin = end; begin && is_name(decl[begin - 1]);)
		begin--;
	if (begin == end || end - begin >= NAME_MAX_BYTES || f->count == FIELDS_MAX ||
	    !strncmp(decl + begin, "common_", 7))
		return;
	memcpy(f->names[f->count], decl + begin, end - begin);
	f->names[f->count][end - begin] = '\0';
	f->list[f->count] = f->names[f->count];
	f->count++;
}

static void read_fields(struct fields *f, const char *format)
{
	f->count = 0;
	for (const char *p = strstr(format, "field:"); p; p = strstr(p, "field:")) {
		p += strlen("field:");
		add_field(f, p);
	}
}

/* Names that the kernel accepts in any filter, besides the fields. */
static bool is_generic(const char *name)
{
	static const char *const generic[] = { "CPU", "cpu", "COMM", "comm", "stacktrace" };

	for (size_t i = 0; i < ARRAY_SIZE(generic); i++) {
		if (!strcmp(name, generic[i]))
			return true;
	}
	return !strncmp(name, "common_", 7);
}

static bool is_field(const struct fields *f, const char *name)
{
	for (size_t i = 0; i < f->count; i++) {
		if (!strcmp(f->list[i], name))
			return true;
	}
	return is_generic(name);
}

/* Finds the first name left of an operator that is not a field. */
static bool find_unknown(const struct fields *f, const char *filter,
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
		while (is_name(p[len]))
			len++;
		after = p + len + strspn(p + len, " \t");
		if (len && len < NAME_MAX_BYTES && !isdigit((unsigned char)*p) &&
		    strchr("=!<>~&", *after) && *after && strncmp(after, "&&", 2) != 0) {
			memcpy(name, p, len);
			name[len] = '\0';
			if (!is_field(f, name))
				return true;
		}
		p += len ?: 1;
	}
	return false;
}

void fields_hint(const char *format, const char *filter, struct buf *out)
{
	char unknown[NAME_MAX_BYTES];
	const char *best[NEAREST_MAX];
	struct fields f;
	size_t n = 0;

	read_fields(&f, format);
	if (!f.count)
		return;
	if (find_unknown(&f, filter, unknown))
		n = nearest_names(unknown, f.list, f.count, best);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s'%s'", i ? ", " : "did you mean ", best[i]);
	buf_puts(out, n ? "? Its fields are" : "its fields are");
	for (size_t i = 0; i < f.count; i++)
		buf_printf(out, "%s %s", i ? "," : "", f.list[i]);
}
