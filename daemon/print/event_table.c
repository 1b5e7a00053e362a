/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/event_table.h"

#include <ctype.h>
#include <string.h>

#include "print/funcgraph.h"
#include "print/lexer.h"
#include "print/printer.h"

static struct tep_handle *new_tep(const struct event_table_env *env)
{
	struct tep_handle *tep = tep_alloc();

	if (!tep)
		return NULL;
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(tep, (int)env->word_size);
	tep_set_page_size(tep, 4096);
	tep_set_file_bigendian(tep, env->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_local_bigendian(tep, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? TEP_BIG_ENDIAN
									    : TEP_LITTLE_ENDIAN);
	return tep;
}

int event_table_new(struct event_table **ret, const struct event_table_env *env)
{
	struct event_table *t;

	if (env->word_size != 4 && env->word_size != 8)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->env = *env;
	t->swap = env->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	pthread_mutex_init(&t->tep_lock, NULL);
	t->tep = new_tep(env);
	t->printing = new_tep(env);
	t->symbols = symbol_store_new();
	if (!t->tep || !t->printing || !t->symbols) {
		event_table_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

struct event_table *event_table_free(struct event_table *t)
{
	if (t) {
		free(t->by_id);
		free(t->all);
		printk_formats_deinit(&t->printk);
		constants_deinit(&t->constants);
		symbol_store_free(t->symbols);
		arguments_free(t->arguments);
		tep_free(t->tep);
		tep_free(t->printing);
		pthread_mutex_destroy(&t->tep_lock);
		arena_deinit(&t->arena);
		free(t);
	}
	return NULL;
}

static void fill_field(struct event_table *t, struct field *f, const struct tep_format_field *from)
{
	struct expr_type type;
	size_t len = strcspn(from->type, " [");

	*f = (struct field){
		.name = from->name,
		.type = from->type,
		.offset = (uint32_t)MAX(from->offset, 0),
		.size = (uint32_t)MAX(from->size, 0),
		.is_signed = from->flags & TEP_FIELD_IS_SIGNED,
		.is_array = from->flags & TEP_FIELD_IS_ARRAY,
		.is_string = from->flags & TEP_FIELD_IS_STRING,
		.is_pointer = from->flags & TEP_FIELD_IS_POINTER,
		.is_dynamic = from->flags & TEP_FIELD_IS_DYNAMIC,
		.is_relative = from->flags & TEP_FIELD_IS_RELATIVE,
	};
	f->element_size = f->is_array ? (uint32_t)from->elementsize : f->size;
	/* A dynamic or open array's elements are known by their type alone. */
	if (f->is_dynamic || f->is_relative || (f->is_array && !f->size)) {
		const char *name = from->type;

		if (!strncmp(name, "__data_loc ", 11) || !strncmp(name, "__rel_loc ", 10))
			name = strchr(name, ' ') + 1;
		if (!strncmp(name, "unsigned ", 9) && name[9] != '[')
			name += 9;
		len = strcspn(name, " [");
		f->element_size =
			expr_type_by_name(name, len, t->env.word_size, &type) ? type.size : 1;
	}
	/* libtraceevent calls a __data_loc array too; the field itself is a location. */
	if (f->is_dynamic || f->is_relative)
		f->is_array = false;
}

#define FIELD_END_MAX (1 << 20) /* bytes; above the longest record */

static int fill_list(struct event_table *t, const struct tep_format_field *from, int max,
		     const struct field **ret, size_t *ret_count)
{
	struct field *fields = arena_alloc(&t->arena, ((size_t)MAX(max, 0) + 1) * sizeof(*fields));
	size_t n = 0;

	if (!fields)
		return -ENOMEM;
	for (; from && n < (size_t)MAX(max, 0); from = from->next) {
		/* No record is that long; and no sum of the two is to overflow. */
		if (from->offset < 0 || from->size < 0 || from->offset > FIELD_END_MAX ||
		    from->size > FIELD_END_MAX - from->offset)
			return -EBADMSG;
		fill_field(t, &fields[n++], from);
	}
	*ret = fields;
	*ret_count = n;
	return 0;
}

static int fill_fields(struct event_table *t, struct event *ev, const struct tep_event *from)
{
	const struct tep_format *f = &from->format;
	int r = fill_list(t, f->fields, f->nr_fields, &ev->fields, &ev->field_count);

	return r < 0 ? r
		     : fill_list(t, f->common_fields, f->nr_common, &ev->common, &ev->common_count);
}

static int fill_funcgraph(struct event_table *t, struct event *ev)
{
	struct funcgraph_layout layout, *copy;

	if (!funcgraph_layout_find(ev, &layout))
		return 0;
	copy = arena_alloc(&t->arena, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = layout;
	ev->funcgraph = copy;
	return 0;
}

static void fill_common(struct event_table *t, const struct tep_event *from)
{
	if (t->common.size)
		return;
	for (const struct tep_format_field *f = from->format.common_fields; f; f = f->next) {
		uint32_t offset = (uint32_t)MAX(f->offset, 0);

		if (!strcmp(f->name, "common_flags"))
			t->common.flags_offset = offset;
		else if (!strcmp(f->name, "common_preempt_count"))
			t->common.preempt_offset = offset;
		else if (!strcmp(f->name, "common_pid"))
			t->common.pid_offset = offset;
		t->common.size = MAX(t->common.size, offset + (uint32_t)MAX(f->size, 0));
	}
}

static int grow_ids(struct event_table *t, size_t id)
{
	size_t count = MAX(id + 1, t->id_count * 2);
	struct event_entry **by_id;

	if (id < t->id_count)
		return 0;
	by_id = reallocarray(t->by_id, count, sizeof(*by_id));
	if (!by_id)
		return -ENOMEM;
	memset(by_id + t->id_count, 0, (count - t->id_count) * sizeof(*by_id));
	t->by_id = by_id;
	t->id_count = count;
	return 0;
}

static int add_entry(struct event_table *t, struct event_entry *entry)
{
	if (grow_ids(t, entry->event.id) < 0)
		return -ENOMEM;
	if (t->count == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		const struct event **all = reallocarray(t->all, cap, sizeof(*all));

		if (!all)
			return -ENOMEM;
		t->all = all;
		t->cap = cap;
	}
	t->all[t->count++] = &entry->event;
	t->by_id[entry->event.id] = entry;
	return 0;
}

#define FIELDS_MAX 512 /* of an event; the reader's own bound is far below */

/* "field:TYPE NAME[16];" and what goes with it: letters, and digits in the brackets. */
static bool is_field_line(const char *p, const char *end)
{
	static const char attribute[] = "__attribute__";
	bool in_brackets = false;

	if ((size_t)(end - p) >= sizeof(attribute) - 1 &&
	    !memcmp(p, attribute, sizeof(attribute) - 1))
		return false;
	for (; p < end; p++) {
		if (*p == '[' || *p == ']') {
			if (in_brackets == (*p == '['))
				return false;
			in_brackets = *p == '[';
		} else if (!isalnum((unsigned char)*p) && *p != '_' &&
			   (in_brackets || !strchr(" \t*:;()-", *p))) {
			return false;
		}
	}
	return !in_brackets;
}

/* libtraceevent (1.7) crashes on fields that are but slightly damaged: it gets plain ones only. */
static bool has_plain_fields(const char *text, const char *end)
{
	static const char key[] = "field:";
	size_t count = 0;

	for (const char *line = text; line < end;) {
		const char *eol = memchr(line, '\n', (size_t)(end - line)) ?: end;
		const char *field = memmem(line, (size_t)(eol - line), key, sizeof(key) - 1);

		if (field && (++count > FIELDS_MAX || !is_field_line(field + sizeof(key) - 1, eol)))
			return false;
		line = eol + 1;
	}
	return !memchr(text, '\0', (size_t)(end - text));
}

/*
 * The fields by libtraceevent. Its parser of print formats is the slow part of
 * it and not wanted: it gets an empty one.
 */
static struct tep_event *parse_fields(struct event_table *t, const char *system,
				      struct event_entry *entry)
{
	static const char mark[] = "\nprint fmt:", empty[] = " \"\"\n";
	const char *at = memmem(entry->text, entry->len, mark, strlen(mark));
	const char *id = memmem(entry->text, entry->len, "\nID:", 4);
	_cleanup_free_ char *head = NULL;
	size_t len;

	if (!at || !id || id > at || !has_plain_fields(entry->text, at))
		return NULL;
	at += strlen(mark);
	entry->print_fmt = at;
	entry->print_fmt_len = entry->len - (size_t)(at - entry->text);
	len = (size_t)(at - entry->text);
	head = malloc(len + sizeof(empty));
	if (!head)
		return NULL;
	memcpy(head, entry->text, len);
	memcpy(head + len, empty, sizeof(empty));
	tep_parse_event(t->tep, head, len + sizeof(empty) - 1, system);
	return tep_find_event(t->tep, (int)strtol(id + 4, NULL, 10));
}

int event_table_add(struct event_table *t, const char *system, const char *text, size_t len,
		    struct error *err)
{
	struct event_entry *entry;
	struct tep_event *parsed;
	struct event *ev;
	int r;

	if (t->sealed)
		return error_set(err, -EINVAL, "a format after the table was sealed");
	entry = arena_alloc(&t->arena, sizeof(*entry));
	if (entry)
		entry->text = arena_strndup(&t->arena, text, len);
	if (!entry || !entry->text)
		return error_errno(err, -ENOMEM, "event format");
	entry->len = len;
	parsed = parse_fields(t, system, entry);
	if (!parsed || parsed->id < 0 || parsed->id > UINT16_MAX)
		return error_set(err, -EBADMSG, "damaged event format in system %s", system);
	ev = &entry->event;
	ev->id = (uint16_t)parsed->id;
	ev->name = parsed->name;
	ev->system = parsed->system;
	if (event_table_find(t, ev->id))
		return 0;
	r = fill_fields(t, ev, parsed);
	if (r == 0)
		r = fill_funcgraph(t, ev);
	if (r == -EBADMSG)
		return error_set(err, r, "event %s of system %s has a field out of bounds",
				 ev->name, ev->system);
	if (r < 0 || add_entry(t, entry) < 0)
		return error_errno(err, -ENOMEM, "event format");
	fill_common(t, parsed);
	return 0;
}

int event_table_add_enums(struct event_table *t, const char *text, size_t len)
{
	return constants_add_text(&t->constants, text, len);
}

int event_table_put_enums(const struct event_table *t, struct buf *out)
{
	return constants_put_text(&t->constants, out);
}

int event_table_add_printk(struct event_table *t, const char *text, size_t len)
{
	return printk_formats_add(&t->printk, &t->arena, text, len);
}

void event_table_set_symbols(struct event_table *t, symbol_source_t source, void *userdata)
{
	t->symbols->source = source;
	t->symbols->userdata = userdata;
}

void event_table_expect_symbols(struct event_table *t)
{
	t->symbols->growing = true;
}

void event_table_set_user_places(struct event_table *t, user_place_source_t source,
				 const void *userdata)
{
	t->user_places = source;
	t->user_places_data = userdata;
}

bool event_table_has_symbols(const struct event_table *t)
{
	return t->symbols->source;
}

size_t event_table_symbol_count(const struct event_table *t)
{
	return symbol_store_count(t->symbols);
}

const struct symbols *event_table_symbols(const struct event_table *t)
{
	return symbol_store_get(t->symbols);
}

bool event_table_find_symbol(const struct event_table *t, uint64_t address, struct symbol *ret)
{
	return symbol_store_find(t->symbols, address, ret);
}

int event_table_add_excerpt(struct event_table *t, const char *text, size_t len)
{
	return symbol_store_add_excerpt(t->symbols, text, len);
}

int event_table_add_symbols(struct event_table *t, const char *text, size_t len)
{
	return symbol_store_add(t->symbols, text, len);
}

#define FALLBACK_FMT_MAX (8U << 10) /* bytes */

static int compile(struct event_table *t, struct event_entry *entry)
{
	const struct compile_env env = {
		.expr = { &entry->event, &t->constants, &t->arena, t->env.word_size },
		.big_endian = t->swap,
		.kernel = t->env.kernel,
	};
	int r = program_compile(&env, entry->print_fmt, entry->print_fmt_len, &entry->event.program,
				&entry->event.why_fallback);

	/* libtraceevent's parser recurses at each operator, without a limit. */
	if (r == -EOPNOTSUPP && entry->print_fmt_len <= FALLBACK_FMT_MAX &&
	    lexer_is_balanced(entry->print_fmt, entry->print_fmt_len))
		tep_parse_event(t->printing, entry->text, entry->len, entry->event.system);
	return r == -ENOMEM ? r : 0;
}

int event_table_seal(struct event_table *t, struct error *err)
{
	printk_formats_sort(&t->printk);
	for (size_t i = 0; i < t->count; i++) {
		struct event_entry *entry =
			container_of((struct event *)t->all[i], struct event_entry, event);

		if (compile(t, entry) < 0)
			return error_errno(err, -ENOMEM, "compiling %s", entry->event.name);
	}
	t->sealed = true;
	return 0;
}

const struct field *event_field(const struct event *ev, const char *name)
{
	for (size_t i = 0; ev && i < ev->field_count; i++)
		if (strcmp(ev->fields[i].name, name) == 0)
			return &ev->fields[i];
	return NULL;
}

const struct event *event_table_find(const struct event_table *t, uint16_t id)
{
	return id < t->id_count && t->by_id[id] ? &t->by_id[id]->event : NULL;
}

const struct event *event_table_find_name(const struct event_table *t, const char *system,
					  const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->all[i]->name, name) &&
		    (!system || !strcmp(t->all[i]->system, system)))
			return t->all[i];
	return NULL;
}

const char *event_format_text(const struct event *ev, size_t *ret_len)
{
	const struct event_entry *entry = container_of(ev, struct event_entry, event);

	*ret_len = entry->len;
	return entry->text;
}

const struct common_fields *event_table_common(const struct event_table *t)
{
	return &t->common;
}

const struct event *const *event_table_all(const struct event_table *t, size_t *ret_count)
{
	*ret_count = t->count;
	return t->all;
}

bool record_read_uint(const struct event_table *t, const struct record *rec, uint32_t offset,
		      uint32_t size, uint64_t *ret)
{
	if (offset > rec->len || size > rec->len - offset || !is_number_size(size))
		return false;
	*ret = load_uint(rec->data + offset, size, t->swap);
	return true;
}

const char *event_unknown_part(const struct event *ev)
{
	return ev->program ? ev->program->unknown : NULL;
}

int event_table_add_arguments(struct event_table *t, const char *text, size_t len)
{
	return arguments_add(&t->arguments, text, len);
}

int event_table_put_arguments(const struct event_table *t, const char *function, struct buf *out)
{
	arguments_put_lines(t->arguments, function, out);
	return buf_error(out);
}

size_t event_name_len(const struct event *ev)
{
	return ev->program ? ev->program->name_len : 0;
}

bool event_is_plain(const struct event *ev)
{
	return ev->program && ev->program->plain;
}

int event_print(struct printer *p, const struct event *ev, const struct record *rec,
		struct buf *out)
{
	if (unlikely(!ev->program))
		return fallback_print(p, ev, rec, out);
	p->event = ev;
	return program_run(ev->program, p, rec, out);
}
