/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moving sub-buffers out of one CPU's ring.
 *
 * The problem: the kernel fills a ring at its own pace and overwrites what is not read in time.
 * The reader must empty it with few system calls, must not decode anything, and must not fill the
 * trace with events of its own work.
 *
 *	kernel, one ring per CPU                        staging (shared by one thread)
 *	┌──────┐   ┌──────┬──────┬────────┬─────┐
 *	│reader│◀──│ head │ full │ commit │empty│       ┌────┬────┬────┬─────┬────┐
 *	│ page │   └──────┴──────┴────▲───┴─────┘       │ 0  │ 1  │ 2  │ ... │open│
 *	└──┬───┘   swap when read     │ the writer      └────┴────┴────┴─────┴────┘
 *	   │                                               ▲
 *	   └── splice + read │ read │ mmap + ioctl ────────┘  whole sub-buffers in a batch
 *
 * Invariants:
 * - A batch holds whole sub-buffers, oldest first, as the kernel laid them out. Only the commit
 *   field may be changed, and only for mmap: the copy ends where the kernel counts it as consumed.
 * - Bytes that left the ring must reach a batch: if they are dropped, no count of lost events has
 *   them. So a pipe that loses bytes is a hard error, never a temporary one.
 * - No event is emitted twice. With mmap a page can be emitted in part by a flush and as a whole
 *   later: `emitted` counts the bytes of its first part, and batch.skip passes that on.
 * - Without a flush a page that the kernel is still filling stays in the ring (splice), stays in
 *   `open` (mmap), or ends the visit (read). Otherwise a quiet CPU would produce many tiny pages.
 * - A batch stays valid until the staging memory is used again, so readers of one thread share it.
 *   The pipe is shared, too, and is empty between two takes.
 * - The caller decides which errors are temporary: the CPU goes offline, memory is short.
 *
 * The three ways:
 * - splice moves up to STAGING_SUBBUFS pages in one call, without copying them in the kernel. It
 *   returns full pages only, so a flush fetches the last one by read(2): twice at most while the
 *   ring records, as each call leaves events there. It is the default.
 * - read needs one call per page. It serves where no pipe can be made.
 * - mmap moves no page at all, but needs one ioctl per page, in which the kernel counts off the
 *   page's events one by one. Measured with system calls traced, the ioctls of the recorder put
 *   millions of events into the trace, and events were lost; splice lost none
 *   (docs/architecture.md). It stays as an option because it needs neither pipe nor page moves.
 *
 * Mapped memory is the kernel's and changes while it is read. So the commit field is loaded with
 * acquire, a page is copied only after the ioctl that consumed it, and ids and sizes from the
 * meta page are checked before they become offsets.
 */
#include "daemon/capture/rings/cpu_reader.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* include/uapi/linux/trace_mmap.h of Linux 6.10; older libc headers lack it. */
struct ring_meta {
	uint32_t meta_page_size;
	uint32_t meta_struct_len;
	uint32_t subbuf_size;
	uint32_t nr_subbufs;
	struct {
		uint64_t lost_events;
		uint32_t id;
		uint32_t read;
	} reader;
	uint64_t flags;
	uint64_t entries;
	uint64_t overrun;
	uint64_t read;
	uint64_t reserved[2];
};
#define GET_READER _IO('R', 0x20)

/* kernel/trace/ring_buffer.c: RB_MISSED_EVENTS and RB_MISSED_STORED in the commit field. */
#define COMMIT_FLAGS (UINT32_C(3) << 30)

const char *cpu_reader_kind_name(enum capture_reader kind)
{
	switch (kind) {
	case CAPTURE_READER_MMAP:
		return "mmap";
	case CAPTURE_READER_SPLICE:
		return "splice";
	case CAPTURE_READER_READ:
		return "read";
	case CAPTURE_READER_AUTO:
		break;
	}
	return "none";
}

/* Without a pipe, read(2) still works. */
static void staging_make_pipe(struct staging *s)
{
	if (pipe2(s->pipe, O_CLOEXEC | O_NONBLOCK) == 0)
		fcntl(s->pipe[1], F_SETPIPE_SZ, (int)(s->subbuf_size * STAGING_SUBBUFS));
	else
		s->pipe[0] = s->pipe[1] = -EBADF;
}

int staging_init(struct staging *s, uint32_t subbuf_size)
{
	*s = STAGING_INIT;
	s->subbuf_size = subbuf_size;
	s->data = malloc((size_t)subbuf_size * (STAGING_SUBBUFS + 1));
	if (!s->data)
		return -ENOMEM;
	staging_make_pipe(s);
	return 0;
}

void staging_deinit(struct staging *s)
{
	free(s->data);
	close_fd(s->pipe[0]);
	close_fd(s->pipe[1]);
	*s = STAGING_INIT;
}

static uint32_t get_commit(const struct subbuf_layout *l, const uint8_t *page)
{
	const void *p = page + l->commit_offset;

	/* The kernel may be writing this field. Acquire: the data that it covers is visible. */
	if (l->commit_size == 8)
		return (uint32_t)__atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
	return __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
}

