/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_hostile.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "make_formats.h"
#include "make_marks.h"

#define UID 1000
#define PID 70
#define SECOND UINT64_C(1000000000)

/* Numbers whose low bits are equal: a product has its low bits from these. */
static uint32_t reversed(uint64_t i)
{
	uint32_t value = (uint32_t)i, to = 0;

	for (int bit = 0; bit < 32; bit++)
		to |= (value >> bit & 1) << (31 - bit);
	return to;
}

static void begin_marks(struct marks_maker *w, int fd)
{
	marks_maker_begin(w, fd);
	marks_ring(w, 1, UID, PID, PID);
}

/* A mark with a name and an id. */
static void put_mark(struct marks_maker *w, uint8_t phase, const char *name, uint64_t id)
{
	marks_record(w, phase, 0);
	marks_text(w, MARK_NAME, name);
	marks_text(w, MARK_CATEGORY, "hostile");
	marks_number(w, MARK_ID, MARK_UINT, id);
}

/* Marks of two phases, one after the other. So many have one id. */
static void make_pairs(int fd, uint64_t count, const char phases[3], const char *name,
		       unsigned marks_per_id)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++)
		put_mark(&w, (uint8_t)phases[i % 2], name, i / marks_per_id);
	marks_maker_end(&w);
}

static void make_open(int fd, uint64_t count)
{
	make_pairs(fd, count, "bb", "open", 1);
}

static void make_ids(int fd, uint64_t count)
{
	make_pairs(fd, count, "be", "id", 2);
}

static void make_steps(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		put_mark(&w, i % 3 ? 'T' : 'S', "step", i / 3);
		marks_string(&w, "step", "one");
	}
	marks_maker_end(&w);
}

static void make_names(int fd, uint64_t count)
{
	struct marks_maker w;
	char name[32];

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "name %" PRIu64, i);
		marks_record(&w, 'i', 0);
		marks_text(&w, MARK_NAME, name);
		marks_text(&w, MARK_CATEGORY, name);
		marks_argument(&w, name, i);
	}
	marks_maker_end(&w);
}

static void make_labels(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 1; i <= count / 2; i++) {
		marks_record(&w, MARK_DEFINE, reversed(i));
		marks_text(&w, MARK_NAME, "label");
		marks_record(&w, 'i', reversed(i));
	}
	marks_maker_end(&w);
}

static void make_epochs(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 1; i <= count / 2; i++) {
		marks_record(&w, MARK_DEFINE, 1);
		marks_text(&w, MARK_NAME, "label");
		marks_record(&w, MARK_EPOCH, 3);
	}
	marks_maker_end(&w);
}

static void make_flows(int fd, uint64_t count)
{
	make_pairs(fd, count, "sf", "flow", 1);
}

static void make_objects(int fd, uint64_t count)
{
	make_pairs(fd, count, "NO", "object", 2);
}

static void make_links(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		put_mark(&w, '=', "link", i);
		marks_number(&w, MARK_LINKED_ID, MARK_UINT, i + 1);
	}
	marks_maker_end(&w);
}

static void make_contexts(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++)
		put_mark(&w, i < count / 2 ? '(' : ')', "context", i);
	marks_maker_end(&w);
}

static void make_counters(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		put_mark(&w, 'C', "counter", i);
		marks_argument(&w, "series", i);
	}
	marks_maker_end(&w);
}

static void make_nesting(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		marks_record(&w, i < count / 2 ? 'B' : 'E', 0);
		marks_text(&w, MARK_NAME, "nested");
	}
	marks_maker_end(&w);
}

/* Complete marks with one begin: each encloses all before it. */
static void make_enclosing(int fd, uint64_t count)
{
	struct marks_maker w;
	uint64_t from;

	begin_marks(&w, fd);
	from = w.time;
	for (uint64_t i = 0; i < count; i++) {
		marks_record(&w, 'X', 0);
		marks_text(&w, MARK_NAME, "enclosing");
		marks_number(&w, MARK_DURATION, MARK_UINT, w.time - 100 - from);
	}
	marks_maker_end(&w);
}

