/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Filters, evaluated by lib/filter and by libtraceevent (trace-cmd report -F) on each event of
 * recordings in tests/data: both take the same ones. docs/report.md lists what differs; no filter
 * here has that. libtraceevent 1.7 damages its memory on more complex ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <traceevent/event-parse.h>

#include "filter/filter.h"
#include "fixture.h"

static const char *const texts[] = {
	/* Each operator between a field and a number, as often as not true. */
	"sched_switch: next_pid == 0",
	"sched_switch:next_pid!=0",
	"sched_switch: prev_pid < 100",
	"sched_switch: prev_pid <= 100",
	"sched_switch: prev_pid > 0x40",
	"sched_switch: prev_pid >= 0100",
	"sched_switch: prev_state & 1",
	"softirq_entry: vec | 0",
	"softirq_entry: vec ^ 1",
	"softirq_entry: vec + 0",
	"softirq_entry: vec - 1",
	"softirq_entry: vec * vec",
	"softirq_entry: vec / 4",
	"softirq_entry: vec % 3",
	"softirq_entry: vec >> 1",
	"softirq_entry: vec << 63",
	"softirq_entry: 9 - vec",
	"softirq_entry: 5 & vec",
	/* Between fields, of several sizes; fields of all events. */
	"sched_switch: prev_pid - next_pid",
	"sched_switch: prev_prio ^ next_prio",
	"kmalloc: bytes_alloc - bytes_req",
	"kmalloc: bytes_req % bytes_alloc",
	"sched: common_pid > 100",
	"sched: common_preempt_count & 1 || common_flags & 1",
	"hrtimer_start: expires / 1000000000",
	/* Conditions. libtraceevent leaks the bracket of "!(". */
	"sched_switch: next_pid == 0 || next_prio < 120",
	"sched_switch: next_pid == 0 && prev_state == 0 || prev_pid == 0",
	"sched_switch: (prev_pid == 0 || next_pid == 0) && next_prio == 120",
	"sched_switch: next_prio == 120 && (prev_pid == 0 || next_pid == 0)",
	"sched_switch: !next_pid == 0",
	"sched_switch: !prev_state & 1 && next_pid != 0",
	"sched_switch: next_pid != 0 && !prev_state & 1",
	"sched_switch: ((next_pid == 0))",
	/* Events without a field. */
	"sched: prev_prio == 120 || common_pid > 100",
	"sched: next_prio >= 120",
	"sched: next_prio != 120 || common_pid < 100",
	/* Texts. */
	"sched_switch: next_comm == \"rcu_preempt\" || prev_comm == 'sh'",
	"sched_switch: next_comm != \"sh\"",
	"sched_switch: next_comm == \"rcu_\" \"preempt\"",
	"sched_switch: next_comm =~ \"^SWAPPER\"",
	"sched_switch: next_comm =~ 'rcu.*\\|^sh$'",
	"sched_switch: next_comm !~ '[0-9]$'",
	"sched_switch: next_comm =~ \"^s\\+h$\"",
	"function: ip == \"vfs_write\" || parent_ip =~ \"^__do_sys\"",
	"kmalloc: call_site =~ \"^[a-m_]\"",
	/* The CPU and the task. */
	"sched_switch: CPU == 1",
	"sched_switch: CPU + 0 && next_pid == 0",
	"sched_switch: COMM =~ \"^s\"",
	".*: COMM != \"<idle>\"",
	/* Names of events. */
	"sched_switch, softirq_entry: common_pid == 0",
	"sched/sched_switch,irq:common_pid == 0",
	" sched / sched_switch , kmem : common_pid < 200",
	"SCHED_[sw].*: common_pid == 0",
	"ir./soft.*, sched/.*waking",
	"sched_switch",
	"irq",
};
/* libtraceevent takes a location's offset for its length where the byte order is not its own. */
static const char *const own_order_only[] = {
	"irq_handler_entry: name =~ \"i\"",
	"sys_enter_openat, workqueue_queue_work: workqueue =~ \"e\"",
};
#define TEXTS (ARRAY_SIZE(texts) + ARRAY_SIZE(own_order_only))

struct judged {
	const char *text;
	struct filter *ours;
	const struct event_filter *ops;
	struct tep_event_filter *theirs; /* NULL: the recording lacks its events or fields */
	unsigned long taken, left_out;	 /* in all recordings */
};

struct judge {
	struct tep_handle *tep;
	const struct trace_info *info;
	struct judged all[TEXTS];
	unsigned long different;
};

static char *name_function(void *userdata, unsigned long long *address, char **module)
{
	const struct judge *j = userdata;
	struct symbol symbol;

	if (!event_table_find_symbol(j->info->events, *address, &symbol))
		return NULL;
	*module = NULL;
	*address = symbol.address;
	return (char *)(uintptr_t)symbol.name;
}

