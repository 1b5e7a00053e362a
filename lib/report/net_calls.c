/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/net_calls.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

struct net_task {
	uint64_t ts; /* 0: unknown */
	bool is_call;
};

struct net_socket {
	struct net_end *end; /* NULL: none */
};

void net_calls_init(struct net_calls *c, struct report_env *env, struct net_traffic *t)
{
	*c = (struct net_calls){ .report.env = env, .traffic = t };
	rows_init(&c->tasks, sizeof(struct net_task), NULL);
	rows_init(&c->sockets, sizeof(struct net_socket), NULL);
	c->sockets.max = NET_ENDS_MAX;
}

void net_calls_deinit(struct net_calls *c)
{
	rows_deinit(&c->tasks);
	rows_deinit(&c->sockets);
}

int net_calls_bind(struct net_calls *c, uint64_t sk, struct net_end *e)
{
	struct net_socket *s = rows_get(&c->sockets, (struct row_key){ sk, 0 });

	if (!s)
		return -ENOMEM;
	s->end = s == c->sockets.rest ? NULL : e;
	return 0;
}

struct net_end *net_calls_end(const struct net_calls *c, uint64_t sk)
{
	const struct net_socket *s = rows_find(&c->sockets, (struct row_key){ sk, 0 });

	return s ? s->end : NULL;
}

/* NULL: out of memory. */
static struct net_task *net_calls_task(struct net_calls *c, const struct trace_event *ev)
{
	return rows_get(&c->tasks, (struct row_key){ (uint32_t)ev->pid, 0 });
}

/* An event of the task that is outside of any send. */
static int net_calls_outside(struct report *report, const struct trace_event *ev)
{
	struct net_calls *c = container_of(report, struct net_calls, report);
	struct net_task *task;

	/* An interrupt may be in the task's call. */
	if (ev->flags & REPORT_FLAGS_INTERRUPT)
		return 0;
	task = net_calls_task(c, ev);
	if (!task)
		return -ENOMEM;
	task->ts = task == c->tasks.rest ? 0 : ev->rec.ts;
	task->is_call = false;
	return 0;
}

static int net_calls_enter(struct report *report, const struct trace_event *ev)
{
	struct net_calls *c = container_of(report, struct net_calls, report);
	int r = net_calls_outside(report, ev);
	struct net_task *task = r < 0 ? NULL : net_calls_task(c, ev);

	if (task)
		task->is_call = c->has_all_enters && !(ev->flags & REPORT_FLAGS_INTERRUPT);
	return r;
}

/* Returns {0} if its process is unknown. */
static struct net_thread net_calls_thread(const struct net_calls *c, const struct trace_event *ev)
{
	const struct task *task = report_task(c->report.env, ev->pid, ev->rec.ts);

	return task && task->tgid ? (struct net_thread){ task->tgid, ev->pid }
				  : (struct net_thread){ 0 };
}

static int net_calls_receive(struct report *report, const struct trace_event *ev)
{
	struct net_calls *c = container_of(report, struct net_calls, report);
	struct net_end *e = net_calls_end(c, field_at_read(&c->read_sk, &ev->rec));
	const struct report_env *env = report->env;

	if (e && (int32_t)field_at_read(&c->read_len, &ev->rec) > 0)
		net_end_read(e, net_calls_thread(c, ev), net_losses(env));
	return net_calls_outside(report, ev);
}

static int net_calls_send(struct report *report, const struct trace_event *ev)
{
	struct net_calls *c = container_of(report, struct net_calls, report);
	const int32_t len = (int32_t)field_at_read(&c->len, &ev->rec);
	struct net_end *e = net_calls_end(c, field_at_read(&c->sk, &ev->rec));
	const struct net_task *task = net_calls_task(c, ev);
	uint64_t since;
	int r;

	if (!task)
		return -ENOMEM;
	if (!e || len <= 0 || field_at_read(&c->protocol, &ev->rec) != IPPROTO_TCP)
		return net_calls_outside(report, ev);
	since = ev->flags & REPORT_FLAGS_INTERRUPT ? 0 : task->ts;
	r = net_end_send(c->traffic, e,
			 &(struct net_send){ .begin = MAX(since, e->begun),
					     .is_call = since > e->begun && task->is_call,
					     .by = net_calls_thread(c, ev),
					     .end = ev->rec.ts,
					     .len = (uint32_t)len },
			 report->env->losses || report->env->losses_open);
	return r < 0 ? r : net_calls_outside(report, ev);
}

void net_calls_find(struct net_calls *c)
{
	struct report_env *env = c->report.env;
	const struct event *const *all;
	const struct event *ev;
	size_t count;

	if (!report_on(env, &c->report, "sock", "sock_send_length", net_calls_send, &ev))
		return;
	c->sk = field_at_find(ev, "sk", env->big_endian);
	c->protocol = field_at_find(ev, "protocol", env->big_endian);
	c->len = field_at_find(ev, "ret", env->big_endian);
	if (report_on(env, &c->report, "sock", "sock_recv_length", net_calls_receive, &ev)) {
		c->read_sk = field_at_find(ev, "sk", env->big_endian);
		c->read_len = field_at_find(ev, "ret", env->big_endian);
	}
	report_on(env, &c->report, "raw_syscalls", "sys_enter", net_calls_enter, NULL);
	all = event_table_all(env->info->events, &count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i]->system, "syscalls") && !strncmp(all[i]->name, "sys_enter_", 10))
			report_on(env, &c->report, "syscalls", all[i]->name, net_calls_enter, NULL);
}