static void make_frames(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t stack[] = { 0x1000 + i / 3, 0x2000 + i / 2, i };

		marks_record(&w, 'i', 0);
		marks_text(&w, MARK_NAME, "framed");
		marks_addresses(&w, stack, 3);
	}
	marks_maker_end(&w);
}

/* One mark with each stack that is as deep as can be. */
static void make_deep(int fd, uint64_t count)
{
	uint64_t stack[256];
	struct marks_maker w;

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count / 256; i++) {
		for (uint64_t j = 0; j < 256; j++)
			stack[j] = i * 256 + j;
		marks_record(&w, 'i', 0);
		marks_text(&w, MARK_NAME, "deep");
		marks_addresses(&w, stack, 256);
	}
	marks_maker_end(&w);
}

static void make_syncs(int fd, uint64_t count)
{
	struct marks_maker w;
	char id[32];

	begin_marks(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		snprintf(id, sizeof(id), "sync%" PRIu64, i);
		marks_record(&w, 'c', 0);
		marks_text(&w, MARK_SYNC_ID, id);
	}
	marks_maker_end(&w);
}

/* Each mark has a thread and a process of its own, with a name. */
static void put_thread(struct marks_maker *w, uint32_t ring, int32_t pid, int32_t tid)
{
	marks_ring(w, ring, UID, pid, tid);
	marks_record(w, 'M', 0);
	marks_text(w, MARK_NAME, "thread_name");
	marks_string(w, "name", "hostile");
	marks_record(w, 'B', 0);
	marks_text(w, MARK_NAME, "open");
	marks_record(w, 'X', 0);
	marks_text(w, MARK_NAME, "inner");
	marks_number(w, MARK_DURATION, MARK_UINT, 50);
	put_mark(w, 'f', "flow", ring);
}

static void make_threads(int fd, uint64_t count)
{
	struct marks_maker w;

	marks_maker_begin(&w, fd);
	for (uint32_t i = 1; i <= count / 4; i++)
		put_thread(&w, i, (int32_t)(reversed(i) >> 1 | 1), (int32_t)(reversed(i) >> 2 | 1));
	marks_maker_end(&w);
}

/* The same, with the rings' numbers from the last to the first. */
static void make_rings(int fd, uint64_t count)
{
	struct marks_maker w;

	marks_maker_begin(&w, fd);
	for (uint32_t i = (uint32_t)(count / 4); i; i--)
		put_thread(&w, i, PID, (int32_t)i);
	marks_maker_end(&w);
}

static void begin_kernel(struct marks_maker *w, int fd)
{
	marks_maker_begin(w, fd);
	maker_free_format(&w->m);
	page_begin(&w->m, w->time);
}

/* Ends the page if it is almost full. */
static void turn_page(struct marks_maker *w)
{
	w->time += 100;
	if (w->m.page.len < 3600)
		return;
	page_flush(&w->m, 0, 0);
	page_begin(&w->m, w->time);
}

/* The same in the buffer of births. */
static void turn_tasks(struct marks_maker *w)
{
	w->time += 100;
	if (w->m.page.len < 3600)
		return;
	page_end(&w->m, 0);
	maker_flush(&w->m, 0, BUFFER_TASKS, 0);
	page_begin(&w->m, w->time);
}

static void end_kernel(struct marks_maker *w)
{
	page_flush(&w->m, 0, 0);
	marks_maker_end(w);
}

#define CPUS_MAX 20000

/* Each CPU has one event, and lost samples. */
static void make_cpus(int fd, uint64_t count)
{
	static Traced__Capture__SampleCount cpus[CPUS_MAX], *list[CPUS_MAX];
	Traced__Capture__SampleCounts counts = TRACED__CAPTURE__SAMPLE_COUNTS__INIT;
	struct marks_maker w;

	marks_maker_begin(&w, fd);
	counts.cpus = list;
	counts.n_cpus = MIN(count / 2, (uint64_t)CPUS_MAX);
	for (uint32_t i = 0; i < counts.n_cpus; i++) {
		page_begin(&w.m, w.time);
		event_number(&w.m, w.time, 400, i);
		page_flush(&w.m, 0, i);
		traced__capture__sample_count__init(&cpus[i]);
		cpus[i].cpu = i;
		cpus[i].counted = true;
		cpus[i].lost = 1;
		list[i] = &cpus[i];
	}
	assert_int_equal(stream_write_message(&w.m.writer, CHUNK_SAMPLE_COUNTS, &counts.base), 0);
	marks_maker_end(&w);
}

