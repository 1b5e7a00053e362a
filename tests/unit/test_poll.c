/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Polled files: the values in the kernel's texts, and in each format. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "make_stream.h"
#include "marks/poll.h"
#include "memory_file.h"
#include "perfetto_run.h"
#include "segmented.h"
#include "stream/poll_plan.h"

#define MEMINFO                                                                                    \
	"MemTotal:       24684096 kB\nMemFree:         1000 kB\nKReclaimable: 77 kB\n"             \
	"HugePages_Free:        3\n"
#define VMSTAT "nr_free_pages 2470475\nnr_new_in_a_later_kernel 5\npgpgin 18446744073709551615\n"
#define STAT                                                                                       \
	"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu12 100 0 0\n"                     \
	"intr 123456 0 7 8\nctxt 55\nbtime 1700000000\nprocesses 42\nprocs_running 3\n"            \
	"procs_blocked 1\nsoftirq 99 1 2 3\n"
#define PRESSURE                                                                                   \
	"some avg10=1.50 avg60=0.00 avg300=0.00 total=10\nfull avg10=0.00 avg60=0.00 avg300=0.00 " \
	"total=4\n"
#define DISKS                                                                                      \
	"   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n"                                             \
	" 254      16 vdb 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n"
#define STATUS                                                                                     \
	"VmPeak:\t  200 kB\nVmSize:\t  150 kB\nVmLck:\t 1 kB\nVmHWM:\t 90 kB\nVmRSS:\t 80 kB\n"    \
	"RssAnon:\t 40 kB\nRssFile:\t 30 kB\nRssShmem:\t 10 kB\nVmData:\t 7 kB\nVmSwap:\t 6 kB\n"

struct file {
	uint32_t number;
	const char *label, *text;
};

/* A reading with the given files, as the stream has it. */
static void make_poll(Traced__Capture__Poll *poll, unsigned source, uint64_t boot_ns,
		      const struct file *files, size_t count)
{
	static Traced__Capture__PolledFile polled[8], *list[8];

	traced__capture__poll__init(poll);
	poll->source = (Traced__Capture__Poll__Source)source;
	poll->boot_ns = boot_ns;
	for (size_t i = 0; i < count; i++) {
		const char *label = files[i].label ?: "";

		traced__capture__polled_file__init(&polled[i]);
		polled[i].number = files[i].number;
		polled[i].label.data = (uint8_t *)label;
		polled[i].label.len = strlen(label);
		polled[i].text.data = (uint8_t *)files[i].text;
		polled[i].text.len = strlen(files[i].text);
		list[i] = &polled[i];
	}
	poll->files = list;
	poll->n_files = count;
}

/* Its values, one per line. */
static void list_values(unsigned source, const struct file *files, size_t count, struct buf *out)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	Traced__Capture__Poll message;
	const struct poll poll = { .message = &message, .ts = 5, .hz = 100 };
	struct poll_value v;
	struct poll_iter it;
	struct mark mark;

	make_poll(&message, source, 5, files, count);
	poll_iter_init(&it, &poll);
	while (poll_next(&it, &v)) {
		assert_int_equal(poll_mark(&poll, &v, &name, &mark), 0);
		assert_int_equal(mark.phase, PHASE_COUNTER);
		assert_int_equal(mark.ts, 5);
		buf_printf(out, "%.*s =", (int)mark.part[PART_NAME].len, mark.part[PART_NAME].data);
		if (v.negative)
			buf_printf(out, " %lld", (long long)v.bits);
		else
			buf_printf(out, " %llu", (unsigned long long)v.bits);
		buf_printf(out, "%s%s", v.unit ? " " : "", v.unit ?: "");
		if (mark.pid)
			buf_printf(out, " of %d", mark.pid);
		buf_putc(out, '\n');
	}
	assert_non_null(buf_string(out));
}

static void check_values(unsigned source, const struct file *files, size_t count,
			 const char *wanted)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	list_values(source, files, count, &b);
	assert_string_equal(b.data, wanted);
}
#define FILES(...)                                                                                 \
	(const struct file[]){ __VA_ARGS__ },                                                      \
		sizeof((const struct file[]){ __VA_ARGS__ }) / sizeof(struct file)