static void set_commit(const struct subbuf_layout *l, uint8_t *page, uint32_t commit)
{
	uint64_t wide = commit;

	if (l->commit_size == 8)
		memcpy(page + l->commit_offset, &wide, sizeof(wide));
	else
		memcpy(page + l->commit_offset, &commit, sizeof(commit));
}

static int cpu_reader_map(struct cpu_reader *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len;
	const struct ring_meta *meta;
	uint32_t meta_size, subbuf_size, count;

	meta = mmap(NULL, page, PROT_READ, MAP_SHARED, r->fd, 0);
	if (meta == MAP_FAILED)
		return -errno;
	meta_size = meta->meta_page_size;
	subbuf_size = meta->subbuf_size;
	count = meta->nr_subbufs;
	munmap((void *)(uintptr_t)meta, page);
	if (subbuf_size != r->layout.size || meta_size < page || meta_size > (64U << 20) ||
	    __builtin_mul_overflow((size_t)count, (size_t)subbuf_size, &len) ||
	    __builtin_add_overflow(len, (size_t)meta_size, &len))
		return -EBADMSG;
	r->open = malloc(subbuf_size);
	if (!r->open)
		return -ENOMEM;
	meta = mmap(NULL, len, PROT_READ, MAP_SHARED, r->fd, 0);
	if (meta == MAP_FAILED) {
		free(r->open);
		r->open = NULL;
		return -errno;
	}
	r->meta = meta;
	r->mapped = len;
	r->nr_subbufs = count;
	r->subbufs = (const uint8_t *)meta + meta_size;
	r->last_id = meta->reader.id;
	r->last_read = meta->reader.read;
	return 0;
}

int cpu_reader_open(struct cpu_reader *r, int instance_dir, unsigned cpu, enum capture_reader kind,
		    const struct subbuf_layout *layout, const struct staging *s)
{
	int code = 0;

	*r = (struct cpu_reader){ .cpu = cpu, .fd = -EBADF, .layout = *layout };
	if (s->subbuf_size < layout->size)
		return -ENOBUFS;
	r->fd = tracefs_open_file(instance_dir, O_RDONLY | O_NONBLOCK,
				  "per_cpu/cpu%u/trace_pipe_raw", cpu);
	if (r->fd < 0) {
		code = r->fd;
		r->fd = -EBADF;
		return code;
	}
	if (kind == CAPTURE_READER_MMAP) {
		code = cpu_reader_map(r);
		if (code < 0)
			goto fail;
		r->kind = CAPTURE_READER_MMAP;
	}
	if (r->kind == CAPTURE_READER_AUTO && kind != CAPTURE_READER_READ) {
		if (s->pipe[0] >= 0)
			r->kind = CAPTURE_READER_SPLICE;
		else if (kind == CAPTURE_READER_SPLICE) {
			code = -EMFILE;
			goto fail;
		}
	}
	if (r->kind == CAPTURE_READER_AUTO)
		r->kind = CAPTURE_READER_READ;
	return 0;
fail:
	cpu_reader_close(r);
	return code;
}

void cpu_reader_close(struct cpu_reader *r)
{
	/* The mapping holds the instance: rmdir returns EBUSY until it is unmapped. */
	if (r->meta)
		munmap((void *)(uintptr_t)r->meta, r->mapped);
	free(r->open);
	close_fd(r->fd);
	*r = (struct cpu_reader){ .cpu = r->cpu, .fd = -EBADF };
}

/* Copies the reader page up to what the kernel counts as consumed. */
static void copy_reader_page(const struct cpu_reader *r, uint8_t *to)
{
	const uint8_t *page = r->subbufs + (size_t)r->last_id * r->layout.size;
	uint32_t commit = get_commit(&r->layout, page);

	memcpy(to, page, r->layout.size);
	/* Data written since the ioctl comes with the next one, as a longer page. */
	if ((commit & ~COMMIT_FLAGS) > r->last_read)
		commit = (commit & COMMIT_FLAGS) | r->last_read;
	set_commit(&r->layout, to, commit);
}

/*
 * Each ioctl either consumes the new data on the reader page or, if there is none and the writer
 * has left the page, swaps it for the next one. So a page copied after the ioctl that consumed it
 * is whole once the page id changes.
 */
static int cpu_reader_take_mmap(struct cpu_reader *r, struct staging *s, unsigned max, bool flush,
				struct batch *ret)
{
	const size_t size = r->layout.size;
	unsigned n = 0; /* whole sub-buffers; the open one is stored after them */
	int code = 0;