/* Tasks are born at nearly one time; both rings have their births. */
static void make_births(int fd, uint64_t count)
{
	struct marks_maker w;
	uint64_t from;

	begin_kernel(&w, fd);
	from = w.time;
	for (uint64_t i = 0; i < count / 2; i++) {
		turn_tasks(&w);
		event_newtask(&w.m, w.time, 400, (int32_t)(reversed(i + 1) >> 1), "born", 0);
	}
	page_end(&w.m, 0);
	maker_flush(&w.m, 0, BUFFER_TASKS, 0);
	w.time = from;
	page_begin(&w.m, w.time);
	for (uint64_t i = 0; i < count / 2; i++) {
		turn_page(&w);
		event_newtask(&w.m, w.time, 400, (int32_t)(reversed(i + 1) >> 1), "born", 0);
	}
	end_kernel(&w);
}

/* Births that are nearer are of one life. */
#define LIFE_NS UINT64_C(30000000)

/* One tid is born again and again, dies later, and has an event in each of its lives. */
static void make_lives(int fd, uint64_t count)
{
	const uint64_t births = count / 3;
	uint64_t from;
	struct marks_maker w;

	begin_kernel(&w, fd);
	from = w.time;
	for (uint64_t i = 0; i < 2 * births; i++) {
		turn_tasks(&w);
		w.time += LIFE_NS;
		if (i < births)
			event_newtask(&w.m, w.time, 400, 500, "again", 0);
		else
			event_free(&w.m, w.time, 500, "again");
	}
	page_end(&w.m, 0);
	maker_flush(&w.m, 0, BUFFER_TASKS, 0);
	w.time = from;
	page_begin(&w.m, w.time);
	for (uint64_t i = 0; i < births; i++) {
		turn_page(&w);
		w.time += LIFE_NS;
		event_number(&w.m, w.time, i % 2 ? 500 : 501, 1);
	}
	end_kernel(&w);
}

static void make_tasks(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_kernel(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		int32_t tid = (int32_t)(reversed(i / 3 + 1) >> 1);

		turn_page(&w);
		if (i % 3 == 0)
			event_newtask(&w.m, w.time, 500, tid, "task", 0);
		else if (i % 3 == 1)
			event_rename(&w.m, w.time, tid, "task", "renamed");
		else
			event_number(&w.m, w.time, tid, 1);
	}
	end_kernel(&w);
}

/* Marks of atrace that begin and do not end. */
static void make_atrace(int fd, uint64_t count)
{
	struct marks_maker w;
	char text[64];

	begin_kernel(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		turn_page(&w);
		snprintf(text, sizeof(text), "G|500|track|name %" PRIu64 "|%" PRIu64, i, i);
		event_print_mark(&w.m, w.time, 500, text);
	}
	end_kernel(&w);
}

#define SAMPLE_TYPE UINT64_C(0x187) /* IP, TID, TIME, CPU, PERIOD */

static void begin_samples(struct marks_maker *w, int fd)
{
	Traced__Capture__Sampler sampler = TRACED__CAPTURE__SAMPLER__INIT;

	marks_maker_begin(w, fd);
	sampler.event = (char *)"cpu-clock";
	sampler.hz = 997;
	sampler.clock = CLOCK_BOOTTIME;
	sampler.sample_type = SAMPLE_TYPE;
	assert_int_equal(stream_write_message(&w->m.writer, CHUNK_SAMPLER, &sampler.base), 0);
}

static void flush_samples(struct marks_maker *w)
{
	struct iovec iov = { w->chunk.data, w->chunk.len };

	if (w->chunk.len)
		assert_int_equal(stream_write_samples(&w->m.writer, 0, &iov, 1), 0);
	buf_clear(&w->chunk);
}

