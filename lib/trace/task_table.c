/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An open-addressed hash table from tid to a chain of lives, newest first. A life never moves. Each
 * life also has a link to one far older, so that a search takes logarithmic time: these links are
 * those of skew-binary numbers.
 */
#include "trace/task_table.h"

#include <string.h>

#include "base/secret_hash.h"
#include "base/table.h"
#include "base/vec.h"

struct life {
	struct task task; /* first: callers hold a struct task */
	struct life *older, *newer;
	struct life *far;		      /* an older one; NULL: none */
	uint32_t depth;			      /* how many are older */
	struct life *known_prev, *known_next; /* list in order of discovery */
	struct life *gone_next;
	uint64_t gone_ts; /* its end, or the start of the tid's next life; 0: still alive */
	uint64_t name_ts; /* time at which comm was learnt */
	bool weak_name;	  /* from a weak source: any other may correct it */
	bool searched;	  /* the name may come from a search of the trace, which may find a later
			   * one */
	bool ended;	  /* its end was reported, not concluded from another life of the tid */
};

#define TID_HASH(tid) hash_u32((uint32_t)(tid))
struct tid_lives {
	struct life *newest; /* NULL: free slot */
	struct life *open;   /* the oldest one without an end; NULL: none */
};
DECLARE_TABLE(life_slots, struct tid_lives);
DEFINE_TABLE(life_slots, struct tid_lives, int32_t, slot->newest != NULL,
	     TID_HASH(slot->newest->task.tid), slot->newest->task.tid == key);

#define TIDS_FIRST 512

struct task_table {
	struct life_slots tids;
	bool forgets;	   /* lives were freed: `far` may lead to them */
	struct task **all; /* created on demand */
	size_t life_count;
	struct life *known_first, *known_last;
	struct life *gone_first, *gone_last; /* list in order of ending */
	struct task_rename *renames;	     /* owned */
	size_t rename_count, rename_cap;
	void (*fill)(void *userdata);
	void *userdata;
};

