/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A batch: events that one thread fetched and renders, and the rendered bytes. Internal to render.c
 * and turns.c.
 */
#pragma once

#include "export/render.h"
#include "trace/event_head.h"

/*
 * Size of a batch: bytes of its records, plus ITEM_ROOM for each event. Large enough that filling
 * it takes much longer than handing on the turn; small enough that its output, up to a few times
 * its size, stays in the cache. More than two threads share the memory of two: they wait for their
 * turn anyway, and the batches of eight are most of an exporter's memory.
 */
#define BATCH_ROOM (416U << 10)
#define ITEM_ROOM 32
/*
 * Most events render to about their own size, some to hundreds of times more (functions thousands
 * of levels deep). Above this size, a batch stops and waits until its output was written.
 */
#define BATCH_OUT(room) (4 * (room))
#define BATCH_KEPT (2 * BATCH_OUT(BATCH_ROOM)) /* larger buffers are freed after use */
/* One batch to fill, one that waits to be written. */
#define BATCH_POOL 2

/* An event, a loss or a note. The record of an event stays in the merge's memory. */
struct item {
	const uint8_t *data; /* on loan from the merge; NULL: a note if len is not 0, else a loss */
	uint64_t ts;	     /* of a loss: the count; of a note: its offset in `notes` */
	uint32_t len, cpu;
};

struct batch {
	struct batch_pool *pool;
	struct batch *next_idle;
	struct item *items; /* owned */
	size_t count;
	size_t room;	  /* bytes of room left; 0: full */
	size_t rendered;  /* number of items rendered so far */
	struct buf notes; /* each aligned to 8 bytes */
	struct buf out;
	uint64_t weight;
	int result;
	bool done; /* all items are rendered */
};

/* The batches of one thread. */
struct batch_pool {
	struct batch batches[BATCH_POOL];
	struct batch *idle; /* most recently used first: its memory is in the cache */
	void *state;	    /* borrowed: from render_ops.begin */
};

/* Shared by all threads, read only. */
struct batch_env {
	const struct render_ops *ops;
	const struct event_table *events;
	struct event_head head;
	size_t room; /* size of a batch */
};

/* pool must not move in memory. 0 or -ENOMEM; call batch_pool_deinit in any case. */
int batch_pool_init(struct batch_pool *pool, const struct batch_env *env);
void batch_pool_deinit(struct batch_pool *pool);

/* Takes an idle batch, which is empty. The pool must have one. */
struct batch *batch_take(struct batch_pool *pool, size_t room);
/* Empties b and returns it to its pool. */
void batch_put(struct batch *b);
/* Appends to b->out; sets weight and result. False: call again once b->out was written. */
bool batch_render(struct batch *b, const struct batch_env *env);
