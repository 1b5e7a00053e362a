/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/address_space.h"

#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/secret_hash.h"
#include "base/vec.h"

#define FILES_MAX 65536
#define MAPPINGS_MEMORY (128U << 20)

struct address_space {
	bool used;
	int32_t pid;
	struct mapping_list *mappings; /* owned; NULL: none */
};

static size_t hash_pid(int32_t pid)
{
	return hash_u32((uint32_t)pid);
}

DEFINE_TABLE(space_slots, struct address_space, int32_t, slot->used, hash_pid(slot->pid),
	     slot->pid == key);

struct file_slot {
	uint32_t hash, number; /* the file's index + 1; 0: free */
};

struct file_key {
	const struct address_spaces *spaces;
	const char *path;
	size_t len;
	const void *build_id;
	size_t id_len;
	uint32_t hash;
};

static bool is_file(const struct code_file *f, const struct file_key *key)
{
	return strlen(f->path) == key->len && !memcmp(f->path, key->path, key->len) &&
	       f->build_id_len == key->id_len &&
	       (!key->id_len || !memcmp(f->build_id, key->build_id, key->id_len));
}

DEFINE_TABLE(file_slots, struct file_slot, const struct file_key *, slot->number, slot->hash,
	     slot->hash == key->hash && is_file(&key->spaces->files[slot->number - 1], key));

void address_spaces_deinit(struct address_spaces *a)
{
	for (uint32_t i = 0; i < a->file_count; i++)
		free(a->files[i].path);
	TABLE_FOR_EACH(space_slots, &a->spaces, space)
	mapping_list_free(space->mappings, &a->memory);
	free(a->files);
	free(a->known_files.slots);
	free(a->spaces.slots);
	shares_deinit(&a->memory);
	shares_deinit(&a->file_shares);
	*a = (struct address_spaces){ 0 };
}

static uint32_t hash_file(const char *path, size_t len, const void *build_id, size_t id_len)
{
	uint64_t hash = XXH3_64bits_withSeed(path, len, hash_secret[0]);

	return (uint32_t)(id_len ? XXH3_64bits_withSeed(build_id, id_len, hash) : hash);
}

/* Returns the file's number; -ENOSPC: too many files. */
static int64_t spaces_find_file(struct address_spaces *a, int32_t pid, const struct new_mapping *m)
{
	size_t len = strnlen(m->path ?: "", m->path_len);
	size_t id_len = MIN(m->build_id_len, sizeof(a->files->build_id));
	uint32_t hash = hash_file(m->path ?: "", len, m->build_id, id_len);
	struct file_key key = { a, m->path ?: "", len, m->build_id, id_len, hash };
	struct file_slot *slot = file_slots_place(&a->known_files, hash, &key);
	const struct share_owner owner = { (uint32_t)pid, pid };
	struct code_file *f;
	int r;

	if (!slot)
		return -ENOMEM;
	if (slot->number)
		return slot->number - 1;
	a->file_shares.max = FILES_MAX;
	r = shares_take(&a->file_shares, &owner, 1);
	if (r < 0)
		return r;
	if (vec_reserve(a->files, a->file_count, a->file_cap, 1) < 0)
		return -ENOMEM;
	f = &a->files[a->file_count];
	*f = (struct code_file){ .path = strndup(m->path ?: "", len),
				 .build_id_len = (uint8_t)id_len };
	if (!f->path)
		return -ENOMEM;
	f->name = strrchr(f->path, '/') ? strrchr(f->path, '/') + 1 : f->path;
	if (id_len)
		memcpy(f->build_id, m->build_id, id_len);
	*slot = (struct file_slot){ hash, ++a->file_count };
	a->known_files.count++;
	return a->file_count - 1;
}

static struct address_space *spaces_find(const struct address_spaces *a, int32_t pid)
{
	return space_slots_find(&a->spaces, hash_pid(pid), pid);
}

static struct address_space *spaces_get(struct address_spaces *a, int32_t pid)
{
	struct address_space *s = space_slots_place(&a->spaces, hash_pid(pid), pid);

	if (!s)
		return NULL;
	a->spaces.count += !s->used;
	s->used = true;
	s->pid = pid;
	return s;
}

uint64_t address_spaces_count(const struct address_spaces *a)
{
	uint64_t count = 0;

	TABLE_FOR_EACH(space_slots, &a->spaces, space)
	count += mapping_list_count(space->mappings);
	return count;
}

int address_spaces_map(struct address_spaces *a, int32_t pid, const struct new_mapping *m)
{
	struct code_mapping mapping = { .start = m->start, .offset = m->offset };
	struct address_space *s;
	int64_t file;
	int r;

	if (!m->length || __builtin_add_overflow(m->start, m->length, &mapping.end))
		return 0;
	file = spaces_find_file(a, pid, m);
	if (file == -ENOSPC) {
		a->refused++;
		return 0;
	}
	s = file < 0 ? NULL : spaces_get(a, pid);
	if (!s)
		return -ENOMEM;
	mapping.file = (uint32_t)file;
	a->memory.max = MAPPINGS_MEMORY;
	r = mapping_list_add(&s->mappings, pid, &mapping, &a->memory);
	a->refused += r == -ENOSPC;
	return r == -ENOSPC ? 0 : r;
}

void address_spaces_clear(struct address_spaces *a, int32_t pid)
{
	struct address_space *s = spaces_find(a, pid);

	if (!s)
		return;
	mapping_list_free(s->mappings, &a->memory);
	space_slots_remove(&a->spaces, s);
}

int address_spaces_fork(struct address_spaces *a, int32_t parent, int32_t child)
{
	const struct address_space *from;
	struct mapping_list *list;
	struct address_space *to;

	if (parent == child)
		return 0;
	address_spaces_clear(a, child);
	from = spaces_find(a, parent);
	list = from ? from->mappings : NULL;
	if (!list)
		return 0;
	to = spaces_get(a, child);
	if (!to)
		return -ENOMEM;
	to->mappings = mapping_list_share(list, &a->memory);
	return 0;
}

const struct code_mapping *address_spaces_find(const struct address_spaces *a, int32_t pid,
					       uint64_t address)
{
	const struct address_space *s = spaces_find(a, pid);

	return s ? mapping_list_find(s->mappings, address) : NULL;
}
