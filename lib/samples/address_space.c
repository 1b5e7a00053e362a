/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/address_space.h"

#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"

#define FILES_MAX 65536
#define MAPPINGS_MAX (1U << 20)

struct address_space {
	bool used;
	int32_t pid;
	uint32_t count, cap;
	struct code_mapping *mappings; /* owned; sorted by start, no overlaps */
};

static size_t hash_pid(int32_t pid)
{
	return (uint32_t)pid * UINT32_C(0x9e3779b9) >> 4;
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
	free(space->mappings);
	free(a->files);
	free(a->known_files.slots);
	free(a->spaces.slots);
	*a = (struct address_spaces){ 0 };
}

static uint32_t hash_file(const char *path, size_t len, const void *build_id, size_t id_len)
{
	uint64_t hash = XXH3_64bits(path, len);

	return (uint32_t)(id_len ? XXH3_64bits_withSeed(build_id, id_len, hash) : hash);
}

/* Returns the file's number; -ENOSPC: too many files. */
static int64_t spaces_find_file(struct address_spaces *a, const struct new_mapping *m)
{
	size_t len = strnlen(m->path ?: "", m->path_len);
	size_t id_len = MIN(m->build_id_len, sizeof(a->files->build_id));
	uint32_t hash = hash_file(m->path ?: "", len, m->build_id, id_len);
	struct file_key key = { a, m->path ?: "", len, m->build_id, id_len, hash };
	struct file_slot *slot = file_slots_place(&a->known_files, hash, &key);
	struct code_file *f;

	if (!slot)
		return -ENOMEM;
	if (slot->number)
		return slot->number - 1;
	if (a->file_count == FILES_MAX)
		return -ENOSPC;
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

/* Index of the first mapping that ends after the address. */
static uint32_t space_first_behind(const struct address_space *s, uint64_t address)
{
	return lower_bound(i, s->count, s->mappings[i].end <= address);
}

/* Replaces `removed` mappings from `at` on by room for `count`. */
static int space_make_room(struct address_spaces *a, struct address_space *s, uint32_t at,
			   uint32_t removed, uint32_t count)
{
	uint32_t total = s->count - removed + count;

	if (total > s->count && vec_reserve(s->mappings, s->count, s->cap, total - s->count) < 0)
		return -ENOMEM;
	memmove(&s->mappings[at + count], &s->mappings[at + removed],
		(s->count - at - removed) * sizeof(*s->mappings));
	a->mappings = a->mappings - removed + count;
	s->count = total;
	return 0;
}

static int space_insert(struct address_spaces *a, struct address_space *s,
			const struct code_mapping *m)
{
	uint32_t at = space_first_behind(s, m->start), last = at, count = 0;
	struct code_mapping pieces[3];

	/* Keep the uncovered parts of the first and last overlapped mappings. */
	if (at < s->count && s->mappings[at].start < m->start) {
		pieces[count] = s->mappings[at];
		pieces[count++].end = m->start;
	}
	pieces[count++] = *m;
	while (last < s->count && s->mappings[last].start < m->end)
		last++;
	if (last > at && s->mappings[last - 1].end > m->end) {
		pieces[count] = s->mappings[last - 1];
		pieces[count].offset += m->end - pieces[count].start;
		pieces[count++].start = m->end;
	}
	if (space_make_room(a, s, at, last - at, count) < 0)
		return -ENOMEM;
	memcpy(&s->mappings[at], pieces, count * sizeof(*pieces));
	return 0;
}

int address_spaces_map(struct address_spaces *a, int32_t pid, const struct new_mapping *m)
{
	struct code_mapping mapping = { .start = m->start, .offset = m->offset };
	struct address_space *s;
	int64_t file;

	if (!m->length || __builtin_add_overflow(m->start, m->length, &mapping.end))
		return 0;
	file = spaces_find_file(a, m);
	if (file == -ENOSPC || a->mappings + 2 > MAPPINGS_MAX) {
		a->refused++;
		return 0;
	}
	s = file < 0 ? NULL : spaces_get(a, pid);
	if (!s)
		return -ENOMEM;
	mapping.file = (uint32_t)file;
	return space_insert(a, s, &mapping);
}

void address_spaces_clear(struct address_spaces *a, int32_t pid)
{
	struct address_space *s = spaces_find(a, pid);

	if (!s)
		return;
	a->mappings -= s->count;
	free(s->mappings);
	s->mappings = NULL;
	s->count = s->cap = 0;
}

int address_spaces_fork(struct address_spaces *a, int32_t parent, int32_t child)
{
	const struct address_space *from;
	struct address_space *to;

	address_spaces_clear(a, child);
	to = spaces_get(a, child);
	if (!to)
		return -ENOMEM;
	from = spaces_find(a, parent);
	if (!from || !from->count)
		return 0;
	if (a->mappings + from->count > MAPPINGS_MAX) {
		a->refused += from->count;
		return 0;
	}
	if (vec_reserve(to->mappings, to->count, to->cap, from->count) < 0)
		return -ENOMEM;
	memcpy(to->mappings, from->mappings, from->count * sizeof(*to->mappings));
	to->count = from->count;
	a->mappings += to->count;
	return 0;
}

const struct code_mapping *address_spaces_find(const struct address_spaces *a, int32_t pid,
					       uint64_t address)
{
	const struct address_space *s = spaces_find(a, pid);
	uint32_t at = s ? space_first_behind(s, address) : 0;

	return s && at < s->count && s->mappings[at].start <= address ? &s->mappings[at] : NULL;
}
