/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/last_boot.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "proto/capture.pb-c.h"
#include "traced/stream.h"

#define MODULES_MAX (1U << 20)
#define PSTORE_FILE_MAX (1U << 20)
#define PSTORE_FILES_MAX 64
/* Together with the modules below STREAM_LAST_BOOT_MAX. */
#define PSTORE_MAX (2U << 20)
#define KALLSYMS_STEP (512U << 10)

int last_boot_nothing(const char *instance, struct error *err)
{
	error_set(err, -ENODATA, "there is nothing from the last boot in '%s'", instance);
	return error_hint(err, "the machine was switched off, its firmware cleared the memory, the "
			       "kernel moved, or nothing was recorded");
}

int last_boot_read_info(int dir, const char *instance, struct buf *out, struct error *err)
{
	int r = tracefs_read(dir, "last_boot_info", out);

	if (r == -ENOENT) {
		error_set(err, -ENOTTY, "the instance '%s' is not persistent", instance);
		return error_hint(
			err, "see 'tracectl boot-recorder enable' for the kernel's command line");
	}
	if (r < 0 || !buf_string(out))
		return error_errno(err, r < 0 ? r : -ENOMEM, "last_boot_info");
	if (strcmp(out->data, "# Current") != 0)
		return 0;
	return last_boot_nothing(instance, err);
}

/* The address of a symbol of the kernel itself; text holds whole lines. 0: not there. */
static uint64_t last_boot_find_symbol(const struct buf *text, const char *end_of_line)
{
	const char *found = memmem(text->data, text->len, end_of_line, strlen(end_of_line));
	const char *line;

	if (!found)
		return 0;
	line = memrchr(text->data, '\n', (size_t)(found - (const char *)text->data));
	return strtoull(line ? line + 1 : text->data, NULL, 16);
}

/* Reads kallsyms in parts: nearly all of it is not needed. */
static int last_boot_find_kernel(const char *proc, Traced__Capture__LastBoot *m)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int fd = -EBADF;
	char path[256];

	snprintf(path, sizeof(path), "%s/kallsyms", proc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (!m->text || !m->end)) {
		char *p = buf_reserve(&text, KALLSYMS_STEP), *last;
		ssize_t got = p ? read_full(fd, p, KALLSYMS_STEP) : -ENOMEM;

		if (got <= 0)
			return (int)got;
		text.len += (size_t)got;
		m->text = m->text ?: last_boot_find_symbol(&text, " T _text\n");
		m->end = m->end ?: last_boot_find_symbol(&text, " B _end\n")
				?: last_boot_find_symbol(&text, " D _end\n");
		/* A line may go on in the next part. */
		last = memrchr(text.data, '\n', text.len);
		if (last) {
			text.len -= (size_t)(last - (char *)text.data);
			memmove(text.data, last, text.len);
		}
	}
	return 0;
}

struct pstore_texts {
	Traced__Capture__PstoreFile *files, **list;
	size_t count, cap, bytes;
};

static void pstore_texts_deinit(struct pstore_texts *t)
{
	for (size_t i = 0; i < t->count; i++) {
		free(t->files[i].name.data);
		free(t->files[i].text.data);
	}
	free(t->files);
	free(t->list);
}

static int pstore_add(struct pstore_texts *t, int dir, const char *name)
{
	Traced__Capture__PstoreFile file = TRACED__CAPTURE__PSTORE_FILE__INIT;
	struct buf text = BUF_INIT;
	int r = read_file_at(dir, name, PSTORE_FILE_MAX, &text);

	/* Unreadable files, and files too long to be pstore's, are left out. */
	if (r < 0 || text.len > PSTORE_MAX - t->bytes) {
		buf_deinit(&text);
		return r == -ENOMEM ? r : 0;
	}
	file.name.data = (uint8_t *)strdup(name);
	file.name.len = strlen(name);
	file.text.data = (uint8_t *)text.data;
	file.text.len = text.len;
	if (file.name.data && vec_push(t->files, t->count, t->cap, file) == 0) {
		t->bytes += text.len;
		return 0;
	}
	free(file.name.data);
	buf_deinit(&text);
	return -ENOMEM;
}

/* Takes "dmesg-efi-..."; not what pstore could not unpack ("....enc.z"). */
static int pstore_read(const char *sys, struct pstore_texts *t)
{
	char path[256];
	struct dirent *e;
	int r = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/fs/pstore", sys);
	dir = opendir(path);
	while (dir && r == 0 && t->count < PSTORE_FILES_MAX && (e = readdir(dir)))
		if (strncmp(e->d_name, "dmesg-", 6) == 0 && !strstr(e->d_name, ".enc"))
			r = pstore_add(t, dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	if (r == 0 && t->count) {
		t->list = calloc(t->count, sizeof(*t->list));
		r = t->list ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < t->count; i++)
		t->list[i] = &t->files[i];
	return r;
}

int last_boot_pack(const struct capture_env *env, struct buf *info, struct buf *out,
		   struct error *err)
{
	_cleanup_(pstore_texts_deinit) struct pstore_texts pstore = { 0 };
	Traced__Capture__LastBoot m = TRACED__CAPTURE__LAST_BOOT__INIT;
	_cleanup_buf_ struct buf modules = BUF_INIT;
	char path[256];
	uint8_t *p;
	int r;

	snprintf(path, sizeof(path), "%s/modules", env->proc);
	r = read_file_at(AT_FDCWD, path, MODULES_MAX, &modules);
	if (r != -ENOMEM)
		r = last_boot_find_kernel(env->proc, &m);
	if (r >= 0)
		r = pstore_read(capture_env_sys(env), &pstore);
	if (r < 0)
		return error_errno(err, r, "cannot describe the last boot");
	m.info = (ProtobufCBinaryData){ info->len, (uint8_t *)info->data };
	m.modules = (ProtobufCBinaryData){ modules.len, (uint8_t *)modules.data };
	m.pstore = pstore.list;
	m.n_pstore = pstore.count;
	p = (uint8_t *)buf_reserve(out, traced__capture__last_boot__get_packed_size(&m));
	if (!p)
		return error_errno(err, -ENOMEM, "cannot describe the last boot");
	out->len += traced__capture__last_boot__pack(&m, p);
	return 0;
}
