/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "fleet/result_name.h"

#define FOLDER "spool"
#define HASH_SIZE crypto_generichash_BYTES
#define HASH_LEN (2 * (size_t)HASH_SIZE)
/* Names sort by serial. */
#define SERIAL_LEN 20

static bool spool_parse(const char *name, struct spool_entry *ret)
{
	const char *hash = name + SERIAL_LEN + 1;

	if (strspn(name, "0123456789") != SERIAL_LEN || name[SERIAL_LEN] != '-' ||
	    strspn(hash, "0123456789abcdef") != HASH_LEN || hash[HASH_LEN] != '.' ||
	    strlen(name) >= sizeof(ret->name))
		return false;
	strcpy(ret->name, name);
	ret->serial = strtoull(name, NULL, 10);
	ret->remote = ret->name + SERIAL_LEN + 1;
	return true;
}

/* By serial, then by the number of the segment. Both are names that spool_parse() accepts. */
static int spool_compare(const char *a, const char *b)
{
	const size_t suffix = SERIAL_LEN + 1 + HASH_LEN + 1;
	const unsigned x = result_segment_parse(a + suffix), y = result_segment_parse(b + suffix);
	int r = strncmp(a, b, SERIAL_LEN);

	r = r ?: (x > y) - (x < y);
	return r ?: strcmp(a, b);
}

/* Calls back for each result. Other names are not ours. */
static int spool_walk(const struct spool *s,
		      void (*visit)(const struct spool_entry *entry, void *data), void *data)
{
	DIR *dir = folder_at(s->dirfd, ".");
	struct dirent *e;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		struct spool_entry entry;
		struct stat st;

		if (!spool_parse(e->d_name, &entry) ||
		    fstatat(s->dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		entry.size = (uint64_t)st.st_size;
		visit(&entry, data);
	}
	closedir(dir);
	return 0;
}

static void spool_add_size(const struct spool_entry *entry, void *data)
{
	*(uint64_t *)data += entry->size;
}

static int spool_add_sizes(struct spool *s)
{
	s->bytes = 0;
	return spool_walk(s, spool_add_size, &s->bytes);
}

struct spool_search {
	struct spool_entry *best;
	const char *after; /* "": from the first */
	bool is_backward;
};

static void spool_keep_first(const struct spool_entry *entry, void *data)
{
	const struct spool_search *search = data;
	struct spool_entry *best = search->best;
	const int sign = search->is_backward ? -1 : 1;

	if ((search->after[0] && sign * spool_compare(entry->name, search->after) <= 0) ||
	    (best->name[0] && sign * spool_compare(best->name, entry->name) <= 0))
		return;
	*best = *entry;
	best->remote = best->name + SERIAL_LEN + 1;
}

int spool_open(struct spool *ret, int state_fd, struct error *err)
{
	struct spool s = SPOOL_INIT;
	int r;

	if (mkdirat(state_fd, FOLDER, 0700) < 0 && errno != EEXIST)
		return error_errno(err, -errno, FOLDER);
	s.dirfd = openat(state_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	r = s.dirfd < 0 ? -errno : spool_walk(&s, spool_add_size, &s.bytes);
	if (r < 0) {
		spool_close(&s);
		return error_errno(err, r, FOLDER);
	}
	*ret = s;
	return 0;
}

void spool_close(struct spool *s)
{
	s->dirfd = close_fd(s->dirfd);
}

static int spool_hash(int fd, char ret[HASH_LEN + 1])
{
	unsigned char hash[HASH_SIZE], data[16384];
	crypto_generichash_state state;
	ssize_t n;
	off_t at = 0;

	crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	while ((n = pread_full(fd, data, sizeof(data), at)) > 0) {
		crypto_generichash_update(&state, data, (unsigned long long)n);
		at += n;
	}
	if (n < 0)
		return (int)n;
	crypto_generichash_final(&state, hash, sizeof(hash));
	sodium_bin2hex(ret, HASH_LEN + 1, hash, sizeof(hash));
	return 0;
}

static int spool_find(const struct spool *s, const char *after, bool is_backward,
		      struct spool_entry *ret)
{
	struct spool_search search = { .best = ret, .after = after, .is_backward = is_backward };
	int r;

	*ret = (struct spool_entry){ 0 };
	r = spool_walk(s, spool_keep_first, &search);
	return r < 0 ? r : ret->name[0] != '\0';
}

/* False: the new file has to go. */
static bool spool_make_room(struct spool *s, uint64_t size, uint64_t max)
{
	struct spool_entry first;

	while (s->bytes > max - size) {
		if (s->drops_newest) {
			/* Somebody else may have removed files. */
			if (spool_add_sizes(s) == 0 && s->bytes <= max - size)
				return true;
			s->dropped++;
			return false;
		}
		if (spool_find(s, "", false, &first) <= 0 || spool_remove(s, &first) < 0)
			return true;
		s->dropped++;
		s->gave_way += first.serial == s->counted;
	}
	return true;
}

int spool_add(struct spool *s, int from_fd, const char *name, uint64_t serial, const char *suffix,
	      uint64_t max, struct error *err)
{
	_cleanup_close_ int fd = openat(from_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char hash[HASH_LEN + 1], to[SPOOL_NAME_MAX];
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "%s", name);
	if ((uint64_t)st.st_size > max)
		return error_set(err, -EFBIG, "%s is larger than the spool may be", name);
	r = spool_hash(fd, hash);
	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		return error_errno(err, r, "%s", name);
	snprintf(to, sizeof(to), "%0*" PRIu64 "-%s.%s", SERIAL_LEN, serial, hash, suffix);
	if (!spool_make_room(s, (uint64_t)st.st_size, max))
		return error_set(err, -ENOSPC, "%s: the spool is full", name);
	if (renameat(from_fd, name, s->dirfd, to) < 0 || fsync(s->dirfd) < 0)
		return error_errno(err, -errno, "%s", name);
	/* The same content may have been there. */
	r = spool_add_sizes(s);
	return r < 0 ? error_errno(err, r, FOLDER) : 0;
}

int spool_next(struct spool *s, const char *after, struct spool_entry *ret)
{
	int r = spool_find(s, after, s->sends_newest, ret);

	if (r == 0 && *after)
		r = spool_find(s, "", s->sends_newest, ret);
	/* Somebody else may have removed files. */
	if (r == 0)
		s->bytes = 0;
	return r;
}

struct spool_order {
	uint64_t serial;
	bool is_found;
};

static void spool_find_order(const struct spool_entry *entry, void *data)
{
	struct spool_order *order = data;

	order->is_found |= entry->serial == order->serial;
}

bool spool_has(const struct spool *s, uint64_t serial)
{
	struct spool_order order = { .serial = serial };

	return spool_walk(s, spool_find_order, &order) < 0 || order.is_found;
}

int spool_open_entry(const struct spool *s, const struct spool_entry *entry)
{
	int fd = openat(s->dirfd, entry->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

int spool_remove(struct spool *s, const struct spool_entry *entry)
{
	/* It may have given way to a newer one while it was sent. */
	if (unlinkat(s->dirfd, entry->name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	s->bytes -= MIN(s->bytes, entry->size);
	return 0;
}
