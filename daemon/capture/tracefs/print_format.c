/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/print_format.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"

#define CONVERSIONS_MAX 128

/* The letters of a format's conversions, one for each argument; '*' for a width or precision. */
struct conversions {
	char letters[CONVERSIONS_MAX];
	size_t count;
};

static const char *print_skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* p is at a quote. Returns the end behind the closing quote, or NULL. */
static const char *skip_quoted(const char *p, const char *end)
{
	char quote = *p++;

	for (; p < end && *p != quote; p++)
		p += *p == '\\';
	return p < end ? p + 1 : NULL;
}

/* Takes one conversion after its '%'. NULL: too many, or none. */
static const char *conversion_take(struct conversions *c, const char *p, const char *end)
{
	if (p < end && *p == '%')
		return p + 1;
	for (; p < end && strchr("-+ #0123456789.*hlLqjzt", *p) && *p; p++) {
		if (*p != '*')
			continue;
		if (c->count == CONVERSIONS_MAX)
			return NULL;
		c->letters[c->count++] = '*';
	}
	if (p == end || !isalpha((unsigned char)*p) || c->count == CONVERSIONS_MAX)
		return NULL;
	c->letters[c->count++] = *p;
	return p + 1;
}

/* Takes adjacent strings. Returns the place behind them, or NULL. */
static const char *conversions_take(struct conversions *c, const char *p, const char *end)
{
	if (p == end || *p != '"')
		return NULL;
	while (p < end && *p == '"') {
		const char *close = skip_quoted(p, end);

		if (!close)
			return NULL;
		for (p++; p && p < close - 1;)
			p = *p == '%' ? conversion_take(c, p + 1, close - 1) : p + 1;
		if (!p)
			return NULL;
		p = print_skip_blanks(close, end);
	}
	return p;
}

/* Finds the end of an argument: a comma outside of brackets, or the end. NULL: brackets differ. */
static const char *argument_end(const char *p, const char *end)
{
	unsigned depth = 0;

	while (p < end) {
		if (*p == '"' || *p == '\'') {
			p = skip_quoted(p, end);
			if (!p)
				return NULL;
			continue;
		}
		if (*p == ',' && !depth)
			break;
		if (strchr("([{", *p)) {
			depth++;
		} else if (strchr(")]}", *p)) {
			if (!depth)
				return NULL;
			depth--;
		}
		p++;
	}
	return depth ? NULL : p;
}

/* Length of "REC->FIELD" at p; 0: something else. */
static size_t field_at(const char *p, const char *end, struct span field)
{
	size_t len = strlen("REC->") + field.len;

	if ((size_t)(end - p) < len || memcmp(p, "REC->", 5) != 0 ||
	    memcmp(p + 5, field.text, field.len) != 0 || (p + len < end && span_name_char(p[len])))
		return 0;
	return len;
}

/* True if the argument names the field anywhere. */
static bool argument_has(struct span arg, struct span field)
{
	const char *end = arg.text + arg.len;

	for (const char *p = arg.text; p < end; p++)
		if (field_at(p, end, field))
			return true;
	return false;
}

static bool is_cast_word(struct span word)
{
	static const char *const words[] = { "unsigned", "signed", "long",    "int",	"short",
					     "char",	 "u8",	   "u16",     "u32",	"u64",
					     "s8",	 "s16",	   "s32",     "s64",	"__u64",
					     "__u32",	 "size_t", "ssize_t", "loff_t", "gfp_t" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (word.len == strlen(words[i]) && memcmp(word.text, words[i], word.len) == 0)
			return true;
	return false;
}

/*
 * True if the expression is the field, with casts and parentheses. with_masks: it may have
 * constants and operators, too, as sched_switch's state has.
 */
static bool is_field_alone(struct span arg, struct span field, bool with_masks)
{
	const char *p = arg.text, *end = arg.text + arg.len;
	bool found = false;

	while (p < end) {
		struct span word = { p, 0 };
		size_t len = found ? 0 : field_at(p, end, field);

		found |= len > 0;
		if (!len && isdigit((unsigned char)*p)) {
			if (!with_masks)
				return false;
			while (p < end && span_name_char(*p))
				p++;
		} else if (!len && span_name_char(*p)) {
			while (p < end && span_name_char(*p))
				p++;
			word.len = (size_t)(p - word.text);
			if (!is_cast_word(word))
				return false;
		} else if (!len) {
			if (!strchr(with_masks ? " \t()&|~<+-" : " \t()", *p) || !*p)
				return false;
			p++;
		}
		p += len;
	}
	return found;
}

/* True for "... __print_flags(FIELD, ...)", which prints unnamed bits as a number. */
static bool is_shown_by_names(struct span arg, struct span field)
{
	static const char *const helpers[] = { "__print_flags(", "__print_symbolic(",
					       "__print_flags_u64(", "__print_symbolic_u64(" };
	const char *end = arg.text + arg.len;

	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		const char *p = memmem(arg.text, arg.len, helpers[i], strlen(helpers[i]));

		if (p) {
			const char *first = p + strlen(helpers[i]), *comma;

			comma = memchr(first, ',', (size_t)(end - first));
			return comma &&
			       is_field_alone((struct span){ first, (size_t)(comma - first) },
					      field, true);
		}
	}
	return false;
}

static enum print_use argument_use(struct span arg, struct span field, char letter)
{
	if (!argument_has(arg, field))
		return PRINT_USE_UNKNOWN;
	if (letter == 'p')
		return PRINT_USE_POINTER;
	if (letter == 's')
		return is_shown_by_names(arg, field) ? PRINT_USE_SHOWN : PRINT_USE_UNKNOWN;
	if (!strchr("diuxXoc", letter) || !is_field_alone(arg, field, false))
		return PRINT_USE_UNKNOWN;
	return letter == 'x' || letter == 'X' ? PRINT_USE_HEX : PRINT_USE_SHOWN;
}

enum print_use print_format_use(const char *text, struct span field)
{
	const char *start = strstr(text, "print fmt:"), *end, *p;
	enum print_use use = PRINT_USE_UNKNOWN;
	struct conversions c = { .count = 0 };
	size_t i = 0;

	if (!start)
		return PRINT_USE_UNKNOWN;
	end = start + strcspn(start, "\n");
	p = conversions_take(&c, print_skip_blanks(start + strlen("print fmt:"), end), end);
	for (; p && p < end; i++) {
		struct span arg;
		const char *next;

		if (*p != ',')
			return PRINT_USE_UNKNOWN;
		arg.text = print_skip_blanks(p + 1, end);
		next = argument_end(arg.text, end);
		if (!next || i == c.count)
			return PRINT_USE_UNKNOWN;
		arg.len = (size_t)(next - arg.text);
		use = MAX(use, argument_use(arg, field, c.letters[i]));
		p = next;
	}
	return p && i == c.count ? use : PRINT_USE_UNKNOWN;
}