/* Zones and CPUs have a file each, of one value: more lines are a hostile program's. */
static void a_file_of_one_value_has_no_more(void **state _unused_)
{
	check_values(POLL_THERMAL, FILES({ 3, "x", "1\n2\n3\n" }, { 4, "y", "5\n" }),
		     "thermal zone3 x = 1 mC\nthermal zone4 y = 5 mC\n");
	check_values(POLL_CPUFREQ, FILES({ 3, NULL, "1\n2\n3\n" }, { 4, NULL, "5\n" }),
		     "cpufreq cpu3 = 1 kHz\ncpufreq cpu4 = 5 kHz\n");
}

static void each_file_has_its_values(void **state _unused_)
{
	check_values(POLL_MEMINFO, FILES({ 0, NULL, MEMINFO }),
		     "meminfo MemTotal = 24684096 kB\nmeminfo MemFree = 1000 kB\n"
		     "meminfo KReclaimable = 77 kB\nmeminfo HugePages_Free = 3\n");
	check_values(POLL_VMSTAT, FILES({ 0, NULL, VMSTAT }),
		     "vmstat nr_free_pages = 2470475\nvmstat nr_new_in_a_later_kernel = 5\n"
		     "vmstat pgpgin = 18446744073709551615\n");
	check_values(POLL_STAT, FILES({ 0, NULL, STAT }),
		     "stat cpu0 user = 10000000 ns\nstat cpu0 nice = 20000000 ns\n"
		     "stat cpu0 system = 30000000 ns\nstat cpu0 idle = 40000000 ns\n"
		     "stat cpu0 iowait = 50000000 ns\nstat cpu0 irq = 60000000 ns\n"
		     "stat cpu0 softirq = 70000000 ns\nstat cpu0 steal = 80000000 ns\n"
		     "stat cpu0 guest = 90000000 ns\nstat cpu0 guest_nice = 100000000 ns\n"
		     "stat cpu12 user = 1000000000 ns\nstat cpu12 nice = 0 ns\n"
		     "stat cpu12 system = 0 ns\nstat intr = 123456\nstat ctxt = 55\n"
		     "stat processes = 42\nstat procs_running = 3\nstat procs_blocked = 1\n"
		     "stat softirq = 99\n");
	check_values(POLL_CPUFREQ, FILES({ 0, NULL, "800000\n" }, { 3, NULL, "3600000\n" }),
		     "cpufreq cpu0 = 800000 kHz\ncpufreq cpu3 = 3600000 kHz\n");
	check_values(POLL_PSI, FILES({ 0, "memory", PRESSURE }),
		     "psi memory some = 10 us\npsi memory full = 4 us\n");
	check_values(POLL_THERMAL, FILES({ 0, "acpitz", "27800\n" }, { 1, "acpitz", "-5000\n" }),
		     "thermal zone0 acpitz = 27800 mC\nthermal zone1 acpitz = -5000 mC\n");
	check_values(POLL_DISKSTATS, FILES({ 0, NULL, DISKS }),
		     "diskstats loop0 reads = 1\ndiskstats loop0 reads_merged = 2\n"
		     "diskstats loop0 read_sectors = 3\ndiskstats loop0 read_ms = 4\n"
		     "diskstats loop0 writes = 5\ndiskstats loop0 writes_merged = 6\n"
		     "diskstats loop0 write_sectors = 7\ndiskstats loop0 write_ms = 8\n"
		     "diskstats loop0 in_flight = 9\ndiskstats loop0 io_ms = 10\n"
		     "diskstats loop0 weighted_io_ms = 11\n"
		     "diskstats vdb reads = 1\ndiskstats vdb reads_merged = 2\n"
		     "diskstats vdb read_sectors = 3\ndiskstats vdb read_ms = 4\n"
		     "diskstats vdb writes = 5\ndiskstats vdb writes_merged = 6\n"
		     "diskstats vdb write_sectors = 7\ndiskstats vdb write_ms = 8\n"
		     "diskstats vdb in_flight = 9\ndiskstats vdb io_ms = 10\n"
		     "diskstats vdb weighted_io_ms = 11\ndiskstats vdb discards = 12\n"
		     "diskstats vdb discards_merged = 13\ndiskstats vdb discard_sectors = 14\n"
		     "diskstats vdb discard_ms = 15\ndiskstats vdb flushes = 16\n"
		     "diskstats vdb flush_ms = 17\n");
	check_values(POLL_PROCESS_MEMORY, FILES({ 70, NULL, STATUS }),
		     "process-memory VmSize = 150 kB of 70\nprocess-memory VmLck = 1 kB of 70\n"
		     "process-memory VmHWM = 90 kB of 70\nprocess-memory VmRSS = 80 kB of 70\n"
		     "process-memory RssAnon = 40 kB of 70\nprocess-memory RssFile = 30 kB of 70\n"
		     "process-memory RssShmem = 10 kB of 70\nprocess-memory VmSwap = 6 kB of 70\n");
}

