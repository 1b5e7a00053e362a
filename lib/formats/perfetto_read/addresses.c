/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/addresses.h"

#include <inttypes.h>
#include <xxhash.h>

#include "formats/perfetto/addresses.h"
#include "formats/perfetto/rest.h"

/* Where a kernel lies, so that its addresses are taken for what they are. */
#define SYMBOLS_64 UINT64_C(0xffff800000000000)
#define TEXTS_64 UINT64_C(0xffffa00000000000)
#define SYMBOLS_32 UINT64_C(0xc0000000)
#define TEXTS_32 UINT64_C(0xf0000000)
/* Of one symbol; the last one of a kernel seems to be endless. */
#define SYMBOL_SIZE_MAX (UINT64_C(1) << 24)
#define TEXT_STEP 16
#define NAME_MAX_BYTES 512
#define ARGUMENTS_MAX_BYTES (64U << 10)

struct address_symbol {
	uint64_t address, size;
	size_t key; /* in names: name, tab, module */
	uint32_t name_len, module_len;
};

struct address_item {
	uint64_t offset; /* or the address of a text */
	uint32_t symbol; /* index + 1; 0: a text */
};

/* What an Address says. */
struct told_address {
	uint64_t id, offset, size;
	struct wire_field name, module, text, arguments;
};

void addresses_init(struct addresses *p, unsigned word_size)
{
	*p = (struct addresses){
		.word_size = word_size,
		.next_text = word_size == 8 ? TEXTS_64 : TEXTS_32,
		/* Where things lie is not known to who made the file. */
		.seed = (uint64_t)(uintptr_t)p,
	};
}

void addresses_deinit(struct addresses *p)
{
	free(p->items);
	free(p->symbols);
	free(p->slots);
	buf_deinit(&p->names);
	buf_deinit(&p->kallsyms);
	buf_deinit(&p->printk);
	buf_deinit(&p->arguments);
}

static int read_address(const struct wire_field *message, struct told_address *ret)
{
	struct wire_reader r = wire_reader_in(message);
	struct wire_field f;

	*ret = (struct told_address){ 0 };
	while (wire_read(&r, &f)) {
		if (f.type == WIRE_BYTES && f.number != ADDRESS_ARGUMENTS)
			f.len = MIN(f.len, (size_t)NAME_MAX_BYTES);
		else if (f.type == WIRE_BYTES && f.len > ARGUMENTS_MAX_BYTES)
			continue;
		switch (f.number) {
		case ADDRESS_ID:
			ret->id = f.value;
			break;
		case ADDRESS_NAME:
			ret->name = f;
			break;
		case ADDRESS_MODULE:
			ret->module = f;
			break;
		case ADDRESS_OFFSET:
			ret->offset = f.value;
			break;
		case ADDRESS_SIZE:
			ret->size = f.value;
			break;
		case ADDRESS_TEXT:
			ret->text = f;
			break;
		case ADDRESS_ARGUMENTS:
			ret->arguments = f;
			break;
		}
	}
	return r.bad || !ret->id || (!ret->name.data && !ret->text.data) ? -EBADMSG : 0;
}

/* What would end the line, or the name on it. */
static void put_clean(struct buf *out, const struct wire_field *f, uint8_t least)
{
	for (size_t i = 0; i < f->len; i++)
		buf_putc(out, f->data[i] < least || f->data[i] == 0x7f ? '?' : (char)f->data[i]);
}

static uint32_t *find_slot(const struct addresses *p, const char *key, uint32_t len, uint64_t size)
{
	size_t mask = p->slot_count - 1,
	       at = (size_t)XXH3_64bits_withSeed(key, len, size ^ p->seed) & mask;

	for (; p->slots[at]; at = (at + 1) & mask) {
		const struct address_symbol *s = &p->symbols[p->slots[at] - 1];

		if (s->size == size && s->name_len + 1 + s->module_len == len &&
		    memcmp(p->names.data + s->key, key, len) == 0)
			break;
	}
	return &p->slots[at];
}

static int grow(struct addresses *p)
{
	size_t cap = MAX(p->symbol_cap * 2, (size_t)1024);
	struct address_symbol *bigger = reallocarray(p->symbols, cap, sizeof(*bigger));
	uint32_t *slots = calloc(cap * 2, sizeof(*slots));

	if (bigger)
		p->symbols = bigger;
	if (!bigger || !slots) {
		free(slots);
		return -ENOMEM;
	}
	free(p->slots);
	p->slots = slots;
	p->slot_count = cap * 2;
	p->symbol_cap = cap;
	for (size_t i = 0; i < p->symbol_count; i++) {
		const struct address_symbol *s = &p->symbols[i];

		*find_slot(p, p->names.data + s->key, s->name_len + 1 + s->module_len, s->size) =
			(uint32_t)i + 1;
	}
	return 0;
}

/* The symbol's number: a new one, where it was not told of before. */
static int add_symbol(struct addresses *p, const struct told_address *told, uint32_t *ret)
{
	uint64_t size = MIN(MAX(told->size, UINT64_C(1)), SYMBOL_SIZE_MAX);
	uint32_t name_len = (uint32_t)told->name.len, module_len = (uint32_t)told->module.len,
		 len = name_len + 1 + module_len, *slot;
	size_t key = p->names.len;

	if (p->symbol_count == p->symbol_cap && grow(p) < 0)
		return -ENOMEM;
	put_clean(&p->names, &told->name, '!');
	buf_putc(&p->names, '\t');
	put_clean(&p->names, &told->module, '!');
	if (buf_error(&p->names) < 0)
		return -ENOMEM;
	slot = find_slot(p, p->names.data + key, len, size);
	if (*slot) {
		p->names.len = key;
	} else {
		p->symbols[p->symbol_count++] = (struct address_symbol){
			.size = size, .key = key, .name_len = name_len, .module_len = module_len
		};
		*slot = (uint32_t)p->symbol_count;
		buf_append(&p->arguments, told->arguments.data, told->arguments.len);
	}
	*ret = *slot;
	return buf_error(&p->arguments);
}

