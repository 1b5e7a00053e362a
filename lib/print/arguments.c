/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Follows print_function_args() of kernel/trace/trace_output.c. */
#include "print/arguments.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "print/printer.h"

#define LINUX_6_18 (6U << 16 | 18)

/* Lines sorted by their first word. If a function occurs twice, the first line counts. */
struct arguments {
	char *text;
	char **lines;
	size_t count;
	struct arguments *next; /* owned; the next chunk's lines */
};

/* Length of a line's key: a function's name, or "enum ID". */
static size_t line_key_length(const char *line)
{
	size_t len = strcspn(line, " ");

	if (len == 4 && !memcmp(line, "enum", 4) && line[len])
		len += 1 + strcspn(line + len + 1, " ");
	return len;
}

static int line_compare_keys(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = memcmp(a, b, MIN(a_len, b_len));

	return r ?: (a_len > b_len) - (a_len < b_len);
}

static int line_by_key(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return line_compare_keys(x, line_key_length(x), y, line_key_length(y)) ?: (x > y) - (x < y);
}

static int arguments_split(struct arguments *t, size_t len)
{
	size_t count = 1;

	for (size_t i = 0; i < len; i++)
		count += t->text[i] == '\n';
	t->lines = calloc(count, sizeof(*t->lines));
	if (!t->lines)
		return -ENOMEM;
	for (char *p = t->text, *end = t->text + len; p < end;) {
		char *nl = memchr(p, '\n', (size_t)(end - p)) ?: end;

		*nl = '\0';
		if (*p)
			t->lines[t->count++] = p;
		p = nl + 1;
	}
	qsort(t->lines, t->count, sizeof(*t->lines), line_by_key);
	return 0;
}

int arguments_add(struct arguments **t, const char *text, size_t len)
{
	struct arguments *added = calloc(1, sizeof(*added));

	if (!added)
		return -ENOMEM;
	added->text = malloc(len + 1);
	if (!added->text) {
		arguments_free(added);
		return -ENOMEM;
	}
	memcpy(added->text, text, len);
	added->text[len] = '\0';
	if (arguments_split(added, len) < 0) {
		arguments_free(added);
		return -ENOMEM;
	}
	while (*t)
		t = &(*t)->next;
	*t = added;
	return 0;
}

struct arguments *arguments_free(struct arguments *t)
{
	while (t) {
		struct arguments *next = t->next;

		free(t->text);
		free(t->lines);
		free(t);
		t = next;
	}
	return NULL;
}

/* Returns the text after the key, or NULL if no line has it. */
static const char *arguments_find(const struct arguments *t, const char *key)
{
	size_t len = strlen(key);

	for (; t; t = t->next) {
		size_t low = lower_bound(
			i, t->count,
			line_compare_keys(t->lines[i], line_key_length(t->lines[i]), key, len) < 0);

		if (low < t->count &&
		    !line_compare_keys(t->lines[low], line_key_length(t->lines[low]), key, len))
			return t->lines[low] + len;
	}
	return NULL;
}

static void arguments_put_line(const char *key, const char *rest, struct buf *out)
{
	buf_puts(out, key);
	buf_puts(out, rest);
	buf_putc(out, '\n');
}

void arguments_put_lines(const struct arguments *t, const char *function, struct buf *out)
{
	const char *rest = t ? arguments_find(t, function) : NULL;

	if (!rest)
		return;
	arguments_put_line(function, rest, out);
	for (const char *p = rest; (p = strstr(p, ":e")); p++) {
		char key[32];
		const char *values;

		snprintf(key, sizeof(key), "enum %u", (unsigned)strtoul(p + 2, NULL, 10));
		values = arguments_find(t, key);
		if (values)
			arguments_put_line(key, values, out);
	}
}

static uint64_t argument_value(const struct argument_iter *v)
{
	unsigned word = v->p->table->env.word_size;

	return load_uint(v->words + v->next * word, word, v->p->table->swap);
}

/* Hides kernel addresses whatever their type. */
static void argument_put_hex(struct argument_iter *v, struct buf *out)
{
	uint64_t x = argument_value(v);
	bool kernel = (int64_t)expr_normalize(x, v->p->table->env.word_size, true) < 0;

	buf_printf(out, "0x%" PRIx64, kernel ? printer_pointer(v->p, x) : x);
}

