/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/tasks.h"

#include <stdlib.h>

#include "proto/capture.pb-c.h"
#include "proto/perfetto/trace.pb-c.h"
#include "trace/bounds.h"

#define TREE_MEMORY (32U << 20)

typedef Perfetto__Protos__ProcessTree tree_t;
typedef Perfetto__Protos__ProcessTree__Process process_t;
typedef Perfetto__Protos__ProcessTree__Thread thread_t;

/* As procfs has it: a NUL behind each argument. */
static void fill_process(Traced__Capture__Task *t, const process_t *p, struct buf *cmdlines)
{
	size_t start = cmdlines->len;

	t->ppid = p->ppid;
	t->uid = (uint32_t)p->uid;
	t->kthread = p->is_kthread;
	t->start_ns = p->process_start_from_boot;
	if (p->cmdline_is_comm)
		return;
	for (size_t i = 0; i < p->n_cmdline; i++)
		buf_append(cmdlines, p->cmdline[i], strlen(p->cmdline[i]) + 1);
	/* Where it begins, until the buffer stays where it is. */
	t->cmdline.len = cmdlines->len - start;
}

static int write_tree(struct stream_writer *w, const tree_t *tree, uint64_t ts)
{
	_cleanup_free_ Traced__Capture__Task *tasks = calloc(tree->n_threads + 1, sizeof(*tasks));
	_cleanup_free_ Traced__Capture__Task **all = calloc(tree->n_threads + 1, sizeof(*all));
	Traced__Capture__Tasks message = TRACED__CAPTURE__TASKS__INIT;
	_cleanup_buf_ struct buf cmdlines = BUF_INIT;
	size_t next = 0, at = 0;

	if (!tasks || !all)
		return -ENOMEM;
	for (size_t i = 0; i < tree->n_threads; i++) {
		const thread_t *from = tree->threads[i];
		Traced__Capture__Task *t = &tasks[i];

		traced__capture__task__init(t);
		t->tid = from->tid;
		t->tgid = from->tgid;
		t->comm.data = (uint8_t *)from->name;
		t->comm.len = from->name ? strlen(from->name) : 0;
		/* Processes come in the order of their first threads. */
		if (next < tree->n_processes && tree->processes[next]->pid == t->tid)
			fill_process(t, tree->processes[next++], &cmdlines);
		/* What was born while the recording went on is another than what had its number. */
		if (ts && !t->start_ns)
			t->start_ns = ts;
		all[i] = t;
	}
	if (buf_error(&cmdlines) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < tree->n_threads; i++) {
		tasks[i].cmdline.data = (uint8_t *)cmdlines.data + at;
		at += tasks[i].cmdline.len;
	}
	message.tasks = all;
	message.n_tasks = tree->n_threads;
	message.boot_ns = ts ?: 1;
	return stream_write_message(w, CHUNK_TASKS, &message.base);
}

int tasks_import(struct stream_writer *w, const struct pf_packet *p, struct error *err)
{
	struct budget budget;
	tree_t *tree;
	int r;

	budget_init(&budget, TREE_MEMORY);
	tree = perfetto__protos__process_tree__unpack(&budget.allocator, p->process_tree.len,
						      p->process_tree.data);
	if (!tree)
		return budget.failed == -ENOMEM ? error_errno(err, -ENOMEM, "can't read it")
						: -EBADMSG;
	r = write_tree(w, tree, p->timestamp);
	perfetto__protos__process_tree__free_unpacked(tree, NULL);
	return r < 0 ? error_errno(err, r, "can't keep the recording's events") : 0;
}
