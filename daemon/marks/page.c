/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/marks/page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

/* True if programs would map the file: they check owner, mode and size, too. */
static bool page_is_usable(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 022) && st.st_size == MARKS_PAGE_BYTES;
}

static int page_open_file(const char *path, bool *ret_made, struct error *err)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags);

	*ret_made = false;
	if (fd >= 0 && page_is_usable(fd))
		return fd;
	close_fd(fd);
	if (fd >= 0 || errno == ELOOP)
		unlink(path);
	fd = open(path, flags | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return error_errno(err, -errno, "cannot create %s", path);
	*ret_made = true;
	/* fchmod: independent of the umask. Allocate now: a hole might find no memory later. */
	if (fchmod(fd, 0644) < 0 || posix_fallocate(fd, 0, MARKS_PAGE_BYTES) != 0) {
		int r = error_errno(err, errno ? -errno : -ENOSPC, "cannot set up %s", path);

		unlink(path);
		close_fd(fd);
		return r;
	}
	return fd;
}

static void page_set_word(struct marks_page_file *f, uint32_t word)
{
	__atomic_store_n(&f->page->word, word, __ATOMIC_RELEASE);
}

/* Safe to unlink: no program maps a new page before it is initialized. */
static int page_fail(const char *path, bool made, int code, struct error *err)
{
	if (made)
		unlink(path);
	return error_errno(err, code, "cannot set up %s", path);
}

int marks_page_open(struct marks_page_file *ret, const char *path, bool transient,
		    struct error *err)
{
	struct marks_page_file f = { 0 };
	_cleanup_close_ int fd = page_open_file(path, &f.made, err);
	uint64_t daemon;
	void *p;

	if (fd < 0)
		return fd;
	if (getrandom(&daemon, sizeof(daemon), 0) != sizeof(daemon))
		return page_fail(path, f.made, -errno, err);
	p = mmap(NULL, MARKS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return page_fail(path, f.made, -errno, err);
	f.page = p;
	f.path = strdup(path);
	if (!f.path) {
		munmap(p, MARKS_PAGE_BYTES);
		return page_fail(path, f.made, -ENOMEM, err);
	}
	/* A generation that rings of an earlier daemon don't have. */
	f.generation = MARKS_GENERATION_MIN + ((uint32_t)daemon & 0xffffff);
	page_set_word(&f, MARKS_OFF);
	f.page->version = MARKS_PAGE_VERSION;
	f.transient = transient && (f.made || f.page->transient);
	f.page->transient = f.transient;
	f.page->daemon = daemon | 1;
	*ret = f;
	return 0;
}

void marks_page_close(struct marks_page_file *f)
{
	if (!f->page)
		return;
	if (f->transient) {
		unlink(f->path);
		page_set_word(f, MARKS_GONE);
	} else {
		page_set_word(f, MARKS_OFF);
	}
	munmap(f->page, MARKS_PAGE_BYTES);
	free(f->path);
	*f = (struct marks_page_file){ 0 };
}

uint32_t marks_page_begin(struct marks_page_file *f)
{
	page_set_word(f, ++f->generation);
	return f->generation;
}

void marks_page_end(struct marks_page_file *f)
{
	page_set_word(f, MARKS_OFF);
}