/* A kernel address is never an error code or a small negative number: these are not hidden. */
static void argument_put_decimal(struct argument_iter *v, struct buf *out)
{
	unsigned word = v->p->table->env.word_size;
	uint64_t x = expr_normalize(argument_value(v), word, true);

	if (word == 8 && number_is_address(x))
		x = printer_pointer(v->p, x);
	buf_printf(out, "%" PRId64, (int64_t)x);
}

/* Appends " [NAME]" if the enumeration has a name for the value. */
static void argument_put_enumerator(struct argument_iter *v, const char *type, struct buf *out)
{
	int64_t x = (int64_t)expr_normalize(argument_value(v), v->p->table->env.word_size, true);
	char key[32];
	const char *p;

	snprintf(key, sizeof(key), "enum %u", (unsigned)strtoul(type, NULL, 10));
	for (p = arguments_find(v->p->table->arguments, key); p && *p == ' ';) {
		const char *name = p + 1, *end = name + strcspn(name, " ");
		const char *equals = memchr(name, '=', (size_t)(end - name));

		if (equals && strtoll(equals + 1, NULL, 10) == x) {
			buf_puts(out, " [");
			buf_append(out, name, (size_t)(equals - name));
			buf_putc(out, ']');
			return;
		}
		p = end;
	}
}

/* Prints a structure of several words. Returns false at the end of the line. */
static bool argument_put_structure(struct argument_iter *v, const char *type, struct buf *out)
{
	unsigned word = v->p->table->env.word_size;
	const char *slash;
	uint64_t size = strtoul(type, (char **)&slash, 10);

	slash += *slash == '/';
	buf_putc(out, '(');
	buf_append(out, slash, strcspn(slash, " "));
	buf_puts(out, ")[");
	argument_put_hex(v, out);
	for (uint64_t x = word; x < size; x += word) {
		buf_putc(out, ':');
		if (++v->next >= v->count) {
			buf_puts(out, "...]");
			return false;
		}
		argument_put_hex(v, out);
	}
	buf_putc(out, ']');
	return true;
}

/* Returns false at the end of the line. */
static bool argument_put_typed(struct argument_iter *v, struct buf *out)
{
	uint32_t kernel = v->p->table->env.kernel;

	switch (*v->type) {
	case 'p':
		argument_put_hex(v, out);
		return true;
	case 'u':
		if (kernel && kernel < LINUX_6_18)
			argument_put_decimal(v, out);
		else
			argument_put_hex(v, out);
		return true;
	case 'i':
		argument_put_decimal(v, out);
		return true;
	case 'e':
		argument_put_decimal(v, out);
		argument_put_enumerator(v, v->type + 1, out);
		return true;
	case 's':
		return argument_put_structure(v, v->type + 1, out);
	default:
		buf_putc(out, '?');
		argument_put_hex(v, out);
		return true;
	}
}

void argument_iter_init(struct argument_iter *it, struct printer *p, uint64_t func,
			const uint8_t *words, size_t count)
{
	struct symbol symbol;

	*it = (struct argument_iter){ .p = p, .words = words, .count = count };
	if (printer_symbol(p, func, &symbol))
		it->line = arguments_find(p->table->arguments, symbol.name);
}

bool argument_next(struct argument_iter *it)
{
	const char *name = it->line ? it->line + 1 : NULL, *colon;

	if (!name || *it->line != ' ')
		return false;
	colon = name + strcspn(name, ": ");
	if (*colon != ':')
		return false;
	if (it->next >= it->count) {
		*it = (struct argument_iter){ .name = "..." };
		it->name_len = strlen(it->name);
		return true;
	}
	it->name = name;
	it->name_len = (size_t)(colon - name);
	it->type = colon + 1;
	it->line = colon + strcspn(colon, " ");
	return true;
}

void argument_put(struct argument_iter *it, struct buf *out)
{
	if (!argument_put_typed(it, out))
		it->line = NULL;
	it->next++;
}

void print_arguments(struct printer *p, uint64_t func, const uint8_t *args, size_t count,
		     struct buf *out)
{
	struct argument_iter it;
	bool first = true;

	argument_iter_init(&it, p, func, args, count);
	buf_putc(out, '(');
	for (; argument_next(&it); first = false) {
		if (!first)
			buf_puts(out, ", ");
		buf_append(out, it.name, it.name_len);
		if (!it.type)
			break;
		buf_putc(out, '=');
		argument_put(&it, out);
	}
	buf_putc(out, ')');
}
