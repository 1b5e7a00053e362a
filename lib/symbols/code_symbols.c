/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbols/code_symbols.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/vec.h"
#include "symbols/elf_file.h"
#include "symbols/jit_map.h"

#define FILES_MAX 4096
#define BUILD_ID_MAX 64

/* A mapped file, or the code that one process compiled at run time. */
struct code_file {
	char *path; /* owned; NULL: code that process pid compiled */
	unsigned char build_id[BUILD_ID_MAX];
	size_t build_id_len;
	int32_t pid;
	struct elf_file *elf; /* owned; NULL: unusable or missing */
	struct jit_map *jit;  /* owned; NULL: unusable or missing */
};

struct code_symbols {
	const char *folder;
	const struct code_opener *opener; /* or NULL */
	struct code_file *files;	  /* owned */
	size_t count, cap;
	size_t last;	/* index of the file found last */
	size_t changed; /* files that differ from the recorded ones */
};

int code_symbols_new(struct code_symbols **ret, const char *folder,
		     const struct code_opener *opener)
{
	struct code_symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->folder = folder;
	s->opener = opener;
	*ret = s;
	return 0;
}

struct code_symbols *code_symbols_free(struct code_symbols *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->count; i++) {
		free(s->files[i].path);
		elf_file_free(s->files[i].elf);
		jit_map_free(s->files[i].jit);
	}
	free(s->files);
	free(s);
	return NULL;
}

/* To open a file of the kernel's own may do something: tracefs's "trace" stops a recording. */
static bool code_file_is_kernels(int fd)
{
	static const long types[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC,	    DEBUGFS_MAGIC,
				      TRACEFS_MAGIC,	CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
				      SECURITYFS_MAGIC, EFIVARFS_MAGIC,	    PSTOREFS_MAGIC,
				      BPF_FS_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (fs.f_type == (__typeof__(fs.f_type))types[i])
			return true;
	return false;
}

/* Looked at before it is opened: opening a FIFO would block, and a device may do anything. */
int code_file_open(const char *path, enum code_file_kind kind)
{
	int flags = O_PATH | O_CLOEXEC, fd;
	_cleanup_close_ int place = open(path, kind == CODE_FILE_MAP ? flags | O_NOFOLLOW : flags);
	struct stat st;
	char link[64];

	if (place < 0 || fstat(place, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || code_file_is_kernels(place))
		return -EINVAL;
	/* Anybody can create one in /tmp. */
	if (kind == CODE_FILE_MAP && st.st_uid && st.st_uid != geteuid())
		return -EPERM;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int code_symbols_open(const struct code_symbols *s, const char *path,
			     enum code_file_kind kind)
{
	return s->opener ? s->opener->open(s->opener->userdata, path, kind)
			 : code_file_open(path, kind);
}

static bool code_file_try_elf(struct code_symbols *s, struct code_file *f, const char *path,
			      bool *changed)
{
	int fd = code_symbols_open(s, path, CODE_FILE_ELF), r;

	if (fd < 0)
		return false;
	r = elf_file_open(&f->elf, fd, path, s->folder, s->opener, f->build_id, f->build_id_len);
	*changed |= r == -ESTALE;
	return r == 0;
}

static bool code_file_try_build_id(struct code_symbols *s, struct code_file *f, bool *changed)
{
	char hex[2 * BUILD_ID_MAX + 1];
	bool found = false;

	if (f->build_id_len < 2)
		return false;
	for (size_t i = 0; i < f->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", f->build_id[i]);
	for (int i = 0; i < 2 && !found; i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/.build-id/%.2s/%s%s", s->folder, hex, hex + 2,
			     i ? ".debug" : "") < 0)
			path = NULL;
		found = path && code_file_try_elf(s, f, path, changed);
	}
	return found;
}

static void code_file_open_elf(struct code_symbols *s, struct code_file *f)
{
	const char *base = strrchr(f->path, '/') ?: f->path;
	_cleanup_free_ char *whole = NULL, *last = NULL;
	bool changed = false;

	if (s->folder) {
		if (code_file_try_build_id(s, f, &changed))
			return;
		if (asprintf(&whole, "%s/%s", s->folder, f->path) < 0)
			whole = NULL;
		if (whole && code_file_try_elf(s, f, whole, &changed))
			return;
		if (asprintf(&last, "%s/%s", s->folder, base) < 0)
			last = NULL;
		if (last && code_file_try_elf(s, f, last, &changed))
			return;
	}
	if (f->path[0] == '/' && code_file_try_elf(s, f, f->path, &changed))
		return;
	s->changed += changed;
}

static void code_file_open_jit(struct code_symbols *s, struct code_file *f)
{
	const char *folders[] = { s->folder, "/tmp" };

	for (size_t i = 0; i < ARRAY_SIZE(folders) && !f->jit; i++) {
		_cleanup_free_ char *path = NULL;
		_cleanup_close_ int fd = -EBADF;

		if (!folders[i] || asprintf(&path, "%s/perf-%d.map", folders[i], f->pid) < 0) {
			path = NULL;
			continue;
		}
		fd = code_symbols_open(s, path, CODE_FILE_MAP);
		if (fd >= 0 && jit_map_read(&f->jit, fd) < 0)
			f->jit = NULL;
	}
}

static bool code_file_is(const struct code_file *f, const struct code_place *p, bool made)
{
	if (made)
		return !f->path && f->pid == p->pid;
	return f->path && f->build_id_len == MIN(p->build_id_len, (size_t)BUILD_ID_MAX) &&
	       !strcmp(f->path, p->path) &&
	       (!f->build_id_len || !memcmp(f->build_id, p->build_id, f->build_id_len));
}

static struct code_file *code_file_find(struct code_symbols *s, const struct code_place *p)
{
	bool made = code_path_is_made(p->path);
	struct code_file *f;

	if (s->last < s->count && code_file_is(&s->files[s->last], p, made))
		return &s->files[s->last];
	for (s->last = 0; s->last < s->count; s->last++)
		if (code_file_is(&s->files[s->last], p, made))
			return &s->files[s->last];
	if (s->count == FILES_MAX)
		return NULL;
	if (vec_reserve(s->files, s->count, s->cap, 1) < 0)
		return NULL;
	f = &s->files[s->count];
	*f = (struct code_file){ .pid = p->pid };
	if (!made) {
		f->path = strdup(p->path);
		f->build_id_len = MIN(p->build_id_len, (size_t)BUILD_ID_MAX);
		if (f->build_id_len)
			memcpy(f->build_id, p->build_id, f->build_id_len);
		if (!f->path)
			return NULL;
		code_file_open_elf(s, f);
	} else if (p->pid > 0) {
		code_file_open_jit(s, f);
	}
	s->count++;
	return f;
}

const char *code_symbols_find(struct code_symbols *s, const struct code_place *place)
{
	struct code_file *f = code_file_find(s, place);

	if (f && f->elf)
		return elf_file_find(f->elf, place->offset);
	return f && f->jit ? jit_map_find(f->jit, place->address) : NULL;
}

size_t code_symbols_changed(const struct code_symbols *s)
{
	return s->changed;
}