	ret->skip = r->emitted;
	if (r->open_valid)
		memcpy(s->data, r->open, size);
	ret->more = true;
	while (n < max) {
		uint32_t id, read;

		if (ioctl(r->fd, GET_READER) < 0) {
			code = -errno;
			break;
		}
		id = r->meta->reader.id;
		read = r->meta->reader.read;
		if (id >= r->nr_subbufs) {
			code = -EBADMSG;
			break;
		}
		if (id == r->last_id && read == r->last_read) {
			ret->more = false;
			break;
		}
		if (id != r->last_id && r->open_valid) {
			/* Skip a page whose data a flush has emitted completely. */
			if (n > 0 || !r->emitted || r->emitted < r->last_read)
				n++;
			else
				ret->skip = 0;
			r->emitted = 0;
		}
		r->last_id = id;
		r->last_read = read;
		r->open_valid = read > 0;
		if (r->open_valid)
			copy_reader_page(r, s->data + n * size);
	}
	if (r->open_valid)
		memcpy(r->open, s->data + n * size, size);
	if (flush && !ret->more && r->open_valid && r->last_read > r->emitted) {
		/* If n is 0, ret->skip counts what a flush emitted of this very page. */
		r->emitted = r->last_read;
		n++;
	}
	if (n == 0)
		ret->skip = 0;
	ret->data = s->data;
	ret->subbufs = n;
	return n ? 0 : code;
}

static int cpu_reader_take_read(struct cpu_reader *r, struct staging *s, unsigned max, bool flush,
				struct batch *ret)
{
	const size_t size = r->layout.size;
	unsigned n = 0;
	int code = 0;

	ret->more = true;
	while (n < max) {
		uint8_t *page = s->data + n * size;
		ssize_t got = read(r->fd, page, size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			if (got < 0 && errno != EAGAIN)
				code = -errno;
			ret->more = false;
			break;
		}
		if ((size_t)got != size) {
			code = -EIO;
			break;
		}
		n++;
		/*
		 * Stop at the page that the kernel is filling: taking more would copy tiny parts.
		 */
		if (!flush && (get_commit(&r->layout, page) & ~COMMIT_FLAGS) < size / 2) {
			ret->more = false;
			break;
		}
	}
	ret->data = s->data;
	ret->subbufs = n;
	return n ? 0 : code;
}

/*
 * The pipe is shared: bytes left by one CPU would be taken for the next one's. These bytes have
 * left the ring and are in no count, so this is always a hard error.
 */
static int staging_lose_pipe(struct staging *s)
{
	close_fd(s->pipe[0]);
	close_fd(s->pipe[1]);
	staging_make_pipe(s);
	return -EIO;
}

/*
 * What splice does not return: the sub-buffer that the kernel is filling; and before Linux 6.2, the
 * rest of one that read(2) returned in part, and those behind it. So two reads are enough, unless
 * the second one returns a full sub-buffer.
 */
static int cpu_reader_take_rest(struct cpu_reader *r, struct staging *s, unsigned max,
				enum take take, struct batch *ret)
{
	unsigned reads = take == TAKE_ALL ? max : MIN(max, 2U);
	int code = cpu_reader_take_read(r, s, reads, true, ret);
	const uint8_t *second = s->data + r->layout.size;

	if (take == TAKE_PRESENT && ret->subbufs == 2)
		ret->more &= (get_commit(&r->layout, second) & ~COMMIT_FLAGS) >= r->layout.size / 2;
	return code;
}

static int cpu_reader_take_splice(struct cpu_reader *r, struct staging *s, unsigned max,
				  enum take take, struct batch *ret)
{
	const size_t size = r->layout.size;
	ssize_t got, done = 0;

	if (s->pipe[0] < 0)
		return cpu_reader_take_read(r, s, max, take != TAKE_FULL, ret);
	do {
		got = splice(r->fd, NULL, s->pipe[1], NULL, size * max,
			     SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno != EAGAIN)
		return -errno;
	if (got <= 0) {
		return take == TAKE_FULL ? 0 : cpu_reader_take_rest(r, s, max, take, ret);
	}
	while (done < got) {
		ssize_t n = read(s->pipe[0], s->data + done, (size_t)(got - done));

		if (n < 0 && errno == EINTR)
			continue;
		/*
		 * splice reported these bytes, so they must all be there. EAGAIN is an error, too.
		 */
		if (n <= 0)
			return staging_lose_pipe(s);
		done += n;
	}
	if ((size_t)got % size)
		return -EIO;
	ret->data = s->data;
	ret->subbufs = (unsigned)((size_t)got / size);
	/* The pipe may have had less room than requested: only EAGAIN means empty. */
	ret->more = true;
	return 0;
}

int cpu_reader_take(struct cpu_reader *r, struct staging *s, unsigned max, enum take take,
		    struct batch *ret)
{
	int code;

	*ret = (struct batch){ 0 };
	max = MIN(max, (unsigned)STAGING_SUBBUFS);
	switch (r->kind) {
	case CAPTURE_READER_MMAP:
		code = cpu_reader_take_mmap(r, s, max, take != TAKE_FULL, ret);
		break;
	case CAPTURE_READER_SPLICE:
		code = cpu_reader_take_splice(r, s, max, take, ret);
		break;
	default:
		code = cpu_reader_take_read(r, s, max, take != TAKE_FULL, ret);
		break;
	}
	r->bytes += (uint64_t)ret->subbufs * r->layout.size;
	return code;
}
