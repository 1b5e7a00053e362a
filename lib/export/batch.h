/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events that one thread fetched and renders, and the bytes that it makes of them. Inside of
 * render.c.
 */
#pragma once

#include "export/render.h"
#include "trace/event_head.h"

/*
 * What one batch has room for: bytes of its events' records, and ITEM_ROOM more for each of them.
 * To fill one takes much longer than to hand the turn on, and what is made of it, which is as long
 * as the records or some times that, stays in a cache. More than two threads have as much as two
 * together: they wait for their turn anyway, and what eight have at a time is most of their memory.
 */
#define BATCH_ROOM (416U << 10)
#define ITEM_ROOM 32
/*
 * Most have less made of them, some by hundreds of times more, as functions in a depth of
 * thousands: behind so much it waits until that was written.
 */
#define BATCH_OUT(room) (4 * (room))
#define BATCH_KEPT (2 * BATCH_OUT(BATCH_ROOM)) /* what is longer is not kept for the next one */
/* One that is filled, one that waits to be written. */
#define BATCH_POOL 2

/* Where an event is; the record lies where the merge has it. Or where a note is. */
struct item {
	const uint8_t *data; /* lent; NULL: a loss, or where len is not 0 a note */
	uint64_t ts;	     /* of a loss: how many; of a note: where it begins in notes */
	uint32_t len, cpu;
};

struct batch {
	struct batch_pool *pool;
	struct batch *next_idle;
	struct item *items; /* owned */
	size_t count;
	size_t room;	  /* that is left; 0: it is full */
	size_t rendered;  /* of the items */
	struct buf notes; /* each aligned to 8 bytes */
	struct buf out;
	uint64_t weight;
	int result;
	bool done; /* all is rendered */
};

/* One thread's. */
struct batch_pool {
	struct batch batches[BATCH_POOL];
	struct batch *idle; /* the one that was used last comes first: it is in the cache */
	void *state;	    /* borrowed: what render_ops.begin made */
};

/* What all threads read. */
struct batch_env {
	const struct render_ops *ops;
	const struct event_table *events;
	struct event_head head;
	size_t room; /* of an empty batch */
};

/* pool stays where it is. 0 or -ENOMEM; to be given to batch_pool_deinit in any case. */
int batch_pool_init(struct batch_pool *pool, const struct batch_env *env);
void batch_pool_deinit(struct batch_pool *pool);

/* There is one; it is empty. */
struct batch *batch_take(struct batch_pool *pool, size_t room);
/* Empties b and puts it back where it is from. */
void batch_put(struct batch *b);
/* Appends to out; fills in weight and result. False: more follows, when out was emptied. */
bool batch_render(struct batch *b, const struct batch_env *env);
