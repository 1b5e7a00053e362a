/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/host_fields.h"

#include <string.h>

#include "base/vec.h"
#include "print/printer.h"

/* Names of fields. */
static const struct {
	const char *system, *event;
	const char *tasks[4], *cpus[4];
} known[] = {
	{ "sched", "sched_switch", { "prev_pid", "next_pid" }, {} },
	{ "sched", "sched_waking", { "pid" }, { "target_cpu" } },
	{ "sched", "sched_wakeup", { "pid" }, { "target_cpu" } },
	{ "sched", "sched_wakeup_new", { "pid" }, { "target_cpu" } },
	{ "sched", "sched_kthread_stop", { "pid" }, {} },
	{ "sched", "sched_migrate_task", { "pid" }, { "orig_cpu", "dest_cpu" } },
	{ "sched", "sched_blocked_reason", { "pid" }, {} },
	{ "sched", "sched_move_numa", { "pid", "tgid" }, { "src_cpu", "dst_cpu" } },
	{ "sched", "sched_pi_setprio", { "pid" }, {} },
	{ "sched", "sched_prepare_exec", { "pid" }, {} },
	{ "sched", "sched_process_exec", { "pid", "old_pid" }, {} },
	{ "sched", "sched_process_exit", { "pid" }, {} },
	{ "sched", "sched_process_fork", { "parent_pid", "child_pid" }, {} },
	{ "sched", "sched_process_free", { "pid" }, {} },
	{ "sched", "sched_process_hang", { "pid" }, {} },
	{ "sched", "sched_process_wait", { "pid" }, {} },
	{ "sched", "sched_stat_blocked", { "pid" }, {} },
	{ "sched", "sched_stat_iowait", { "pid" }, {} },
	{ "sched", "sched_stat_runtime", { "pid" }, {} },
	{ "sched", "sched_stat_sleep", { "pid" }, {} },
	{ "sched", "sched_stat_wait", { "pid" }, {} },
	{ "sched",
	  "sched_stick_numa",
	  { "src_pid", "src_tgid", "dst_pid", "dst_tgid" },
	  { "src_cpu", "dst_cpu" } },
	{ "sched",
	  "sched_swap_numa",
	  { "src_pid", "src_tgid", "dst_pid", "dst_tgid" },
	  { "src_cpu", "dst_cpu" } },
	{ "sched", "sched_wait_task", { "pid" }, {} },
	{ "sched", "sched_wake_idle_without_ipi", {}, { "cpu" } },
	{ "sched", "sched_cpu_hotplug", {}, { "affected_cpu" } },
	{ "task", "task_newtask", { "pid" }, {} },
	{ "task", "task_rename", { "pid" }, {} },
	{ "oom", "oom_score_adj_update", { "pid" }, {} },
	{ "oom", "mark_victim", { "pid" }, {} },
	{ "binder", "binder_transaction", { "to_proc", "to_thread" }, {} },
	{ "power", "cpu_frequency", {}, { "cpu_id" } },
	{ "power", "cpu_frequency_limits", {}, { "cpu_id" } },
	{ "power", "cpu_idle", {}, { "cpu_id" } },
	{ "power", "power_frequency", {}, { "cpu_id" } },
	{ "power", "power_start", {}, { "cpu_id" } },
};

static void host_fields_add(struct host_fields *f, const struct event *ev, const char *name,
			    bool is_cpu)
{
	const struct field *field = name ? event_field(ev, name) : NULL;

	if (field && !field->is_dynamic && !field->is_array && field->size == sizeof(uint32_t) &&
	    f->count < HOST_FIELDS_MAX)
		f->all[f->count++] = (struct host_field){ ev, field->offset, is_cpu };
}

void host_fields_init(struct host_fields *f, const struct trace_info *info)
{
	*f = (struct host_fields){
		.host = info->host,
		.swap = info->layout.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__),
	};
	for (size_t i = 0; f->host && i < ARRAY_SIZE(known); i++) {
		const struct event *ev =
			event_table_find_name(info->events, known[i].system, known[i].event);

		for (size_t k = 0; ev && k < ARRAY_SIZE(known[i].tasks); k++) {
			host_fields_add(f, ev, known[i].tasks[k], false);
			host_fields_add(f, ev, known[i].cpus[k], true);
		}
	}
}

void host_fields_deinit(struct host_fields *f)
{
	buf_deinit(&f->record);
}

static void field_move(const struct host_fields *f, const struct host_field *field)
{
	char *at = f->record.data + field->offset;
	uint32_t old = (uint32_t)load_uint(at, sizeof(old), f->swap);
	uint32_t moved =
		field->is_cpu ? host_cpu(f->host, old) : (uint32_t)host_task(f->host, (int32_t)old);

	if (f->swap)
		moved = __builtin_bswap32(moved);
	memcpy(at, &moved, sizeof(moved));
}

const struct trace_event *host_fields_move(struct host_fields *f, const struct trace_event *ev,
					   struct trace_event *copy)
{
	const struct trace_event *ret = ev;

	for (size_t i = 0; i < f->count; i++) {
		const struct host_field *field = &f->all[i];

		if (field->ev != ev->desc || ev->rec.len < sizeof(uint32_t) ||
		    field->offset > ev->rec.len - sizeof(uint32_t))
			continue;
		if (ret == ev) {
			buf_clear(&f->record);
			buf_append(&f->record, ev->rec.data, ev->rec.len);
			if (buf_error(&f->record) < 0)
				return NULL;
			*copy = *ev;
			copy->rec.data = (const uint8_t *)f->record.data;
			ret = copy;
		}
		field_move(f, field);
	}
	return ret;
}