/* Only what the kernel writes is taken, and only whole numbers that fit. */
static void other_lines_are_skipped(void **state _unused_)
{
	static char name[POLL_NAME_MAX + 10];

	memset(name, 'x', POLL_NAME_MAX + 1);
	strcpy(name + POLL_NAME_MAX + 1, " 5\n");
	check_values(
		POLL_MEMINFO,
		FILES({ 0, NULL, "\n\nMemFree\nMemFree: \nMemFree: x kB\nMemFree: 1x kB\n:\n" }),
		"");
	check_values(POLL_VMSTAT, FILES({ 0, NULL, "a 18446744073709551616\nb -1\nc\n d 4\ne 5" }),
		     "vmstat d = 4\nvmstat e = 5\n");
	check_values(POLL_VMSTAT, FILES({ 0, NULL, name }), "");
	check_values(POLL_STAT,
		     FILES({ 0, NULL,
			     "cpu\ncpu0\ncpux 1 2\ncpu99999999999 1\nintr\nctxt x\n"
			     "cpu1 18446744073709551615 1\ncpu2 5 x 7\nunknown 5\n" }),
		     "stat cpu2 user = 50000000 ns\n");
	check_values(POLL_PSI, FILES({ 0, "io", "some\nsome total=\nsome total=x\nfull total=1" }),
		     "psi io full = 1 us\n");
	check_values(POLL_THERMAL, FILES({ 0, "z", "-\n99999999999\n\n5x\n" }), "");
	check_values(POLL_DISKSTATS, FILES({ 0, NULL, "1\n1 2\n1 2 sda\nx 2 sdb 4\n1 2 sdc 7" }),
		     "diskstats sdc reads = 7\n");
	check_values(0, FILES({ 0, NULL, MEMINFO }), "");
	check_values(99, FILES({ 0, NULL, MEMINFO }), "");
	check_values(POLL_MEMINFO, NULL, 0, "");
}

/* Writes readings of all sources, the first at `from`. */
static void write_polls(struct maker *m, uint64_t from)
{
	const struct {
		unsigned source;
		size_t count;
		struct file files[4];
	} all[] = {
		{ POLL_MEMINFO, 1, { { 0, NULL, MEMINFO } } },
		{ POLL_VMSTAT, 1, { { 0, NULL, VMSTAT } } },
		{ POLL_STAT, 1, { { 0, NULL, STAT } } },
		{ POLL_CPUFREQ, 2, { { 1, NULL, "800000\n" }, { 3, NULL, "3600000\n" } } },
		{ POLL_PSI, 2, { { 0, "cpu", PRESSURE }, { 0, "irq", "full total=8\n" } } },
		{ POLL_THERMAL,
		  3,
		  { { 0, "acpitz", "27800\n" },
		    { 1, "acpitz", "30000\n" },
		    { 2, "x", "-5000\n" } } },
		{ POLL_DISKSTATS, 1, { { 0, NULL, DISKS } } },
		{ POLL_PROCESS_MEMORY, 2, { { 70, NULL, STATUS }, { 71, NULL, "VmRSS: 5 kB\n" } } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		Traced__Capture__Polls polls = TRACED__CAPTURE__POLLS__INIT;
		Traced__Capture__Poll poll;

		make_poll(&poll, all[i].source, from + i, all[i].files, all[i].count);
		polls.polls = (Traced__Capture__Poll *[]){ &poll };
		polls.n_polls = 1;
		assert_int_equal(stream_write_message(&m->writer, CHUNK_POLLS, &polls.base), 0);
	}
}

/* The n-th field of a chunk, as the recorder writes it. */
static void put_poll(struct buf *out, uint64_t boot_ns, const char *meminfo)
{
	Traced__Capture__Polls polls = TRACED__CAPTURE__POLLS__INIT;
	Traced__Capture__Poll poll;
	uint8_t *to;

	make_poll(&poll, POLL_MEMINFO, boot_ns, FILES({ 0, NULL, meminfo }));
	polls.polls = (Traced__Capture__Poll *[]){ &poll };
	polls.n_polls = 1;
	to = (uint8_t *)buf_reserve(out, traced__capture__polls__get_packed_size(&polls));
	assert_non_null(to);
	out->len += traced__capture__polls__pack(&polls, to);
}

#define BEGIN (5 * S)

static void begin_capture(struct maker *m)
{
	const struct maker_task tasks[] = { { 70, 70, "seventy", 0, false } };

	maker_begin(m, 4096);
	maker_clocks(m, BEGIN, 0);
	maker_tasks(m, 1, 0, tasks, 1);
}

static void end_capture(struct maker *m)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;

	page_begin(m, BEGIN);
	event_number(m, BEGIN + 5, 7, 1);
	event_number(m, BEGIN + MS, 7, 2);
	page_flush(m, 0, 0);
	maker_clocks(m, BEGIN + 2 * MS, 2);
	end.boot_ns = BEGIN + 2 * MS;
	assert_int_equal(stream_write_message(&m->writer, CHUNK_END, &end.base), 0);
}

