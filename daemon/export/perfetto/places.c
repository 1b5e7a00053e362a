/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/perfetto/places.h"

#include "export/perfetto/message.h"
#include "export/perfetto/op.h"
#include "export/perfetto/rest.h"
#include "print/printer.h"

/*
 * What the kernel calls the function that writes marks. A trace may have no other address to be
 * looked up, and the symbols are long: the first mark, by the recorder, tells the address.
 */
#define MARK_FUNCTION "tracing_mark_write"

#define ENTRY_MAX 16 /* bytes */

static size_t place_slot(const struct pf_schema *s, uint64_t address, char kind)
{
	uint64_t hash = (address ^ (uint64_t)kind << 56) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash >> 32) & (s->place_slots - 1);
}

static struct pf_known_place *find_place(const struct pf_schema *s, uint64_t address, char kind)
{
	size_t at = place_slot(s, address, kind);

	while (s->places[at].id && (s->places[at].address != address || s->places[at].kind != kind))
		at = (at + 1) & (s->place_slots - 1);
	return &s->places[at];
}

static int places_grow(struct pf_schema *s)
{
	size_t count = s->place_slots;
	struct pf_known_place *old = s->places, *bigger;

	bigger = calloc(MAX(count * 2, (size_t)256), sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	s->places = bigger;
	s->place_slots = MAX(count * 2, (size_t)256);
	for (size_t i = 0; i < count; i++)
		if (old[i].id)
			*find_place(s, old[i].address, old[i].kind) = old[i];
	free(old);
	return 0;
}

static void put_text(struct buf *out, uint32_t field, const char *text)
{
	if (text && *text)
		pf_bytes(out, field, text, strlen(text));
}

static void announce_symbol(struct pf_schema *s, uint64_t address, const struct symbol *symbol)
{
	_cleanup_buf_ struct buf arguments = BUF_INIT;

	/* The function tracers tell where a function begins, give or take its first instructions.
	 */
	if (address - symbol->address <= ENTRY_MAX &&
	    event_table_put_arguments(s->env.table, symbol->name, &arguments) == 0 && arguments.len)
		pf_message(&s->new_places, PLACE_ARGUMENTS, &arguments);
	put_text(&s->new_places, PLACE_NAME, symbol->name);
	put_text(&s->new_places, PLACE_MODULE, symbol->module);
	pf_uint(&s->new_places, PLACE_OFFSET, address - symbol->address);
	pf_uint(&s->new_places, PLACE_SIZE, symbol->size);
}

uint64_t pf_place(struct pf_schema *s, uint64_t address, char kind)
{
	const char *text = NULL;
	struct pf_known_place *p;
	struct symbol symbol;
	size_t content;

	if (s->place_count * 2 >= s->place_slots && places_grow(s) < 0) {
		s->new_places.failed = true;
		return 0;
	}
	p = find_place(s, address, kind);
	if (p->id || s->place_count == PF_PLACES_MAX)
		return p->id;
	if (kind == LOOKUP_TEXT) {
		text = table_printk(s->env.table, address);
		if (!text || !*text)
			return 0;
	} else if (kind == LOOKUP_PRINT) {
		symbol = (struct symbol){ .name = MARK_FUNCTION, .address = address };
	} else if (!printer_symbol(s->printer, kind == LOOKUP_BEFORE ? address - 1 : address,
				   &symbol)) {
		return 0;
	}
	*p = (struct pf_known_place){ .address = address, .id = ++s->place_count, .kind = kind };
	content = pf_open(&s->new_places, BUNDLE_PLACES);
	pf_uint(&s->new_places, PLACE_ID, p->id);
	if (text)
		put_text(&s->new_places, PLACE_TEXT, text);
	else
		announce_symbol(s, address, &symbol);
	pf_close(&s->new_places, content);
	return p->id;
}