/* As the kernel writes its strings in printk_formats. */
static void put_escaped(struct buf *out, const struct wire_field *text)
{
	for (size_t i = 0; i < text->len; i++) {
		switch (text->data[i]) {
		case '\n':
			buf_puts(out, "\\n");
			break;
		case '\t':
			buf_puts(out, "\\t");
			break;
		case '"':
			buf_puts(out, "\\\"");
			break;
		default:
			buf_putc(out, text->data[i] ? (char)text->data[i] : '?');
		}
	}
}

static int add_text(struct addresses *p, const struct told_address *told, uint64_t *ret)
{
	*ret = p->next_text;
	p->next_text += TEXT_STEP;
	buf_printf(&p->printk, "0x%" PRIx64 " : \"", *ret);
	put_escaped(&p->printk, &told->text);
	buf_puts(&p->printk, "\"\n");
	return buf_error(&p->printk);
}

/* What lies between was in a packet that is damaged: nothing is there. */
static int reserve(struct addresses *p, uint64_t id)
{
	size_t cap = MAX(MAX(p->cap * 2, (size_t)1024), (size_t)id + 1);
	struct address_item *bigger;

	if (id >= p->cap) {
		bigger = reallocarray(p->items, cap, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		p->items = bigger;
		p->cap = cap;
	}
	memset(p->items + p->count, 0, ((size_t)id + 1 - p->count) * sizeof(*p->items));
	p->count = (size_t)id + 1;
	return 0;
}

int addresses_add(struct addresses *p, const struct wire_field *message)
{
	struct address_item item = { 0 };
	struct told_address told;
	int r = read_address(message, &told);

	if (r < 0)
		return r;
	/* They are told in their order, once. */
	if (told.id < p->count)
		return -EBADMSG;
	if (told.id > PF_ADDRESSES_MAX ||
	    p->names.len + p->printk.len + p->arguments.len > ADDRESSES_BYTES_MAX) {
		p->full = true;
		return 0;
	}
	r = reserve(p, told.id);
	if (r == 0 && told.text.len)
		r = add_text(p, &told, &item.offset);
	else if (r == 0)
		r = add_symbol(p, &told, &item.symbol);
	if (r < 0)
		return r;
	if (item.symbol)
		item.offset = MIN(told.offset, SYMBOL_SIZE_MAX);
	p->items[told.id] = item;
	return 0;
}

/* By module, the kernel itself first: a symbol's size is the distance to its module's next one. */
static int by_module(const void *a, const void *b, void *userdata)
{
	const struct addresses *p = userdata;
	const struct address_symbol *x = &p->symbols[*(const uint32_t *)a],
				    *y = &p->symbols[*(const uint32_t *)b];
	uint32_t len = MIN(x->module_len, y->module_len);
	int r = memcmp(p->names.data + x->key + x->name_len + 1,
		       p->names.data + y->key + y->name_len + 1, len);

	if (r || x->module_len != y->module_len)
		return r ?: x->module_len < y->module_len ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void put_line(struct addresses *p, uint64_t address, const char *name, size_t name_len,
		     const char *module, size_t module_len)
{
	buf_printf(&p->kallsyms, "%" PRIx64 " t %.*s", address, (int)name_len, name);
	if (module_len)
		buf_printf(&p->kallsyms, "\t[%.*s]", (int)module_len, module);
	buf_putc(&p->kallsyms, '\n');
}

static bool same_module(const struct addresses *p, const struct address_symbol *a,
			const struct address_symbol *b)
{
	return a->module_len == b->module_len &&
	       memcmp(p->names.data + a->key + a->name_len + 1,
		      p->names.data + b->key + b->name_len + 1, a->module_len) == 0;
}

/* Behind each module's last one stands what its size is told by. */
static void give_addresses(struct addresses *p, const uint32_t *order)
{
	uint64_t at = p->word_size == 8 ? SYMBOLS_64 : SYMBOLS_32;

	put_line(p, at, "_stext", 6, "", 0);
	at += TEXT_STEP;
	for (size_t i = 0; i < p->symbol_count; i++) {
		struct address_symbol *s = &p->symbols[order[i]];
		const char *name = p->names.data + s->key, *module = name + s->name_len + 1;
		bool last =
			i + 1 == p->symbol_count || !same_module(p, s, &p->symbols[order[i + 1]]);

		s->address = at;
		put_line(p, at, name, s->name_len, module, s->module_len);
		at += s->size;
		if (!last)
			continue;
		if (s->module_len)
			put_line(p, at, "__end", 5, module, s->module_len);
		else
			put_line(p, at, "_etext", 6, "", 0);
		at += TEXT_STEP;
	}
}

int addresses_seal(struct addresses *p)
{
	_cleanup_free_ uint32_t *order = calloc(p->symbol_count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	if (!p->symbol_count)
		return 0;
	for (size_t i = 0; i < p->symbol_count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, p->symbol_count, sizeof(*order), by_module, p);
	give_addresses(p, order);
	return buf_error(&p->kallsyms);
}

uint64_t addresses_find(const struct addresses *p, uint64_t id)
{
	const struct address_item *item = id < p->count && id ? &p->items[id] : NULL;

	if (!item)
		return 0;
	return item->symbol ? p->symbols[item->symbol - 1].address + item->offset : item->offset;
}
