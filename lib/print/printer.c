/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/printer.h"

#include <string.h>
#include <sys/mman.h>

#include "base/siphash.h"
#include "print/format_int.h"

#define NAME_MAX_LEN 511U /* KSYM_NAME_LEN */
#define MODULE_MAX_LEN 64U

int printer_new(struct printer **ret, const struct event_table *t)
{
	/*
	 * mmap gives zeroed pages on first use. Most recordings touch little or nothing of the
	 * 1.5 MiB cache.
	 */
	struct printer *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	p->table = t;
	*ret = p;
	return 0;
}

struct printer *printer_free(struct printer *p)
{
	if (p)
		munmap(p, sizeof(*p));
	return NULL;
}

uint64_t printer_fallbacks(const struct printer *p)
{
	return p->fallbacks;
}

/* Hiding NULL and error values would gain nothing. */
uint64_t printer_pointer(const struct printer *p, uint64_t address)
{
	const struct event_table_env *env = &p->table->env;
	uint64_t hash;

	if (env->pointers == POINTER_RAW || !address ||
	    expr_normalize(address, env->word_size, true) >= (uint64_t)-4095)
		return address;
	hash = siphash_u64(env->pointer_key, address);
	return env->word_size == 8 ? hash : (uint32_t)hash;
}

const char *print_kernel_string(const struct printer *p, uint64_t address,
				char room[KERNEL_STRING_ROOM])
{
	const char *text;
	char *end;

	if (!address)
		return "(null)";
	if (address < 4096 ||
	    expr_normalize(address, p->table->env.word_size, true) >= (uint64_t)-4095)
		return "(efault)";
	text = table_printk(p->table, address);
	if (text)
		return text;
	/* The kernel prints (0xADDRESS) for a string that it must not read. */
	memcpy(room, "(0x", 3);
	end = format_hex(room + 3, printer_pointer(p, address));
	memcpy(end, ")", 2);
	return room;
}

/* Prints an address, hashed if it is a kernel address. */
static char *printer_put_address(const struct printer *p, char *w, uint64_t address,
				 unsigned digits)
{
	const struct int_format f = { .base = 16, .width = -1, .precision = (int)digits };
	bool kernel = (int64_t)expr_normalize(address, p->table->env.word_size, true) < 0;

	memcpy(w, "0x", 2);
	return format_number(w + 2, kernel ? printer_pointer(p, address) : address, &f);
}

/* After so many misses printer_count_miss() expects many more. */
#define CACHE_WRITTEN 32

/*
 * Reading an untouched page maps the shared zero page; the first write then replaces it and
 * interrupts all CPUs that run threads of this process (7 ms for two threads in a guest). So the
 * cache is written at once if much of it will be used.
 */
static void printer_count_miss(struct printer *p)
{
	if (p->misses == CACHE_WRITTEN || ++p->misses < CACHE_WRITTEN)
		return;
	memset(p->symbols, 0, sizeof(p->symbols));
	memset(p->cache, 0, sizeof(p->cache));
}

const struct symbol_cache_entry *printer_find_symbol(struct printer *p, uint64_t address)
{
	struct symbol_cache_entry *e = &p->cache[printer_slot(p, address) - p->cache];
	struct symbol *symbol = &p->symbols[e - p->cache];

	printer_count_miss(p);
	e->address = address;
	e->found = event_table_find_symbol(p->table, address, symbol);
	e->known = e->found || !p->table->symbols->growing;
	e->name_len = e->found ? (uint16_t)strnlen(symbol->name, NAME_MAX_LEN) : 0;
	memcpy(e->name, e->found ? symbol->name : "", MIN(e->name_len, SYMBOL_NAME_NEAR));
	/* is_kretprobe_trampoline(): a probed function returns there, so the name says nothing. */
	e->is_trampoline = e->found && symbol->address == address &&
			   (!strcmp(symbol->name, "arch_rethook_trampoline") ||
			    !strcmp(symbol->name, "__kretprobe_trampoline"));
	e->is_plain = e->found && !e->is_trampoline && !p->table->env.text.sym_offset &&
		      !p->table->env.text.sym_addr;
	return e;
}

bool printer_symbol(struct printer *p, uint64_t address, struct symbol *ret)
{
	const struct symbol_cache_entry *e = printer_lookup(p, address);

	*ret = p->symbols[e - p->cache];
	return e->found;
}

static char *printer_put_text(char *w, const char *text)
{
	size_t len = strlen(text);

	memcpy(w, text, len);
	return w + len;
}

char *print_symbol(struct printer *p, char *w, uint64_t address, char kind)
{
	const struct symbol_cache_entry *e = printer_lookup(p, kind == 'B' ? address - 1 : address);
	const struct symbol *s = &p->symbols[e - p->cache];

	if (!e->found)
		return printer_put_address(p, w, address, kind == 'f' ? 8 : 1);
	memcpy(w, s->name, e->name_len);
	w += e->name_len;
	if (kind == 'f')
		return w;
	if (kind != 's') {
		w = printer_put_text(w, "+0x");
		w = format_hex(w, address - s->address);
		w = printer_put_text(w, "/0x");
		w = format_hex(w, s->size);
	}
	if (s->module) {
		size_t len = strnlen(s->module, MODULE_MAX_LEN);

		w = printer_put_text(w, " [");
		memcpy(w, s->module, len);
		w = printer_put_text(w + len, "]");
	}
	return w;
}

char *print_ip_by(struct printer *p, char *w, uint64_t ip, bool offset)
{
	if (!ip)
		return printer_put_text(w, "0");
	if (printer_lookup(p, ip)->is_trampoline)
		w = printer_put_text(w, "[unknown/kretprobe'd]");
	else
		w = print_symbol(p, w, ip, offset ? 'F' : 'f');
	if (p->table->env.text.sym_addr) {
		w = printer_put_text(w, " <");
		w = format_hex_padded(w, printer_pointer(p, ip), p->table->env.word_size * 2);
		w = printer_put_text(w, ">");
	}
	return w;
}
