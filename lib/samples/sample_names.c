/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/sample_names.h"

#include <inttypes.h>
#include <string.h>

#include "base/secret_hash.h"

#define PLACES_MAX (1U << 20)
#define TEXT_MAX (128U << 20)
#define NAME_MAX_BYTES 4096
/* Keys instead of a file index: the kernel, and anonymous memory (addresses of one process). */
#define OF_KERNEL UINT64_C(0x100000000)
#define OF_PROCESS UINT64_C(0x200000000)

/* A cached place. `texts` holds its names; function_len 0: free slot. */
struct named_place {
	uint64_t space, offset;
	uint32_t at, function_len, module_len;
};

static size_t hash_place(uint64_t space, uint64_t offset)
{
	return (size_t)hash_number(offset ^ hash_number(space));
}

struct place_key {
	uint64_t space, offset;
};
DEFINE_TABLE(place_slots, struct named_place, struct place_key, slot->function_len != 0,
	     hash_place(slot->space, slot->offset),
	     slot->space == key.space && slot->offset == key.offset);

void sample_names_deinit(struct sample_names *n)
{
	TABLE_DEINIT(&n->places);
	buf_deinit(&n->texts);
	*n = (struct sample_names){ 0 };
}

static struct named_place *names_find(struct sample_names *n, uint64_t space, uint64_t offset)
{
	/* Only a hostile stream has that many: empty the cache, names are looked up again. */
	if (n->places.count >= PLACES_MAX || n->texts.len > TEXT_MAX) {
		TABLE_CLEAR(&n->places);
		buf_clear(&n->texts);
	}
	return place_slots_place(&n->places, hash_place(space, offset),
				 (struct place_key){ space, offset });
}

static void names_give(const struct sample_names *n, const struct named_place *p,
		       struct place_name *ret)
{
	const char *texts = n->texts.data + p->at;

	*ret = (struct place_name){ 0 };
	ret->function = (struct text){ texts, p->function_len };
	ret->module = (struct text){ texts + p->function_len, p->module_len };
}

/* The text appended since p->at is the function's name; appends the module's. */
static int names_keep(struct sample_names *n, struct named_place *p, uint64_t space,
		      uint64_t offset, const char *module, struct place_name *ret)
{
	p->space = space;
	p->offset = offset;
	p->function_len = (uint32_t)(n->texts.len - p->at);
	p->module_len = (uint32_t)MIN(strlen(module), (size_t)NAME_MAX_BYTES);
	buf_append(&n->texts, module, p->module_len);
	if (buf_error(&n->texts) < 0 || !p->function_len) {
		p->function_len = 0;
		return -ENOMEM;
	}
	n->places.count++;
	names_give(n, p, ret);
	return 0;
}

int sample_names_kernel(struct sample_names *n, uint64_t address, struct place_name *ret)
{
	struct named_place *p = names_find(n, OF_KERNEL, address);
	struct symbol s;
	char module[72] = "[kernel]";

	if (!p)
		return -ENOMEM;
	if (p->function_len) {
		names_give(n, p, ret);
		return 0;
	}
	p->at = (uint32_t)n->texts.len;
	if (symbols_find(n->kernel, address, &s)) {
		buf_puts(&n->texts, s.name);
		if (s.module)
			snprintf(module, sizeof(module), "[%s]", s.module);
	} else if (n->raw_addresses) {
		buf_printf(&n->texts, "0x%" PRIx64, address);
	} else {
		/* Hide the address: it would reveal the kernel's base. */
		buf_puts(&n->texts, "[unknown]");
	}
	return names_keep(n, p, OF_KERNEL, address, module, ret);
}

static void names_put_function(struct sample_names *n, const struct code_place *place,
			       const char *module)
{
	const char *name = n->symbols ? n->symbols->find(n->symbols->userdata, place) : NULL;

	if (name && *name && *name != '@') {
		/* Drop the symbol version ("@GLIBC_2.2"). */
		buf_append(&n->texts, name, MIN(strcspn(name, "@"), (size_t)NAME_MAX_BYTES));
		return;
	}
	n->unnamed++;
	/* Addresses outside of mappings are mostly junk from code without frame pointers. */
	if (*place->path)
		buf_printf(&n->texts, "%.*s+0x%" PRIx64, NAME_MAX_BYTES, module, place->offset);
	else
		buf_puts(&n->texts, "[unknown]");
}

static int names_give_user(struct sample_names *n, const struct code_mapping *m,
			   const struct code_file *file, int32_t pid, uint64_t address,
			   struct place_name *ret)
{
	struct code_place place = { .path = "", .address = address, .pid = pid };
	uint64_t space = OF_PROCESS + (uint32_t)pid, offset = address;
	struct named_place *p;

	if (file) {
		place.path = file->path;
		place.build_id = file->build_id;
		place.build_id_len = file->build_id_len;
		place.offset = address - m->start + m->offset;
		if (!code_path_is_made(file->path)) {
			space = m->file;
			offset = place.offset;
		}
	}
	p = names_find(n, space, offset);
	if (!p)
		return -ENOMEM;
	if (p->function_len) {
		names_give(n, p, ret);
		return 0;
	}
	p->at = (uint32_t)n->texts.len;
	names_put_function(n, &place, file ? file->name : "");
	return names_keep(n, p, space, offset, file && *file->path ? file->name : "[unknown]", ret);
}

int sample_names_user(struct sample_names *n, const struct address_spaces *spaces, int32_t pid,
		      uint64_t address, struct place_name *ret)
{
	const struct code_mapping *m = address_spaces_find(spaces, pid, address);
	const struct code_file *file = m ? &spaces->files[m->file] : NULL;
	int r = names_give_user(n, m, file, pid, address, ret);

	ret->file = file;
	ret->offset = m ? address - m->start + m->offset : address;
	return r;
}
