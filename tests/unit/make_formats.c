/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_formats.h"

#include <string.h>

enum { ID_IRQ_ENTRY = 303, ID_IRQ_EXIT };

void maker_kernel_formats(struct maker *m)
{
	maker_format(m, "sched", "sched_waking", ID_WAKING,
		     "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		     "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		     "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		     "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n",
		     "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, "
		     "REC->target_cpu");
	maker_format(m, "raw_syscalls", "sys_enter", ID_ENTER,
		     "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
		     "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n",
		     "\"NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)\", REC->id, REC->args[0], "
		     "REC->args[1], REC->args[2], REC->args[3], REC->args[4], REC->args[5]");
	maker_format(m, "raw_syscalls", "sys_exit", ID_EXIT,
		     "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
		     "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n",
		     "\"NR %ld = %ld\", REC->id, REC->ret");
}

void maker_free_format(struct maker *m)
{
	maker_format(m, "sched", "sched_process_free", ID_FREE,
		     "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		     "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		     "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n",
		     "\"comm=%s pid=%d prio=%d\", REC->comm, REC->pid, REC->prio");
}

void event_free(struct maker *m, uint64_t ts, int32_t tid, const char *comm)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	char field[16] = "";

	memcpy(field, comm, strnlen(comm, sizeof(field) - 1));
	buf_append(&data, field, sizeof(field));
	maker_u32(m, &data, (uint32_t)tid);
	maker_u32(m, &data, 120);
	maker_event(m, ts, ID_FREE, 0, data.data, data.len);
}

void maker_function_format(struct maker *m)
{
	maker_format(m, "ftrace", "function", ID_FUNCTION,
		     "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:unsigned long parent_ip;\toffset:16;\tsize:8;\tsigned:0;\n",
		     "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip");
}

void maker_stack_format(struct maker *m)
{
	maker_format(m, "ftrace", "kernel_stack", ID_STACK,
		     "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
		     "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n",
		     "\"\\t=> %ps\\n\", (void *)REC->caller[0]");
}

void maker_graph_entry_format(struct maker *m)
{
	maker_format(m, "ftrace", "funcgraph_entry", ID_GRAPH_ENTRY,
		     "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n",
		     "\"--> %ps (%d)\", (void *)REC->func, REC->depth");
}

void maker_graph_formats(struct maker *m)
{
	maker_graph_entry_format(m);
	maker_format(m, "ftrace", "funcgraph_exit", ID_GRAPH_EXIT,
		     "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n"
		     "\tfield:unsigned int overrun;\toffset:20;\tsize:4;\tsigned:0;\n"
		     "\tfield:unsigned long long calltime;\toffset:24;\tsize:8;\tsigned:0;\n"
		     "\tfield:unsigned long long rettime;\toffset:32;\tsize:8;\tsigned:0;\n",
		     "\"<-- %ps (%d)\", (void *)REC->func, REC->depth");
}

void event_graph_entry(struct maker *m, uint64_t ts, int32_t pid, uint64_t func, uint32_t depth)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(m, &b, func);
	maker_u32(m, &b, depth);
	maker_event(m, ts, ID_GRAPH_ENTRY, pid, b.data, b.len);
}

void event_graph_exit(struct maker *m, uint64_t ts, int32_t pid, uint64_t func, uint32_t depth,
		      uint32_t overrun, uint64_t called, uint64_t returned)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(m, &b, func);
	maker_u32(m, &b, depth);
	maker_u32(m, &b, overrun);
	maker_u64(m, &b, called);
	maker_u64(m, &b, returned);
	maker_event(m, ts, ID_GRAPH_EXIT, pid, b.data, b.len);
}

void maker_graph_retval_format(struct maker *m)
{
	maker_format(m, "ftrace", "funcgraph_exit", ID_GRAPH_RETVAL,
		     "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\tfield:unsigned long retval;\toffset:16;\tsize:8;\tsigned:0;\n"
		     "\tfield:unsigned int depth;\toffset:24;\tsize:4;\tsigned:0;\n"
		     "\tfield:unsigned int overrun;\toffset:28;\tsize:4;\tsigned:0;\n"
		     "\tfield:unsigned long long calltime;\toffset:32;\tsize:8;\tsigned:0;\n"
		     "\tfield:unsigned long long rettime;\toffset:40;\tsize:8;\tsigned:0;\n",
		     "\"<-- %ps (%d)\", (void *)REC->func, REC->depth");
}

void event_graph_retval(struct maker *m, uint64_t ts, int32_t pid, uint64_t func, uint32_t depth,
			uint64_t took, uint64_t value)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(m, &b, func);
	maker_u64(m, &b, value);
	maker_u32(m, &b, depth);
	maker_u32(m, &b, 0);
	maker_u64(m, &b, ts - took);
	maker_u64(m, &b, ts);
	maker_event(m, ts, ID_GRAPH_RETVAL, pid, b.data, b.len);
}

#define FIELD_FUNC "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
#define FIELD_DEPTH "\tfield:unsigned long depth;\toffset:16;\tsize:8;\tsigned:0;\n"
#define FIELD_ARGS "\tfield:unsigned long args[];\toffset:24;\tsize:0;\tsigned:0;\n"
#define FIELD_RETADDR "\tfield:unsigned long retaddr;\toffset:24;\tsize:8;\tsigned:0;\n"

void maker_graph_value_formats(struct maker *m, bool caller_has_args)
{
	maker_format(m, "ftrace", "funcgraph_entry", ID_GRAPH_ARGS,
		     FIELD_FUNC FIELD_DEPTH FIELD_ARGS,
		     "\"--> %ps (%lu)\", (void *)REC->func, REC->depth");
	maker_format(m, "ftrace", "fgraph_retaddr_entry", ID_GRAPH_CALLER,
		     caller_has_args ? FIELD_FUNC FIELD_DEPTH FIELD_ARGS
				     : FIELD_FUNC FIELD_DEPTH FIELD_RETADDR,
		     "\"--> %ps\", (void *)REC->func");
}

void event_graph_words(struct maker *m, uint64_t ts, int32_t pid, uint16_t id, uint64_t func,
		       uint64_t depth, const uint64_t *words, size_t count)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(m, &b, func);
	maker_u64(m, &b, depth);
	for (size_t i = 0; i < count; i++)
		maker_u64(m, &b, words[i]);
	maker_event(m, ts, id, pid, b.data, b.len);
}

void maker_irq_formats(struct maker *m)
{
	maker_format(m, "irq", "irq_handler_entry", ID_IRQ_ENTRY,
		     "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
		     "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n",
		     "\"irq=%d name=%s\", REC->irq, __get_str(name)");
	maker_format(m, "irq", "irq_handler_exit", ID_IRQ_EXIT,
		     "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
		     "\tfield:int ret;\toffset:12;\tsize:4;\tsigned:1;\n",
		     "\"irq=%d ret=%s\", REC->irq, REC->ret ? \"handled\" : \"unhandled\"");
}

void event_irq(struct maker *m, uint64_t ts, int32_t pid, uint32_t irq, bool entry)
{
	struct {
		uint32_t irq, name;
		char text[12];
	} r = { irq, 16 | 8 << 16, "virtio0" };
	uint32_t e[2] = { irq, 1 };

	if (entry)
		maker_event(m, ts, ID_IRQ_ENTRY, pid, &r, sizeof(r));
	else
		maker_event(m, ts, ID_IRQ_EXIT, pid, e, sizeof(e));
}