static void end_samples(struct marks_maker *w)
{
	flush_samples(w);
	marks_maker_end(w);
}

/* A record of perf with these 64-bit words, then pid, time and CPU. */
static void put_sampled(struct marks_maker *w, uint32_t type, uint16_t misc, const void *data,
			size_t len, uint32_t pid, bool id_last)
{
	const uint64_t time = w->time;
	const struct {
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, zero;
	} id = { pid, pid, time, 0, 0 };
	const uint16_t size = (uint16_t)(8 + len + (id_last ? sizeof(id) : 0));

	if (w->chunk.len > 200000)
		flush_samples(w);
	w->time += 100;
	buf_append(&w->chunk, &type, sizeof(type));
	buf_append(&w->chunk, &misc, sizeof(misc));
	buf_append(&w->chunk, &size, sizeof(size));
	buf_append(&w->chunk, data, len);
	if (id_last)
		buf_append(&w->chunk, &id, sizeof(id));
}

enum { PERF_EXIT = 4, PERF_FORK = 7, PERF_SAMPLE = 9, PERF_MMAP2 = 10 };

static void put_map(struct marks_maker *w, uint32_t pid, uint64_t start, const char *path)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, length, offset;
		uint8_t build_id[24];
		uint64_t prot;
		char path[16];
	} map = { pid, pid, start, 4096, 0, { 0 }, 0, "" };

	snprintf(map.path, sizeof(map.path), "%s", path);
	put_sampled(w, PERF_MMAP2, 2, &map, sizeof(map), pid, true);
}

static void put_sample(struct marks_maker *w, uint32_t pid, uint64_t ip)
{
	const struct {
		uint64_t ip;
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, zero;
		uint64_t period;
	} sample = { ip, pid, pid, w->time, 0, 0, 1003009 };

	put_sampled(w, PERF_SAMPLE, 2, &sample, sizeof(sample), pid, false);
}

/* A new mapping below all others, or above, and a sample there. */
static void make_mappings(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_samples(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = (UINT64_C(1) << 46) - (i / 2 + 1) * 8192;

		if (i % 2)
			put_sample(&w, PID, at + 16);
		else
			put_map(&w, PID, at, "/lib");
	}
	end_samples(&w);
}

/* A process with many mappings has many children, each of which maps something, too. */
static void make_forks(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_samples(&w, fd);
	for (uint64_t i = 0; i < count / 4; i++)
		put_map(&w, PID, (UINT64_C(1) << 40) + i * 8192, "/lib");
	put_sample(&w, PID, 16);
	for (uint64_t i = 0; i < count / 4; i++) {
		const uint32_t child = 1000 + (uint32_t)i;
		const struct {
			uint32_t pid, parent, tid, parent_tid;
			uint64_t time;
		} task = { child, PID, child, PID, w.time };

		put_sampled(&w, PERF_FORK, 0, &task, sizeof(task), child, true);
		put_map(&w, child, (UINT64_C(1) << 40) + i * 8192, "/lib");
		if (i >= 8)
			put_sampled(&w, PERF_EXIT, 0, &task, sizeof(task), child - 8, true);
	}
	end_samples(&w);
}

static void make_files(int fd, uint64_t count)
{
	struct marks_maker w;
	char path[16];

	begin_samples(&w, fd);
	for (uint64_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/%" PRIu32, (uint32_t)i / 2);
		if (i % 2)
			put_sample(&w, PID, 0x1000 + i / 2 % 4096);
		else
			put_map(&w, PID, 0x1000, path);
	}
	end_samples(&w);
}

/* Each thread slips off the old hash: tid * 2^32 / golden ratio / 2^8 + pid. */
static void merge_threads(int fd, uint64_t count)
{
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	fputs("[", f);
	for (uint32_t i = 1; i <= count; i++)
		fprintf(f,
			"%s{\"ph\":\"B\",\"name\":\"open\",\"ts\":%" PRIu32 ",\"pid\":%" PRId32
			",\"tid\":%" PRIu32 "}\n",
			i == 1 ? "" : ",", 200000000 + i,
			(int32_t) - (i * UINT32_C(0x9e3779b9) >> 8), i);
	fputs("]", f);
	assert_int_equal(fclose(f), 0);
}