static void add_events(struct judge *j)
{
	size_t count, len;
	const struct event *const *all = event_table_all(j->info->events, &count);

	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(j->tep, (int)j->info->header->word_size);
	tep_set_file_bigendian(j->tep,
			       j->info->header->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_function_resolver(j->tep, name_function, j);
	for (size_t i = 0; i < count; i++) {
		const char *text = event_format_text(all[i], &len);
		const char *print = memmem(text, len, "\nprint fmt:", 11);
		_cleanup_buf_ struct buf format = BUF_INIT;

		buf_append(&format, text, print ? (size_t)(print - text) : len);
		/* libtraceevent leaks memory of some texts for printing. */
		buf_puts(&format, "\nprint fmt: \"\"\n");
		tep_parse_event(j->tep, format.data, format.len, all[i]->system);
	}
}

/* A filter that ours refuses, as the recording has none of its events, is not compared there. */
static int judge_begin(void *userdata, const struct trace_info *info, struct error *err _unused_)
{
	struct judge *j = userdata;

	j->info = info;
	add_events(j);
	for (size_t i = 0; i < TEXTS; i++) {
		struct judged *f = &j->all[i];

		if ((info->header->big_endian && i >= ARRAY_SIZE(texts)) ||
		    f->ops->begin(f->ops->userdata, info, NULL) < 0)
			continue;
		f->theirs = tep_filter_alloc(j->tep);
		if (tep_filter_add_filter_str(f->theirs, f->text) < 0)
			fail_msg("%s: libtraceevent refuses it", f->text);
	}
	return 0;
}

static bool judge_takes(void *userdata, const struct trace_event *ev)
{
	struct judge *j = userdata;
	const struct task *task =
		ev->pid > 0 ? task_table_find(j->info->tasks, ev->pid, ev->rec.ts) : NULL;
	struct tep_record record = {
		.ts = ev->rec.ts,
		.cpu = (int)ev->cpu,
		.size = (int)ev->rec.len,
		.data = (void *)(uintptr_t)ev->rec.data,
	};

	if (ev->pid > 0)
		tep_override_comm(j->tep, task ? task->comm : "<...>", ev->pid);
	for (size_t i = 0; i < TEXTS; i++) {
		struct judged *f = &j->all[i];
		bool ours, theirs;

		if (!f->theirs)
			continue;
		ours = f->ops->takes(f->ops->userdata, ev);
		theirs = tep_filter_match(f->theirs, &record) == TEP_ERRNO__FILTER_MATCH;
		if (ours != theirs) {
			j->different++;
			print_error("%s: ours %s %s:%s of task %d, libtraceevent does not\n",
				    f->text, ours ? "takes" : "leaves out", ev->desc->system,
				    ev->desc->name, ev->pid);
		}
		*(ours ? &f->taken : &f->left_out) += 1;
	}
	return true;
}

static void judge_recording(struct judge *j, const char *path)
{
	const struct event_filter both = { judge_begin, judge_takes, "both", true, j };
	const struct export_options options = { .format = "txt", .selection = { .filter = &both } };
	_cleanup_buf_ struct buf out = BUF_INIT;
	char whole[512];

	j->tep = tep_alloc();
	snprintf(whole, sizeof(whole), TEST_DATA "/%s.traced.gz", path);
	fixture_export(whole, &options, &out);
	for (size_t i = 0; i < TEXTS; i++) {
		if (j->all[i].theirs)
			tep_filter_free(j->all[i].theirs);
		j->all[i].theirs = NULL;
	}
	tep_free(j->tep);
}

static void same_events(void **state _unused_)
{
	static const char *const recordings[] = {
		"5.10.223/mixed",	"6.1.176/mixed",	"6.12.107/mixed",
		"7.2.13/mixed",		"6.12.107-arm64/mixed", "6.12.107-armhf/mixed",
		"6.12.107-s390x/mixed", "6.12.107/function",
	};
	static struct judge j;
	unsigned useless = 0;

	for (size_t i = 0; i < TEXTS; i++) {
		struct judged *f = &j.all[i];

		f->text = i < ARRAY_SIZE(texts) ? texts[i] : own_order_only[i - ARRAY_SIZE(texts)];
		assert_int_equal(filter_new(&f->ours, &f->text, 1, NULL), 0);
		f->ops = filter_event_filter(f->ours);
	}
	for (size_t i = 0; i < ARRAY_SIZE(recordings); i++)
		judge_recording(&j, recordings[i]);
	for (size_t i = 0; i < TEXTS; i++) {
		filter_free(j.all[i].ours);
		if (!j.all[i].taken || !j.all[i].left_out)
			print_error("%s: %lu taken, %lu left out: it shows nothing\n",
				    j.all[i].text, j.all[i].taken, j.all[i].left_out);
		useless += !j.all[i].taken || !j.all[i].left_out;
	}
	assert_int_equal(j.different, 0);
	assert_int_equal(useless, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(same_events) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
