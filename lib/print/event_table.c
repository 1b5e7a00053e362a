/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/event_table.h"

#include <string.h>

#include "base/vec.h"
#include "print/format_fields.h"
#include "print/funcgraph.h"
#include "print/printer.h"

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
	t->symbols = symbol_store_new();
	if (!t->symbols) {
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
		arena_deinit(&t->arena);
		free(t);
	}
	return NULL;
}

static int event_table_fill_funcgraph(struct event_table *t, struct event *ev)
{
	struct funcgraph_layout layout, *copy;

	if (!funcgraph_layout_find(t, ev, &layout))
		return 0;
	copy = arena_alloc(&t->arena, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = layout;
	ev->funcgraph = copy;
	return 0;
}

static void event_table_fill_common(struct event_table *t, const struct event *from)
{
	if (t->common.size)
		return;
	for (size_t i = 0; i < from->common_count; i++) {
		const struct field *f = &from->common[i];

		if (!strcmp(f->name, "common_flags"))
			t->common.flags_offset = f->offset;
		else if (!strcmp(f->name, "common_preempt_count"))
			t->common.preempt_offset = f->offset;
		else if (!strcmp(f->name, "common_preempt_lazy_count"))
			t->common.lazy_offset = f->offset;
		else if (!strcmp(f->name, "common_migrate_disable"))
			t->common.migrate_offset = f->offset;
		else if (!strcmp(f->name, "common_pid"))
			t->common.pid_offset = f->offset;
		t->common.size = MAX(t->common.size, f->offset + f->size);
	}
}

static int event_table_grow_ids(struct event_table *t, size_t id)
{
	size_t more = MAX(id + 1, t->id_count * 2) - t->id_count;

	if (id < t->id_count)
		return 0;
	if (vec_reserve_exact(t->by_id, t->id_count, more) < 0)
		return -ENOMEM;
	memset(t->by_id + t->id_count, 0, more * sizeof(*t->by_id));
	t->id_count += more;
	return 0;
}

static int event_table_add_entry(struct event_table *t, struct event_entry *entry)
{
	if (event_table_grow_ids(t, entry->event.id) < 0)
		return -ENOMEM;
	if (vec_push(t->all, t->count, t->cap, &entry->event) < 0)
		return -ENOMEM;
	t->by_id[entry->event.id] = entry;
	return 0;
}

/* Parses the format's head and finds its print fmt. -EBADMSG, -ERANGE: the format is damaged. */
static int event_entry_parse(struct event_table *t, const char *system, struct event_entry *entry)
{
	static const char mark[] = "\nprint fmt:";
	const char *at = memmem(entry->text, entry->len, mark, strlen(mark));
	struct event *ev = &entry->event;
	struct format_head head;
	int r;

	if (!at)
		return -EBADMSG;
	r = format_head_parse(&head, entry->text, (size_t)(at + 1 - entry->text), t->env.word_size,
			      &t->arena);
	if (r < 0)
		return r;
	at += strlen(mark);
	entry->print_fmt = at;
	entry->print_fmt_len = entry->len - (size_t)(at - entry->text);
	*ev = (struct event){
		.id = head.id,
		.system = arena_strndup(&t->arena, system, strlen(system)),
		.name = head.name,
		.fields = head.fields,
		.field_count = head.field_count,
		.common = head.common,
		.common_count = head.common_count,
	};
	return ev->system ? event_table_fill_funcgraph(t, ev) : -ENOMEM;
}

int event_table_add(struct event_table *t, const char *system, const char *text, size_t len,
		    struct error *err)
{
	struct event_entry *entry;
	int r;

	if (t->sealed)
		return error_set(err, -EINVAL, "a format after the table was sealed");
	entry = arena_alloc(&t->arena, sizeof(*entry));
	if (entry)
		entry->text = arena_strndup(&t->arena, text, len);
	if (!entry || !entry->text)
		return error_errno(err, -ENOMEM, "cannot load an event format of system %s",
				   system);
	entry->len = len;
	r = event_entry_parse(t, system, entry);
	if (r == -EBADMSG)
		return error_set(err, r, "damaged event format in system %s", system);
	if (r == -ERANGE)
		return error_set(err, -EBADMSG, "an event of system %s has a field out of bounds",
				 system);
	if (r == 0 && event_table_find(t, entry->event.id))
		return 0;
	if (r < 0 || event_table_add_entry(t, entry) < 0)
		return error_errno(err, -ENOMEM, "cannot load an event format of system %s",
				   system);
	event_table_fill_common(t, &entry->event);
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

static int event_entry_compile(struct event_table *t, struct event_entry *entry)
{
	const struct compile_env env = {
		.expr = { &entry->event, &t->constants, &t->arena, t->env.word_size },
		.big_endian = t->swap,
		.kernel = t->env.kernel,
	};
	int r = program_compile(&env, entry->print_fmt, entry->print_fmt_len, &entry->event.program,
				&entry->event.why_fallback);

	return r == -ENOMEM ? r : 0;
}

int event_table_seal(struct event_table *t, struct error *err)
{
	printk_formats_sort(&t->printk);
	for (size_t i = 0; i < t->count; i++) {
		struct event_entry *entry =
			container_of((struct event *)t->all[i], struct event_entry, event);

		if (event_entry_compile(t, entry) < 0)
			return error_errno(err, -ENOMEM, "cannot compile the print format of %s",
					   entry->event.name);
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
