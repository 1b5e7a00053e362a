/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/addresses.h"

#include "base/secret_hash.h"
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

static size_t address_hash(uint64_t address, char kind)
{
	return (size_t)hash_number(address ^ (uint64_t)kind << 56);
}

struct address_key {
	uint64_t address;
	char kind;
};
DEFINE_TABLE(pf_addresses, struct pf_known_address, struct address_key, slot->id != 0,
	     address_hash(slot->address, slot->kind),
	     slot->address == key.address && slot->kind == key.kind);

static void address_put_text(struct buf *out, uint32_t field, const char *text)
{
	if (text && *text)
		pf_bytes(out, field, text, strlen(text));
}

static void address_put_symbol(struct pf_schema *s, uint64_t address, const struct symbol *symbol)
{
	_cleanup_buf_ struct buf arguments = BUF_INIT;

	/* The function tracers report a function's start, give or take its first instructions. */
	if (address - symbol->address <= ENTRY_MAX &&
	    event_table_put_arguments(s->env.table, symbol->name, &arguments) == 0 && arguments.len)
		pf_message(&s->new_addresses, ADDRESS_ARGUMENTS, &arguments);
	address_put_text(&s->new_addresses, ADDRESS_NAME, symbol->name);
	address_put_text(&s->new_addresses, ADDRESS_MODULE, symbol->module);
	pf_uint(&s->new_addresses, ADDRESS_OFFSET, address - symbol->address);
	pf_uint(&s->new_addresses, ADDRESS_SIZE, symbol->size);
}

uint64_t pf_address(struct pf_schema *s, uint64_t address, char kind)
{
	const char *text = NULL;
	struct pf_known_address *p = pf_addresses_place(&s->addresses, address_hash(address, kind),
							(struct address_key){ address, kind });
	struct symbol symbol;
	size_t content;

	if (!p) {
		s->new_addresses.failed = true;
		return 0;
	}
	if (p->id || s->addresses.count == PF_ADDRESSES_MAX)
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
					.id = ++s->addresses.count,
					.kind = kind };
	content = pf_open(&s->new_addresses, BUNDLE_ADDRESSES);
	pf_uint(&s->new_addresses, ADDRESS_ID, p->id);
	if (text)
		address_put_text(&s->new_addresses, ADDRESS_TEXT, text);
	else
		address_put_symbol(s, address, &symbol);
	pf_close(&s->new_addresses, content);
	return p->id;
}
