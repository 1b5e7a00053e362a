/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/net_arrows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report/net_pairs.h"

/* More than NET_ARROWS_MAX take. */
#define NET_ARROWS_MEMORY (256U << 20)

struct net_arrows {
	struct net_traffic *t;
	uint32_t count;
	/* The addresses of the way whose arrows are made. */
	char from[NET_NAME_BYTES], to[NET_NAME_BYTES];
};

static struct text net_text(const char *s)
{
	return (struct text){ s, (uint32_t)strlen(s) };
}

/* A slice of the thread, and an end of the flow at its begin. */
static int net_arrows_put(struct net_arrows *a, struct mark_sort *marks, struct net_thread by,
			  const struct mark *slice, const struct mark *flow, uint64_t bytes,
			  struct error *err)
{
	_cleanup_buf_ struct buf args = BUF_INIT;
	struct mark mark = *slice;
	char id[20];
	int r;

	value_put_text(&args, &TEXT("from"), net_text(a->from));
	value_put_text(&args, &TEXT("to"), net_text(a->to));
	value_put_u64(&args, &TEXT("bytes"), VALUE_UINT, bytes);
	if (buf_error(&args) < 0)
		return error_errno(err, -ENOMEM, "can't make an arrow");
	mark.phase = PHASE_COMPLETE;
	mark.has = HAS_DUR;
	mark.pid = by.pid;
	mark.tid = by.tid;
	mark.part[PART_CAT] = TEXT("tcp");
	mark.part[PART_ARGS] = (struct text){ args.data, (uint32_t)args.len };
	r = mark_sort_add(marks, &mark, err);
	if (r < 0)
		return r;
	snprintf(id, sizeof(id), "0x%x", a->count + 1);
	mark.phase = flow->phase;
	mark.has = flow->has | HAS_SHARED_ID;
	mark.dur = 0;
	mark.id_kind = ID_PLAIN;
	mark.part[PART_NAME] = TEXT("message");
	mark.part[PART_ID] = net_text(id);
	mark.part[PART_ARGS] = (struct text){ 0 };
	return mark_sort_add(marks, &mark, err);
}

static int net_arrows_add(struct net_arrows *a, const struct net_way *w,
			  const struct net_arrow *arrow, struct error *err)
{
	const struct net_send *s = arrow->send;
	struct mark_sort **marks = a->t->arrows;
	int r = net_arrows_put(a, marks[w->from->machine], s->by,
			       &(struct mark){ .ts = s->begin,
					       .dur = s->end - MIN(s->begin, s->end),
					       .part[PART_NAME] = TEXT("send") },
			       &(struct mark){ .phase = PHASE_FLOW_START }, s->len, err);

	/* Viewers draw arrows between slices, and a receipt has no length. */
	if (r == 0)
		r = net_arrows_put(
			a, marks[w->to->machine], arrow->receipt->reader,
			&(struct mark){ .ts = arrow->receipt->ts,
					.dur = 1,
					.part[PART_NAME] = TEXT("receive") },
			&(struct mark){ .phase = PHASE_FLOW_END, .has = HAS_BIND_ENCLOSING },
			s->len, err);
	a->count++;
	return r;
}

static int net_arrows_of(struct net_arrows *a, const struct net_end *from, const struct net_end *to,
			 struct error *err)
{
	struct net_arrow_at at = { 0 };
	struct net_arrow arrow;
	struct net_way way;
	uint64_t error;
	int r = net_way_find(&way, a->t, from, to, false);

	if (r < 0)
		error_errno(err, r, "can't make arrows");
	net_name(a->from, "", to->tuple.far, to->tuple.far_port, true);
	net_name(a->to, "", to->tuple.near, to->tuple.near_port, true);
	if (r == 0 && net_error(a->t, from->machine, to->machine, &error))
		while (r == 0 && a->count < NET_ARROWS_MAX &&
		       net_arrow_next(&way, &at, error, &arrow))
			r = net_arrows_add(a, &way, &arrow, err);
	net_way_deinit(&way);
	return r;
}

int net_arrows_make(struct net_traffic *t, bool between, struct error *err)
{
	struct net_arrows a = { .t = t };
	int r = 0;

	t->no_scratch.fd = -EBADF;
	for (uint32_t i = 0; i < t->machine_count && r == 0; i++)
		r = mark_sort_new(&t->arrows[i], &t->no_scratch, NET_ARROWS_MEMORY);
	if (r < 0)
		return error_errno(err, r, "can't make arrows");
	for (uint32_t i = 0; i < t->ends.count && r == 0; i++) {
		const struct net_end *to = rows_at(&t->ends, i), *from = net_end_peer(t, to);

		if (from && (between || from->machine == to->machine))
			r = net_arrows_of(&a, from, to, err);
	}
	for (uint32_t i = 0; i < t->machine_count && r == 0; i++)
		r = mark_sort_finish(t->arrows[i], err);
	return r < 0 ? r : (int)a.count;
}
