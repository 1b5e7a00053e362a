/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks the chunks of one CPU, or of one ring of marks, and loads them into a window, whole or
 * piece by piece. The merge, the rings of marks and the reader of samples have one cursor per CPU
 * or ring.
 *
 * Their users differ in these points, and keep them to themselves:
 * - Damage: each counts a chunk that can't be read in its own way, then skips it.
 * - Ripe chunks (`ripe` in index.h): rings of marks pass the limit to chunk_cursor_enter(). The
 *   merge enters later chunks too, since they may hold older records than ripe chunks of other
 *   CPUs. It stops at the first record of such a chunk.
 * - Memory: rings of marks and samples call chunk_cursor_reserve() before they load. The merge
 *   lends its windows, so it bounds them itself.
 *
 * The list is passed at each call, because it moves when the index grows.
 */
#pragma once

#include "stream/reader.h"
#include "trace/chunk_list.h"

/* Shared by the cursors of one user. */
struct chunk_source {
	const struct stream_reader *reader; /* borrowed */
	enum chunk_type type;
	uint32_t head;	    /* bytes of the payload before its content */
	uint32_t whole_max; /* bytes; a longer chunk is loaded in parts */
	uint64_t held;	    /* bytes of all reserved windows */
	uint64_t held_max;
	struct buf scratch; /* owned; for data that is only checked */
};

struct chunk_cursor {
	size_t next;	    /* number of the next chunk in the list */
	struct chunk chunk; /* the current chunk */
	uint32_t skip;	    /* the current chunk's, see struct chunk_ref */
	uint32_t at;	    /* offset in its payload at which the next piece begins */
	uint32_t from;	    /* offset of the window in its payload */
	struct buf window;
	size_t used; /* bytes of the window that were consumed */
};

void chunk_source_deinit(struct chunk_source *s);
/*
 * Makes room for a window of this size, and empties the window if it has to grow. Returns 0;
 * -EFBIG: all windows together would exceed held_max; or -ENOMEM.
 */
int chunk_cursor_reserve(struct chunk_cursor *c, struct chunk_source *s, size_t bytes);
/* Frees a reserved window. */
void chunk_cursor_release(struct chunk_cursor *c, struct chunk_source *s);

/* True if a part of the current chunk was not loaded yet. */
static inline bool chunk_cursor_inside(const struct chunk_cursor *c)
{
	return c->at < c->chunk.length;
}

/* Bytes in the window that were not consumed yet. */
static inline size_t chunk_cursor_left(const struct chunk_cursor *c)
{
	return c->window.len - c->used;
}

/*
 * Enters the next chunk, if it lies before offset limit, and empties the window. Checks the hash of
 * a chunk that is to be loaded in parts. Returns 1; 0: there is none; -EBADMSG: it is damaged; or
 * another -errno.
 */
int chunk_cursor_enter(struct chunk_cursor *c, struct chunk_source *s,
		       const struct chunk_list *list, uint64_t limit, struct error *err);
/*
 * Replaces the window by the whole chunk, consumed up to its content. Returns 0; -EBADMSG: it is
 * damaged; -EFBIG: it is longer than whole_max; or another -errno. On failure the window is empty.
 */
int chunk_cursor_load(struct chunk_cursor *c, struct chunk_source *s, struct error *err);
/* The same for len bytes of the payload from offset `from` on, with nothing consumed. */
int chunk_cursor_load_part(struct chunk_cursor *c, struct chunk_source *s, uint32_t from,
			   uint32_t len, struct error *err);
/* Skips the rest of the chunk, and of the window. */
void chunk_cursor_skip(struct chunk_cursor *c);
/* Offset of the first chunk that was not loaded to its end; UINT64_MAX: none. */
uint64_t chunk_cursor_needs(const struct chunk_cursor *c, const struct chunk_list *list);
