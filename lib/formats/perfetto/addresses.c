/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/addresses.h"

#include "formats/perfetto/message.h"
#include "formats/perfetto/op.h"
#include "formats/perfetto/rest.h"
#include "print/printer.h"

/*
 * The kernel's name for the function that writes marks. If a trace needs no other address, loading
 * the long symbol table is a waste: the recorder's own first mark reveals this address.
 */
#define MARK_FUNCTION "tracing_mark_write"

#define ENTRY_MAX 16 /* bytes */

static size_t address_slot(const struct pf_schema *s, uint64_t address, char kind)
{
	uint64_t hash = (address ^ (uint64_t)kind << 56) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash >> 32) & (s->address_slots - 1);
}

static struct pf_known_address *find_address(const struct pf_schema *s, uint64_t address, char kind)
{
	size_t at = address_slot(s, address, kind);

	while (s->addresses[at].id &&
	       (s->addresses[at].address != address || s->addresses[at].kind != kind))
		at = (at + 1) & (s->address_slots - 1);
	return &s->addresses[at];
}

static int addresses_grow(struct pf_schema *s)
{
	size_t count = s->address_slots;
	struct pf_known_address *old = s->addresses, *bigger;

	bigger = calloc(MAX(count * 2, (size_t)256), sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	s->addresses = bigger;
	s->address_slots = MAX(count * 2, (size_t)256);
	for (size_t i = 0; i < count; i++)
		if (old[i].id)
			*find_address(s, old[i].address, old[i].kind) = old[i];
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

	/* The function tracers report a function's start, give or take its first instructions. */
	if (address - symbol->address <= ENTRY_MAX &&
	    event_table_put_arguments(s->env.table, symbol->name, &arguments) == 0 && arguments.len)
		pf_message(&s->new_addresses, ADDRESS_ARGUMENTS, &arguments);
	put_text(&s->new_addresses, ADDRESS_NAME, symbol->name);
	put_text(&s->new_addresses, ADDRESS_MODULE, symbol->module);
	pf_uint(&s->new_addresses, ADDRESS_OFFSET, address - symbol->address);
	pf_uint(&s->new_addresses, ADDRESS_SIZE, symbol->size);
}

uint64_t pf_address(struct pf_schema *s, uint64_t address, char kind)
{
	const char *text = NULL;
	struct pf_known_address *p;
	struct symbol symbol;
	size_t content;

	if (s->address_count * 2 >= s->address_slots && addresses_grow(s) < 0) {
		s->new_addresses.failed = true;
		return 0;
	}
	p = find_address(s, address, kind);
	if (p->id || s->address_count == PF_ADDRESSES_MAX)
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
	*p = (struct pf_known_address){ .address = address,
					.id = ++s->address_count,
					.kind = kind };
	content = pf_open(&s->new_addresses, BUNDLE_ADDRESSES);
	pf_uint(&s->new_addresses, ADDRESS_ID, p->id);
	if (text)
		put_text(&s->new_addresses, ADDRESS_TEXT, text);
	else
		announce_symbol(s, address, &symbol);
	pf_close(&s->new_addresses, content);
	return p->id;
}