static json_t *export_json(struct exported *e, int fd)
{
	json_t *json;

	e->options.format = "json";
	export_whole(e, fd);
	json = json_loadb(e->file.data, e->file.len, JSON_DECODE_INT_AS_REAL, NULL);
	assert_non_null(json);
	return json;
}

/* The n-th counter of that name; NULL: none. */
static const json_t *counter(const json_t *json, const char *name, size_t n)
{
	json_t *e;
	size_t i;

	json_array_foreach(json_object_get(json, "traceEvents"), i,
			   e) if (strcmp(json_string_value(json_object_get(e, "name")), name) ==
					  0 &&
				  !n--) return e;
	return NULL;
}

static double series(const json_t *counter, const char *key)
{
	const json_t *args = json_object_get(counter, "args");

	assert_non_null(counter);
	assert_string_equal(json_string_value(json_object_get(counter, "ph")), "C");
	assert_int_equal(json_object_size(args), 1);
	assert_true(json_is_number(json_object_get(args, key)));
	return json_number_value(json_object_get(args, key));
}

static void json_has_counters(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported e = { 0 };
	const json_t *rss;
	json_t *json;

	begin_capture(&m);
	write_polls(&m, BEGIN + 100);
	end_capture(&m);
	json = export_json(&e, m.fd);
	assert_int_equal(e.result.warning_count, 0);
	assert_int_equal(e.result.marks, 0);
	assert_true(series(counter(json, "meminfo MemFree", 0), "kB") == 1000);
	assert_true(series(counter(json, "stat cpu0 idle", 0), "ns") == 40000000);
	assert_true(series(counter(json, "thermal zone2 x", 0), "mC") == -5000);
	assert_true(series(counter(json, "diskstats vdb flush_ms", 0), "value") == 17);
	assert_true(series(counter(json, "cpufreq cpu3", 0), "kHz") == 3600000);
	rss = counter(json, "process-memory VmRSS", 0);
	assert_true(series(rss, "kB") == 80);
	assert_true(json_number_value(json_object_get(rss, "pid")) == 70);
	assert_int_equal((uint64_t)(json_number_value(json_object_get(rss, "ts")) * 1000 + 0.5),
			 BEGIN + 107);
	json_decref(json);
}

static const PB(SysStats) * sys_stats(const struct perfetto_run *r, size_t n)
{
	size_t i = perfetto_find(r, DATA(SYS_STATS), n);

	assert_true(i < r->trace->n_packet);
	assert_int_equal(r->trace->packet[i]->timestamp, BEGIN + 100 + n);
	return r->trace->packet[i]->sys_stats;
}