/* Tasks that the recording knows get their names with their marks: the last number first. */
static void merge_tasks(int fd, uint64_t count)
{
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	fputs("[", f);
	for (uint32_t i = (uint32_t)count / 3; i; i--)
		fprintf(f,
			"%s{\"ph\":\"i\",\"name\":\"mark\",\"ts\":%" PRIu64 ",\"pid\":%" PRIu32
			",\"tid\":%" PRIu32 "}\n",
			i == count / 3 ? "" : ",", UINT64_C(4000000000000) - i, i + 1000, i + 1000);
	fputs("]", f);
	assert_int_equal(fclose(f), 0);
}

static void make_silent_tasks(int fd, uint64_t count)
{
	struct marks_maker w;

	begin_kernel(&w, fd);
	for (uint64_t i = 1; i <= count / 3; i++) {
		turn_tasks(&w);
		event_newtask(&w.m, w.time, 400, (int32_t)i + 1000, "silent", 0);
	}
	page_end(&w.m, 0);
	maker_flush(&w.m, 0, BUFFER_TASKS, 0);
	marks_maker_end(&w);
}

/* Frames that call each other, and an event with each. */
static void merge_frames(int fd, uint64_t count)
{
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	fputs("{\"stackFrames\":{", f);
	for (uint32_t i = 0; i < count / 2; i++)
		fprintf(f,
			"%s\"%" PRIu32 "\":{\"name\":\"f\",\"category\":\"c\",\"parent\":%" PRIu32
			"}\n",
			i ? "," : "", i, (i + 1) % (uint32_t)(count / 2));
	fputs("},\"traceEvents\":[", f);
	for (uint32_t i = 0; i < count / 2; i++)
		fprintf(f,
			"%s{\"ph\":\"i\",\"name\":\"mark\",\"ts\":%" PRIu32
			",\"pid\":1,\"tid\":1,\"sf\":%" PRIu32 "}\n",
			i ? "," : "", 200000000 + i, i);
	fputs("]}", f);
	assert_int_equal(fclose(f), 0);
}

static void make_nothing(int fd, uint64_t count _unused_)
{
	struct marks_maker w;

	marks_maker_begin(&w, fd);
	marks_maker_end(&w);
}

const struct hostile_shape hostile_shapes[] = {
	{ "open", make_open, NULL, false },
	{ "ids", make_ids, NULL, false },
	{ "steps", make_steps, NULL, false },
	{ "names", make_names, NULL, false },
	{ "labels", make_labels, NULL, false },
	{ "epochs", make_epochs, NULL, false },
	{ "flows", make_flows, NULL, false },
	{ "objects", make_objects, NULL, false },
	{ "links", make_links, NULL, false },
	{ "contexts", make_contexts, NULL, false },
	{ "counters", make_counters, NULL, false },
	{ "nesting", make_nesting, NULL, false },
	{ "enclosing", make_enclosing, NULL, false },
	{ "frames", make_frames, NULL, false },
	{ "deep", make_deep, NULL, false },
	{ "syncs", make_syncs, NULL, false },
	{ "threads", make_threads, NULL, false },
	{ "rings", make_rings, NULL, false },
	{ "births", make_births, NULL, false },
	{ "lives", make_lives, NULL, false },
	{ "tasks", make_tasks, NULL, false },
	{ "atrace", make_atrace, NULL, false },
	{ "mappings", make_mappings, NULL, true },
	{ "forks", make_forks, NULL, true },
	{ "files", make_files, NULL, true },
	{ "merged_threads", make_nothing, merge_threads, false },
	{ "merged_tasks", make_silent_tasks, merge_tasks, false },
	{ "merged_frames", make_nothing, merge_frames, false },
	{ NULL, NULL, NULL, false },
};

const struct hostile_shape hostile_cpus = { "cpus", make_cpus, NULL, false };
