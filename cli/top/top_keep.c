/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top_keep.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/vec.h"
#include "output/name.h"
#include "stream/reader.h"

int top_keep_init(struct top_keep *ret, struct error *err)
{
	int fd = memfd_create("tracectl-top", MFD_CLOEXEC);

	*ret = (struct top_keep){ .fd = fd };
	return fd < 0 ? error_errno(err, -errno, "cannot keep the recording in memory") : 0;
}

void top_keep_deinit(struct top_keep *k)
{
	k->fd = close_fd(k->fd);
}

static uint64_t top_keep_size(const struct top_keep *k)
{
	struct stat st;

	return fstat(k->fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* The oldest mark goes if the next one is old enough, too, or too much lies behind it. */
static bool top_keep_has_enough(const struct top_keep *k, uint64_t now_ns)
{
	const struct top_keep_mark *newest = &k->marks[k->count - 1];

	return k->count == TOP_KEEP_MARKS || now_ns - k->marks[1].ns >= TOP_KEEP_NS ||
	       newest->from - k->marks[0].from > TOP_KEEP_BYTES;
}

void top_keep_note(struct top_keep *k, uint64_t head, uint64_t from, uint64_t now_ns)
{
	const uint64_t before = k->count ? k->marks[k->count - 1].from : head;

	if (!head || (k->head && head != k->head) || from < MAX(head, before) ||
	    from > top_keep_size(k))
		return;
	k->head = head;
	k->freed = MAX(k->freed, head);
	k->marks[k->count++] = (struct top_keep_mark){ from, now_ns };
	while (k->count > 1 && top_keep_has_enough(k, now_ns))
		vec_remove(k->marks, k->count, 0, 1);
	/* Memory that cannot be freed is only memory. */
	if (k->marks[0].from > k->freed &&
	    fallocate(k->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)k->freed,
		      (off_t)(k->marks[0].from - k->freed)) == 0)
		k->freed = k->marks[0].from;
}

/* Copies the head without events: they would be far from the others. */
static int top_keep_copy_head(const struct top_keep *k, int out)
{
	struct stream_reader reader;
	struct chunk chunk;
	uint64_t from = 0;
	int r = stream_reader_init(&reader, k->fd, NULL);

	reader.size = k->head;
	while (r == 0 && (r = stream_reader_next(&reader, &chunk, NULL)) > 0) {
		r = 0;
		if (!stream_reader_has_events(&reader, &chunk))
			continue;
		r = copy_range(out, k->fd, from, chunk.offset - from);
		from = reader.offset;
	}
	return r < 0 ? r : copy_range(out, k->fd, from, k->head - from);
}

static int top_keep_copy(const struct top_keep *k, int out)
{
	/* Tells readers that something is missing here: docs/capture-format.md, FLUSH. */
	static const char gap[sizeof(struct chunk_header)];
	const uint64_t size = top_keep_size(k);
	size_t first = 0;
	uint64_t from;
	int r = top_keep_copy_head(k, out);

	/* The bytes since the newest mark count, too. */
	while (first + 1 < k->count && size - k->marks[first].from > TOP_KEEP_BYTES)
		first++;
	from = MAX(k->marks[first].from, k->freed);

	if (r == 0)
		r = write_full(out, gap, sizeof(gap));
	if (r == 0 && size > from)
		r = copy_range(out, k->fd, from, size - from);
	return r;
}

int top_keep_save(const struct top_keep *k, const char *path, struct error *err)
{
	_cleanup_output_name_ struct output_name name = OUTPUT_NAME_INIT;
	int r;

	if (!k->count)
		return error_set(err, -ENODATA, "nothing was recorded yet");
	r = output_name_open(&name, path, OUTPUT_FILE, err);
	if (r < 0)
		return r;
	name.fresh = true;
	r = top_keep_copy(k, name.fd);
	return r < 0 ? output_name_explain(&name, r, err) : output_name_commit(&name, err);
}