/* The value of the counter event on the track with that name. */
static int64_t track_value(const struct perfetto_run *r, const char *name)
{
	const PB(TrackDescriptor) *track = NULL;

	for (size_t i = 0; i < r->trace->n_packet; i++) {
		const PB(TracePacket) *p = r->trace->packet[i];

		if (p->data_case == DATA(TRACK_DESCRIPTOR) && p->track_descriptor->name &&
		    strcmp(p->track_descriptor->name, name) == 0)
			track = p->track_descriptor;
		if (track && p->data_case == DATA(TRACK_EVENT) &&
		    p->track_event->track_uuid == track->uuid)
			return p->track_event->counter_value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

static void check_perfetto_machine(const struct perfetto_run *r)
{
	const PB(SysStats) *s = sys_stats(r, 0);

	assert_int_equal(s->n_meminfo, 2);
	assert_int_equal(s->meminfo[0]->key, 1); /* MEMINFO_MEM_TOTAL */
	assert_int_equal(s->meminfo[0]->value, 24684096);
	assert_int_equal(s->meminfo[1]->key, 2); /* MEMINFO_MEM_FREE */
	s = sys_stats(r, 1);
	assert_int_equal(s->n_vmstat, 2);
	assert_int_equal(s->vmstat[0]->key, 1); /* VMSTAT_NR_FREE_PAGES */
	assert_int_equal(s->vmstat[0]->value, 2470475);
	assert_int_equal(s->vmstat[1]->key, 38); /* VMSTAT_PGPGIN */
	s = sys_stats(r, 2);
	assert_int_equal(s->n_cpu_stat, 2);
	assert_int_equal(s->cpu_stat[0]->cpu_id, 0);
	assert_int_equal(s->cpu_stat[0]->user_ns, 10000000);
	assert_int_equal(s->cpu_stat[0]->steal_ns, 80000000);
	assert_int_equal(s->cpu_stat[1]->cpu_id, 12);
	assert_int_equal(s->cpu_stat[1]->user_ns, 1000000000);
	assert_int_equal(s->num_forks, 42);
	assert_int_equal(s->num_irq_total, 123456);
	assert_int_equal(s->num_softirq_total, 99);
	s = sys_stats(r, 3);
	assert_int_equal(s->n_cpufreq_khz, 4);
	assert_int_equal(s->cpufreq_khz[0], 0);
	assert_int_equal(s->cpufreq_khz[1], 800000);
	assert_int_equal(s->cpufreq_khz[3], 3600000);
	s = sys_stats(r, 4);
	assert_int_equal(s->n_psi, 2);
	assert_int_equal(s->psi[0]->resource, 1); /* PSI_RESOURCE_CPU_SOME */
	assert_int_equal(s->psi[0]->total_ns, 10000);
	assert_int_equal(s->psi[1]->resource, 2);
	s = sys_stats(r, 5);
	assert_int_equal(s->n_thermal_zone, 2);
	assert_string_equal(s->thermal_zone[0]->type, "acpitz");
	assert_string_equal(s->thermal_zone[0]->name, "thermal_zone0");
	assert_int_equal(s->thermal_zone[0]->temp, 27);
	assert_string_equal(s->thermal_zone[1]->type, "acpitz 1");
	s = sys_stats(r, 6);
	assert_int_equal(s->n_disk_stat, 2);
	assert_string_equal(s->disk_stat[1]->device_name, "vdb");
	assert_int_equal(s->disk_stat[1]->read_sectors, 3);
	assert_int_equal(s->disk_stat[1]->write_time_ms, 8);
	assert_int_equal(s->disk_stat[1]->discard_sectors, 14);
	assert_int_equal(s->disk_stat[1]->flush_count, 16);
	assert_false(s->disk_stat[0]->has_flush_count);
}

static void perfetto_has_its_messages(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	const PB(ProcessStats) * s;
	size_t i;

	begin_capture(&m);
	write_polls(&m, BEGIN + 100);
	end_capture(&m);
	perfetto_export(&r, m.fd);
	assert_non_null(r.trace);
	assert_int_equal(r.out.result.warning_count, 0);
	check_perfetto_machine(&r);
	i = perfetto_find(&r, DATA(TRACK_DESCRIPTOR), 0);
	assert_true(i < r.trace->n_packet);
	assert_string_equal(r.trace->packet[i]->track_descriptor->name, "Polled files");
	assert_int_equal(r.trace->packet[i]->timestamp, BEGIN + 100);
	i = perfetto_find(&r, DATA(PROCESS_STATS), 0);
	assert_true(i < r.trace->n_packet);
	s = r.trace->packet[i]->process_stats;
	assert_int_equal(s->n_processes, 2);
	assert_int_equal(s->processes[0]->pid, 70);
	assert_int_equal(s->processes[0]->vm_size_kb, 150);
	assert_int_equal(s->processes[0]->vm_rss_kb, 80);
	assert_int_equal(s->processes[0]->rss_anon_kb, 40);
	assert_int_equal(s->processes[0]->rss_file_kb, 30);
	assert_int_equal(s->processes[0]->rss_shmem_kb, 10);
	assert_int_equal(s->processes[0]->vm_swap_kb, 6);
	assert_int_equal(s->processes[0]->vm_locked_kb, 1);
	assert_int_equal(s->processes[0]->vm_hwm_kb, 90);
	assert_int_equal(s->processes[1]->pid, 71);
	/* The messages have no field for these. */
	assert_int_equal(track_value(&r, "meminfo KReclaimable kB"), 77);
	assert_int_equal(track_value(&r, "meminfo HugePages_Free"), 3);
	assert_int_equal(track_value(&r, "vmstat nr_new_in_a_later_kernel"), 5);
	assert_int_equal(track_value(&r, "stat ctxt"), 55);
	assert_int_equal(track_value(&r, "psi irq full us"), 8);
	assert_int_equal(track_value(&r, "thermal zone2 x mC"), -5000);
	assert_int_equal(track_value(&r, "diskstats vdb in_flight"), 9);
}

static void ctf_has_counters(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_segmented_ struct segmented *t = NULL;
	bool found = false;

	begin_capture(&m);
	write_polls(&m, BEGIN + 100);
	end_capture(&m);
	t = export_segments(m.fd, &(struct export_options){ .format = "ctf" });
	assert_int_equal(t->out.code, 0);
	for (size_t i = 0; i < t->count; i++)
		found |= memmem(t->files[i].data.data, t->files[i].data.len,
				"meminfo MemFree\0poll\0{\"kB\":1000}",
				sizeof("meminfo MemFree\0poll\0{\"kB\":1000}")) != NULL;
	assert_true(found);
}

static void formats_without_counters_warn(void **state _unused_)
{
	static const char *const formats[] = { "txt", "dat" };

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_exported_ struct exported e = { .options.format = formats[i] };
		_cleanup_(maker_deinit) struct maker m;
		char wanted[80];

		begin_capture(&m);
		write_polls(&m, BEGIN + 100);
		end_capture(&m);
		export_whole(&e, m.fd);
		snprintf(wanted, sizeof(wanted),
			 "a .%s has no place for polled files: they are left out", formats[i]);
		assert_int_equal(e.result.warning_count, 1);
		assert_string_equal(e.result.warnings[0], wanted);
		assert_false(e.result.incomplete);
	}
}

/* The stream keeps them: converted twice they are the same. */
static void a_stream_keeps_them(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported copy = { .options.format = "traced" }, a = { 0 },
					   b = { 0 };
	_cleanup_close_ int fd = -EBADF;

	begin_capture(&m);
	write_polls(&m, BEGIN + 100);
	end_capture(&m);
	export_whole(&copy, m.fd);
	fd = memory_file(copy.file.data, copy.file.len);
	json_decref(export_json(&a, m.fd));
	json_decref(export_json(&b, fd));
	assert_int_equal(a.file.len, b.file.len);
	assert_memory_equal(a.file.data, b.file.data, a.file.len);
}

static void damage_is_reported(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported e = { 0 };
	_cleanup_buf_ struct buf good = BUF_INIT, late = BUF_INIT;
	json_t *json;

	begin_capture(&m);
	put_poll(&good, BEGIN + 100, "MemFree: 1 kB\n");
	assert_int_equal(stream_write(&m.writer, CHUNK_POLLS, "\x0a\xff\x01", 3), 0);
	put_poll(&good, BEGIN + 50, "MemFree: 2 kB\n");
	assert_int_equal(stream_write(&m.writer, CHUNK_POLLS, good.data, good.len), 0);
	put_poll(&late, 1000 * BEGIN, "MemFree: 3 kB\n");
	assert_int_equal(stream_write(&m.writer, CHUNK_POLLS, late.data, late.len), 0);
	end_capture(&m);
	json = export_json(&e, m.fd);
	assert_int_equal(e.result.warning_count, 2);
	assert_string_equal(e.result.warnings[0], "1 chunk of polled files is damaged");
	assert_non_null(strstr(e.result.warnings[1], "1 reading of polled files is left out"));
	assert_true(e.result.incomplete);
	assert_true(series(counter(json, "meminfo MemFree", 0), "kB") == 1);
	/* Its time went backwards: the order of the stream counts. */
	assert_true(series(counter(json, "meminfo MemFree", 1), "kB") == 2);
	assert_int_equal((uint64_t)(json_number_value(json_object_get(
					    counter(json, "meminfo MemFree", 1), "ts")) *
					    1000 +
				    0.5),
			 BEGIN + 100);
	assert_null(counter(json, "meminfo MemFree", 2));
	json_decref(json);
}

/* A message of 2 bytes takes a hundred in memory. */
static void a_flood_takes_no_memory(void **state _unused_)
{
	const size_t len = STREAM_POLLS_MAX;
	_cleanup_free_ char *flood = malloc(len);
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_exported_ struct exported e = { 0 };
	_cleanup_buf_ struct buf good = BUF_INIT;
	json_t *json;

	assert_non_null(flood);
	for (size_t i = 0; i < len; i += 2)
		memcpy(flood + i, "\x0a", 2);
	begin_capture(&m);
	assert_int_equal(stream_write(&m.writer, CHUNK_POLLS, flood, len), 0);
	put_poll(&good, BEGIN + 100, "MemFree: 1 kB\n");
	assert_int_equal(stream_write(&m.writer, CHUNK_POLLS, good.data, good.len), 0);
	end_capture(&m);
	json = export_json(&e, m.fd);
	assert_int_equal(e.result.warning_count, 1);
	assert_string_equal(e.result.warnings[0], "1 chunk of polled files is damaged");
	assert_true(series(counter(json, "meminfo MemFree", 0), "kB") == 1);
	json_decref(json);
}

static void plans_are_checked(void **state _unused_)
{
	static const char *const wrong[] = {
		"",
		"@1s",
		"meminfo,",
		",meminfo",
		"memory",
		"meminfo@",
		"meminfo@0s",
		"psi@x",
		"meminfo@1s@2s",
		"psi@9ms",
		"meminfo,x",
		"psi @1s",
		"Meminfo@1s",
		"process-memory@99ms",
	};
	struct poll_plan plan = { 0 };

	assert_true(poll_plan_is_empty(&plan));
	assert_int_equal(poll_plan_add(&plan, "meminfo,psi@100ms", NULL), 0);
	assert_int_equal(poll_plan_add(&plan, "vmstat process-memory@2s psi@10ms", NULL), 0);
	assert_false(poll_plan_is_empty(&plan));
	assert_int_equal(plan.interval_ns[POLL_MEMINFO], 100 * MS);
	assert_int_equal(plan.interval_ns[POLL_PSI], 10 * MS);
	assert_int_equal(plan.interval_ns[POLL_VMSTAT], S);
	assert_int_equal(plan.interval_ns[POLL_PROCESS_MEMORY], 2 * S);
	assert_int_equal(plan.interval_ns[POLL_STAT], 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct poll_plan before = plan;

		if (poll_plan_add(&plan, wrong[i], &err) != -EINVAL)
			fail_msg("'%s' is taken", wrong[i]);
		assert_non_null(err.message);
		assert_memory_equal(&before, &plan, sizeof(plan));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_file_has_its_values),
		cmocka_unit_test(a_file_of_one_value_has_no_more),
		cmocka_unit_test(other_lines_are_skipped),
		cmocka_unit_test(json_has_counters),
		cmocka_unit_test(perfetto_has_its_messages),
		cmocka_unit_test(ctf_has_counters),
		cmocka_unit_test(formats_without_counters_warn),
		cmocka_unit_test(a_stream_keeps_them),
		cmocka_unit_test(damage_is_reported),
		cmocka_unit_test(a_flood_takes_no_memory),
		cmocka_unit_test(plans_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