int task_table_new(struct task_table **ret)
{
	struct task_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (life_slots_reserve(&t->tids, TIDS_FIRST) < 0) {
		free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

static struct life *life_free(struct life *l)
{
	while (l) {
		struct life *older = l->older;

		free(l->task.cmdline);
		free(l);
		l = older;
	}
	return NULL;
}

struct task_table *task_table_free(struct task_table *t)
{
	if (!t)
		return NULL;
	TABLE_FOR_EACH(life_slots, &t->tids, slot)
	life_free(slot->newest);
	TABLE_DEINIT(&t->tids);
	free(t->all);
	free(t->renames);
	free(t);
	return NULL;
}

static struct life *life_newest(const struct task_table *t, int32_t tid)
{
	const struct tid_lives *slot = life_slots_find(&t->tids, TID_HASH(tid), tid);

	return slot ? slot->newest : NULL;
}

static void life_note_gone(struct task_table *t, struct life *l, uint64_t ts)
{
	if (l->gone_ts)
		return;
	l->gone_ts = MAX(ts, UINT64_C(1));
	*(t->gone_last ? &t->gone_last->gone_next : &t->gone_first) = l;
	t->gone_last = l;
}

/* Links a new life to the older ones. */
static void life_link(struct life *l)
{
	struct life *a = l->older, *b = a->far, *c = b ? b->far : NULL;

	a->newer = l;
	l->depth = a->depth + 1;
	l->far = c && a->depth - b->depth == b->depth - c->depth ? c : a;
}

static void lives_skip_ended(struct tid_lives *lives)
{
	while (lives->open && lives->open->ended)
		lives->open = lives->open->newer;
}

static void life_end(struct task_table *t, struct life *l)
{
	l->ended = true;
	lives_skip_ended(
		life_slots_probe(t->tids.slots, t->tids.size, TID_HASH(l->task.tid), l->task.tid));
}

static struct life *life_add(struct task_table *t, int32_t tid, uint64_t from_ts)
{
	struct life *l = calloc(1, sizeof(*l));
	struct tid_lives *slot;

	slot = l ? life_slots_place(&t->tids, TID_HASH(tid), tid) : NULL;
	if (!slot) {
		free(l);
		return NULL;
	}
	l->task.tid = tid;
	l->task.from_ts = from_ts;
	t->tids.count += !slot->newest;
	l->older = slot->newest;
	slot->newest = l;
	slot->open = slot->open ?: l;
	if (l->older) {
		life_link(l);
		life_note_gone(t, l->older, from_ts);
	}
	l->known_prev = t->known_last;
	*(t->known_last ? &t->known_last->known_next : &t->known_first) = l;
	t->known_last = l;
	t->life_count++;
	free(TAKE_PTR(t->all));
	return l;
}

/* Events before a task's reported birth belong to its oldest life. */
static struct life *life_find(const struct task_table *t, int32_t tid, uint64_t ts)
{
	struct life *l = life_newest(t, tid);

	while (l && l->older && l->task.from_ts > ts)
		l = !t->forgets && l->far->task.from_ts > ts ? l->far : l->older;
	return l;
}

void task_table_set_filler(struct task_table *t, void (*fill)(void *userdata), void *userdata)
{
	t->fill = fill;
	t->userdata = userdata;
}

bool task_table_may_fill(const struct task_table *t)
{
	return t->fill;
}

bool task_table_would_fill(const struct task_table *t, int32_t tid, uint64_t ts)
{
	const struct life *l = t->fill ? life_find(t, tid, ts) : NULL;

	return t->fill && (!l || !l->task.comm[0]);
}

struct task *task_table_find(struct task_table *t, int32_t tid, uint64_t ts)
{
	struct life *l = life_find(t, tid, ts);

	if (unlikely(t->fill && (!l || !l->task.comm[0]))) {
		void (*fill)(void *) = t->fill;

		t->fill = NULL;
		fill(t->userdata);
		l = life_find(t, tid, ts);
	}
	return l ? &l->task : NULL;
}

bool task_is_oldest(const struct task *task)
{
	return !container_of(task, struct life, task)->older;
}

uint64_t task_table_until(const struct task *task)
{
	const struct life *newer = container_of(task, struct life, task)->newer;

	return newer ? newer->task.from_ts : UINT64_MAX;
}

static void comm_copy(char to[sizeof(((struct task *)NULL)->comm)], const char *comm, size_t len)
{
	len = MIN(len, sizeof(((struct task *)NULL)->comm) - 1);
	if (len)
		memcpy(to, comm, len);
	to[len] = '\0';
}

static void life_set_comm(struct life *l, const char *comm, size_t len, uint64_t ts, bool weak)
{
	if (!len || (l->task.comm[0] && weak && !l->weak_name))
		return;
	if (l->task.comm[0] && l->weak_name == weak && l->name_ts > ts)
		return;
	comm_copy(l->task.comm, comm, len);
	l->name_ts = ts;
	l->weak_name = weak;
}

/*
 * /proc gives start times in ticks of 10 ms (USER_HZ): readings of one life differ by less than
 * this.
 */
#define SAME_START_NS 20000000

static bool is_same_start(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) <= SAME_START_NS;
}

static bool life_is_of_reading(const struct life *l, const struct task_reading *r)
{
	return !l->task.start_ns || !r->start_ns || !r->ts ||
	       is_same_start(l->task.start_ns, r->start_ns);
}

int task_table_read(struct task_table *t, const struct task_reading *r)
{
	struct life *l = life_newest(t, r->tid);

	/* This life's birth was not recorded: it starts at its start time, or when it was seen. */
	if (l && !life_is_of_reading(l, r)) {
		life_end(t, l);
		l = life_add(t, r->tid, r->start_ts ?: r->ts);
	} else if (!l) {
		l = life_add(t, r->tid, 0);
	}
	if (!l)
		return -ENOMEM;
	life_set_comm(l, r->comm, r->comm_len, r->ts, r->weak);
	if (r->tgid)
		l->task.tgid = r->tgid;
	if (r->weak)
		return 0;
	l->task.ppid = r->ppid;
	l->task.uid = r->uid;
	l->task.kthread = r->kthread;
	if (!l->task.start_ns)
		l->task.start_ns = r->start_ns;
	if (r->cmdline_len) {
		char *copy = malloc(r->cmdline_len);

		if (!copy)
			return -ENOMEM;
		memcpy(copy, r->cmdline, r->cmdline_len);
		free(l->task.cmdline);
		l->task.cmdline = copy;
		l->task.cmdline_len = r->cmdline_len;
	}
	return 0;
}

#define KTHREADD_PID 2
#define CLONE_PARENT 0x00008000
#define CLONE_THREAD 0x00010000

int task_table_birth(struct task_table *t, const struct task_birth *b)
{
	struct life *maker = life_find(t, b->creator, b->ts);
	const struct task *creator = maker ? &maker->task : NULL;
	struct life *l = life_newest(t, b->tid);

	/* procfs may have listed the task just before its birth event was dated. */
	if (l && l->task.start_ns && is_same_start(l->task.start_ns, b->start_ns))
		l->task.from_ts = b->ts;
	else
		l = life_add(t, b->tid, b->ts);
	if (!l)
		return -ENOMEM;
	life_set_comm(l, b->comm, b->comm_len, b->ts, false);
	l->task.start_ns = b->start_ns;
	if (b->clone_flags & CLONE_THREAD) {
		l->task.tgid = creator ? creator->tgid : 0;
		l->task.ppid = creator ? creator->ppid : 0;
	} else {
		l->task.tgid = b->tid;
		if (b->clone_flags & CLONE_PARENT)
			l->task.ppid = creator ? creator->ppid : 0;
		else
			l->task.ppid = creator && creator->tgid ? creator->tgid : b->creator;
	}
	l->task.kthread = b->creator == KTHREADD_PID || (creator && creator->kthread);
	l->task.uid = creator ? creator->uid : 0;
	return 0;
}

int32_t task_table_parent(const struct task_table *t, const struct task *task)
{
	const struct life *parent = life_find(t, task->ppid, task->from_ts);

	return parent && parent->task.tgid ? parent->task.tgid : task->ppid;
}

int task_table_death(struct task_table *t, int32_t tid, uint64_t ts, const char *comm, size_t len)
{
	const struct tid_lives *slot = life_slots_find(&t->tids, TID_HASH(tid), tid);
	struct life *first = slot ? slot->open : NULL;

	/*
	 * The kernel may reuse a tid before it frees the old task. Each task is freed once, so the
	 * oldest life without an end is the one.
	 */
	if (!first && (!len || slot))
		return 0;
	first = first ?: life_add(t, tid, 0);
	if (!first)
		return -ENOMEM;
	/* The task ended before any reading of procfs: this is its only name. */
	life_set_comm(first, comm, len, ts, true);
	life_end(t, first);
	life_note_gone(t, first, ts);
	return 0;
}

uint64_t task_table_gone(const struct task *task)
{
	const struct life *l = container_of(task, struct life, task);

	/* A hostile stream may date the next life before this one. */
	return l->gone_ts ? MAX(l->gone_ts, l->task.from_ts) : 0;
}

bool task_table_is_gone(const struct task *task, uint64_t now)
{
	uint64_t gone = task_table_gone(task);

	return gone && now > gone && now - gone >= TASK_LINGER_NS;
}

static void life_remove(struct task_table *t, struct life *l)
{
	int32_t tid = l->task.tid;
	struct tid_lives *slot = life_slots_probe(t->tids.slots, t->tids.size, TID_HASH(tid), tid);

	t->forgets = true;
	if (slot->open == l)
		slot->open = l->newer;
	lives_skip_ended(slot);
	if (l->older)
		l->older->newer = l->newer;
	*(l->newer ? &l->newer->older : &slot->newest) = l->older;
	if (!slot->newest)
		life_slots_remove(&t->tids, slot);
	*(l->known_prev ? &l->known_prev->known_next : &t->known_first) = l->known_next;
	*(l->known_next ? &l->known_next->known_prev : &t->known_last) = l->known_prev;
	t->life_count--;
	free(TAKE_PTR(t->all));
	l->older = NULL;
	life_free(l);
}

void task_table_forget(struct task_table *t, uint64_t now)
{
	struct life *l;

	t->rename_count = 0;
	while ((l = t->gone_first) && l != t->known_last && task_table_is_gone(&l->task, now)) {
		t->gone_first = l->gone_next;
		if (!t->gone_first)
			t->gone_last = NULL;
		life_remove(t, l);
	}
}

/*
 * True if the process still has its creator's arguments: it has not yet run a program of its own.
 */
static bool has_parents_cmdline(const struct task_table *t, const struct task *task)
{
	const struct life *parent = life_newest(t, task->ppid);

	return task->cmdline && parent && parent->task.cmdline_len == task->cmdline_len &&
	       memcmp(parent->task.cmdline, task->cmdline, task->cmdline_len) == 0;
}

static int life_note_rename(struct task_table *t, struct life *l, uint64_t ts, const char *comm,
			    size_t len)
{
	struct task_rename *r;

	if (vec_reserve(t->renames, t->rename_count, t->rename_cap, 1) < 0)
		return -ENOMEM;
	r = &t->renames[t->rename_count++];
	r->tid = l->task.tid;
	r->ts = ts;
	comm_copy(r->comm, comm, len);
	return 0;
}

size_t task_table_take_renames(struct task_table *t, struct task_rename **ret)
{
	size_t count = t->rename_count;

	*ret = TAKE_PTR(t->renames);
	t->rename_count = t->rename_cap = 0;
	return count;
}

int task_table_rename(struct task_table *t, int32_t tid, uint64_t ts, const char *before,
		      size_t before_len, const char *comm, size_t len)
{
	struct life *l = life_find(t, tid, ts);

	if (!l)
		l = life_add(t, tid, 0);
	if (!l)
		return -ENOMEM;
	/* A rename mostly means exec: the new arguments are unknown, and the old ones are wrong. */
	if (has_parents_cmdline(t, &l->task)) {
		free(TAKE_PTR(l->task.cmdline));
		l->task.cmdline_len = 0;
	}
	if (!l->task.renames++)
		comm_copy(l->task.comm_before, before, before_len);
	if (life_note_rename(t, l, ts, comm, len) < 0)
		return -ENOMEM;
	life_set_comm(l, comm, len, ts, false);
	return 0;
}

int task_table_name(struct task_table *t, int32_t tid, uint64_t ts, const char *comm, size_t len)
{
	struct life *l = life_find(t, tid, ts);

	if (!l)
		l = life_add(t, tid, 0);
	if (!l)
		return -ENOMEM;
	/* A life that already had another name may have been printed with it. */
	l->searched |= !l->task.comm[0];
	if (l->searched)
		life_set_comm(l, comm, len, ts, true);
	return 0;
}

struct task *task_table_next(const struct task_table *t, const struct task *after)
{
	struct life *l =
		after ? container_of(after, struct life, task)->known_next : t->known_first;

	return l ? &l->task : NULL;
}

static int task_by_tid(const void *a, const void *b)
{
	const struct task *x = *(struct task *const *)a, *y = *(struct task *const *)b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->from_ts < y->from_ts ? -1 : x->from_ts > y->from_ts;
}

struct task *const *task_table_all(struct task_table *t, size_t *ret_count)
{
	size_t n = 0;

	*ret_count = 0;
	if (!t->all) {
		t->all = calloc(MAX(t->life_count, (size_t)1), sizeof(struct task *));
		if (!t->all)
			return NULL;
		TABLE_FOR_EACH(life_slots, &t->tids, slot)
		for (struct life *l = slot->newest; l; l = l->older)
			t->all[n++] = &l->task;
		qsort(t->all, n, sizeof(struct task *), task_by_tid);
	}
	*ret_count = t->life_count;
	return t->all;
}

void task_table_forget_seen(struct task_table *t)
{
	TABLE_FOR_EACH(life_slots, &t->tids, slot)
	for (struct life *l = slot->newest; l; l = l->older)
		l->task.seen = false;
}
