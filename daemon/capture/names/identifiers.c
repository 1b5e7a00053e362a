/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/identifiers.h"

#include <ctype.h>

void identifiers_deinit(struct identifiers *ids)
{
	buf_deinit(&ids->text);
	free(ids->names);
	*ids = (struct identifiers){ 0 };
}

static bool is_identifier_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Returns the end of the literal that begins at p. */
static const char *skip_literal(const char *p)
{
	char quote = *p++;

	while (*p && *p != quote)
		p += *p == '\\' && p[1] ? 2 : 1;
	return *p ? p + 1 : p;
}

/* True for a name that stands alone, not for a member after "." or "->". */
static bool identifier_is_free(const char *word, const char *end)
{
	if (isdigit((unsigned char)*word) || word[-1] == '.' ||
	    (word[-1] == '>' && word[-2] == '-'))
		return false;
	end += strspn(end, " ");
	return *end != '(' && !(end[0] == '-' && end[1] == '>');
}

/* Words of C and the kernel's types: no constants. Without others the BTF need not be read. */
static bool identifier_is_type(const char *word, size_t len)
{
	static const char *const types[] = {
		"REC",	   "bool",	"char",	   "const",    "enum",	   "gfp_t",    "int",
		"int16_t", "int32_t",	"int64_t", "int8_t",   "long",	   "s16",      "s32",
		"s64",	   "s8",	"short",   "signed",   "size_t",   "struct",   "u16",
		"u32",	   "u64",	"u8",	   "uint",     "uint16_t", "uint32_t", "uint64_t",
		"uint8_t", "uintptr_t", "union",   "unsigned", "void",
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i]) == len && memcmp(types[i], word, len) == 0)
			return true;
	return false;
}

/* True for the field's name in __get_str(name) and its like. */
static bool identifier_is_field(const char *begin, const char *word)
{
	const char *p = word - 1;

	if (*p != '(')
		return false;
	while (p > begin && is_identifier_char(p[-1]))
		p--;
	return strncmp(p, "__get_", 6) == 0;
}

static void identifiers_add(struct identifiers *ids, const char *word, size_t len)
{
	buf_append(&ids->text, word, len);
	buf_putc(&ids->text, '\0');
}

void identifiers_collect(struct identifiers *ids, const char *format)
{
	const char *p = strstr(format, "\nprint fmt:");

	if (!p)
		return;
	for (p += strlen("\nprint fmt:"); *p;) {
		const char *word = p;

		if (*p == '"' || *p == '\'') {
			p = skip_literal(p);
			continue;
		}
		if (!is_identifier_char(*p)) {
			p++;
			continue;
		}
		while (is_identifier_char(*p))
			p++;
		if (identifier_is_free(word, p) && !identifier_is_field(format, word) &&
		    !identifier_is_type(word, (size_t)(p - word)))
			identifiers_add(ids, word, (size_t)(p - word));
		else if (strncmp(word, "jiffies_to_msecs", (size_t)(p - word)) == 0)
			identifiers_add(ids, "HZ", 2);
	}
}

static int identifiers_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int identifiers_sort(struct identifiers *ids)
{
	const char *end;
	size_t n = 0, kept = 0;

	if (buf_error(&ids->text))
		return -ENOMEM;
	if (!ids->text.len)
		return 0;
	end = ids->text.data + ids->text.len;
	for (size_t i = 0; i < ids->text.len; i++)
		n += !ids->text.data[i];
	free(ids->names);
	ids->names = calloc(n + 1, sizeof(*ids->names));
	if (!ids->names)
		return -ENOMEM;
	n = 0;
	for (const char *p = ids->text.data; p < end; p += strlen(p) + 1)
		ids->names[n++] = p;
	qsort(ids->names, n, sizeof(*ids->names), identifiers_compare);
	for (size_t i = 0; i < n; i++)
		if (!kept || strcmp(ids->names[kept - 1], ids->names[i]) != 0)
			ids->names[kept++] = ids->names[i];
	ids->count = kept;
	return 0;
}

bool format_wants_symbols(const char *text)
{
	const char *p = strstr(text, "\nprint fmt:");

	if (!p)
		return false;
	/* The kernel prints a probe's address as a symbol, whatever its format says. */
	if (strstr(p, "REC->__probe_") || strstr(p, "__get_stacktrace("))
		return true;
	while ((p = strchr(p, '%'))) {
		p++;
		p += strspn(p, "-+ #0123456789*.");
		if (*p == 'p' && p[1] && strchr("sSfFB", p[1]))
			return true;
		p += *p == '%';
	}
	return false;
}
