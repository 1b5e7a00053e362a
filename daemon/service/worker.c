/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/worker.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/thread.h"

/* Enough for capture's stack; only touched pages cost memory. */
#define STACK_BYTES (256U << 10)

TAILQ_HEAD(work_list, work);

struct worker {
	struct loop_source *source;
	int fd; /* eventfd: some work is done */
	pthread_t thread;
	bool has_thread, ending;
	pthread_mutex_t lock; /* protects the lists and `ending` */
	pthread_cond_t wake;
	struct work_list todo, done;
};

static void worker_tell_done(struct worker *w)
{
	uint64_t one = 1;
	ssize_t n = write(w->fd, &one, sizeof(one));

	/* The write fails only if the counter is full, and then the loop is notified already. */
	(void)n;
}

static void *worker_main(void *userdata)
{
	struct worker *w = userdata;
	struct work *work;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		work = TAILQ_FIRST(&w->todo);
		if (!work && w->ending)
			break;
		if (!work) {
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		TAILQ_REMOVE(&w->todo, work, list);
		pthread_mutex_unlock(&w->lock);
		work->run(work);
		pthread_mutex_lock(&w->lock);
		TAILQ_INSERT_TAIL(&w->done, work, list);
		worker_tell_done(w);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static struct work *worker_next_done(struct worker *w)
{
	struct work *work;

	pthread_mutex_lock(&w->lock);
	work = TAILQ_FIRST(&w->done);
	if (work)
		TAILQ_REMOVE(&w->done, work, list);
	pthread_mutex_unlock(&w->lock);
	return work;
}

static void worker_finish_done(struct worker *w)
{
	struct work *work;

	while ((work = worker_next_done(w)))
		work->done(work);
}

static void worker_on_done(void *userdata, int fd, uint32_t revents _unused_)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;
	worker_finish_done(userdata);
}

int worker_new(struct worker **ret, struct loop *loop)
{
	_cleanup_(worker_freep) struct worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	TAILQ_INIT(&w->todo);
	TAILQ_INIT(&w->done);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0)
		return -errno;
	r = loop_add_io(loop, &w->source, w->fd, EPOLLIN, worker_on_done, w);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	if (w->has_thread) {
		pthread_mutex_lock(&w->lock);
		w->ending = true;
		pthread_cond_signal(&w->wake);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
		w->has_thread = false;
	}
	w->ending = true;
	/* A done callback may submit more work, which runs at once. */
	worker_finish_done(w);
	loop_source_free(w->source);
	close_fd(w->fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

static bool worker_start_thread(struct worker *w)
{
	if (!w->has_thread && !w->ending)
		w->has_thread = thread_begin(&w->thread, STACK_BYTES, worker_main, w) == 0;
	return w->has_thread;
}

void worker_submit(struct worker *w, struct work *work)
{
	bool elsewhere = worker_start_thread(w);

	if (!elsewhere)
		work->run(work);
	pthread_mutex_lock(&w->lock);
	if (elsewhere) {
		TAILQ_INSERT_TAIL(&w->todo, work, list);
		pthread_cond_signal(&w->wake);
	} else {
		TAILQ_INSERT_TAIL(&w->done, work, list);
		worker_tell_done(w);
	}
	pthread_mutex_unlock(&w->lock);
}
