/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internal to render.c and turns.c: the state of a renderer. turns.c explains it. */
#pragma once

#include "base/thread.h"
#include "export/batch.h"
#include "trace/known_tasks.h"
#include "trace/loan.h"

/* State of one thread. */
struct lane {
	_Alignas(CACHE_LINES) struct render *render;
	pthread_t thread;
	int maker_cpu;		/* CPU on which the thread was created; -1: unknown */
	struct batch_pool pool; /* its `state` is owned, except the caller's */
	struct error err;
};

#define RING (RENDER_THREADS_MAX * BATCH_POOL)

struct render {
	const struct render_ops *ops;
	struct sink *sink;
	const struct trace_info *info;
	struct loan *loan; /* or NULL */
	struct batch_env env;
	struct output *out;
	void *state;	  /* owned; the caller's, also used by its lane */
	struct buf note;  /* the note being rendered directly */
	unsigned threads; /* 1: single-threaded */
	/* For the thread that has the turn: */
	struct batch *filling; /* NULL: events are rendered directly */
	struct known_tasks known;
	int (*give)(void *userdata, struct error *err);
	void *userdata;
	struct lane *lanes; /* owned; lane_count used of `threads`; the first is the caller's */
	unsigned lane_count;
	pthread_mutex_t lock; /* protects all below, the lanes' idle batches and `done` */
	pthread_cond_t turn, left;
	struct batch *ring[RING]; /* by number % RING, from `written` to `filled` */
	uint64_t filled, written;
	/*
	 * Weight of output not yet reported to ops->took. No lock is needed while events are
	 * rendered directly: no other thread runs.
	 */
	uint64_t weight;
	int giver_cpu; /* CPU of the last turn */
	bool held;     /* some thread has the turn */
	bool writing;
	bool over;   /* no more turns */
	int gave;    /* result of the last turn; its error is in err */
	int failure; /* first failure to render or write */
	struct error err;
};

static inline uint64_t render_take_weight(struct render *r)
{
	uint64_t weight = r->weight;

	r->weight = 0;
	return weight;
}

static inline int render_report_weight(const struct render *r, uint64_t weight, struct error *err)
{
	return r->ops->took && weight ? r->ops->took(r->sink, weight, err) : 0;
}

/* Sets the error -e, with the text of ops->failure; returns e. */
int render_fail(const struct render *r, int e, struct error *err);
