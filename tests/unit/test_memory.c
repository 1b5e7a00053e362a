/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An export's memory is bounded, for events of any number of CPUs. */
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/formats.h"
#include "make_formats.h"
#include "make_many.h"

#define CPUS 512
#define MEMORY_MAX_KIB (64 << 10)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Exits with 0 if all events came through. */
static void export_in_child(int capture, const struct export_options *o, uint64_t events)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	int out = open("/dev/null", O_WRONLY | O_CLOEXEC);

#ifdef M_PERTURB
	/* Meson's tests set it: it touches all memory, used or not. */
	mallopt(M_PERTURB, 0);
#endif
	if (export_stream(capture, out, o, &result, &err) < 0)
		fprintf(stderr, "%s: %s\n", o->format, err.message);
	_exit(result.events != events);
}

/* In a process of its own, because the kernel reports the peak of a whole process. */
static long peak_kib(int capture, const struct export_options *o, uint64_t events)
{
	struct rusage usage;
	pid_t child;
	int status;

	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		export_in_child(capture, o, events);
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return usage.ru_maxrss;
}

static void check_by(void (*header)(Traced__Capture__Header *h), const char *kind, uint64_t each,
		     uint32_t subbuf_size, const struct export_options *all, size_t count)
{
	_cleanup_(maker_deinit) struct maker m;

	if (SANITIZED)
		skip();
	maker_init(&m, 8, false, subbuf_size);
	m.header = header;
	many_put(&m, many_find(kind), CPUS, each * CPUS);
	for (size_t i = 0; i < count; i++) {
		long peak = peak_kib(m.fd, &all[i], each * CPUS);

		if (peak > MEMORY_MAX_KIB)
			fail_msg("%s to %s, %zu: %ld KiB", kind, all[i].format, i, peak);
	}
}

static void check(const char *kind, uint64_t each, uint32_t subbuf_size,
		  const struct export_options *all, size_t count)
{
	check_by(NULL, kind, each, subbuf_size, all, count);
}

static void many_small_events(void **state _unused_)
{
	static const struct export_options all[] = {
		{ .format = "pftrace" },
		{ .format = "pftrace", .perfetto.legacy_generic = true },
		{ .format = "pftrace.gz" },
		{ .format = "txt", .threads = 2 },
	};

	check("numbers", 2400, 4096, all, ARRAY_SIZE(all));
}

/* In each phase another part of a CPU's state grows. */
static void one_load_after_another(void **state _unused_)
{
	static const struct export_options all[] = {
		{ .format = "pftrace" },
		{ .format = "pftrace", .perfetto.plain_sched = true },
		{ .format = "pftrace", .perfetto.compression = PERFETTO_DEFLATE },
		{ .format = "pftrace", .rotate.bytes = 8U << 20 },
		{ .format = "txt", .threads = 2 },
		{ .format = "json", .threads = 2 },
		{ .format = "json", .threads = 8 },
		{ .format = "ctf" },
	};

	check("phases", 1800, 4096, all, ARRAY_SIZE(all));
}

/*
 * Machines with pages of 64 KiB, or recordings with larger sub-buffers: windows are parts of them.
 */
static void large_pages(void **state _unused_)
{
	static const struct export_options all[] = {
		{ .format = "pftrace" },
		{ .format = "txt", .threads = 2 },
		{ .format = "json", .threads = 8 },
		{ .format = "ctf" },
	};

	check("sched", 2500, 64 << 10, all, ARRAY_SIZE(all));
	check("phases", 1800, 64 << 10, all, ARRAY_SIZE(all));
	check("sched", 2500, 256 << 10, all, ARRAY_SIZE(all));
}

static void by_function(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function";
}

/* Most of the JSON has its place outside of the text: the longest that is still written. */
static void functions(void **state _unused_)
{
	static const struct export_options all[] = {
		{ .format = "json", .threads = 1 },
		{ .format = "json", .threads = 2 },
		{ .format = "json", .threads = 8 },
	};

	check_by(by_function, "hits", 6000, 4096, all, ARRAY_SIZE(all));
}

/* Fewer of them fill a batch than of small ones. */
static void long_events(void **state _unused_)
{
	static const struct export_options all[] = {
		{ .format = "txt", .threads = 2 },
		{ .format = "txt", .threads = 8 },
		{ .format = "json", .threads = 2 },
		{ .format = "json", .threads = 8 },
	};

	check("marks", 80, 4096, all, ARRAY_SIZE(all));
}

static void by_function_graph(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function_graph";
}

#define DEPTH 4096 /* its line is as long as a page */
#define ENTRIES 100
#define DEEP_PAGES 500

/* Some records become many times their size. */
static void deep_functions(void **state _unused_)
{
	static const unsigned threads[] = { 1, 2, 8 };
	_cleanup_(maker_deinit) struct maker m;

	if (SANITIZED)
		skip();
	maker_init(&m, 8, false, 4096);
	m.header = by_function_graph;
	maker_head(&m);
	maker_graph_formats(&m);
	for (uint64_t i = 0; i < DEEP_PAGES * ENTRIES; i++) {
		if (i % ENTRIES == 0)
			page_begin(&m, 1000 + i);
		event_graph_entry(&m, 1000 + i, 1, i, DEPTH);
		if (i % ENTRIES < ENTRIES - 1)
			continue;
		page_flush(&m, 0, 0);
	}
	maker_end(&m);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		const struct export_options o = { .format = "txt", .threads = threads[i] };
		long peak = peak_kib(m.fd, &o, DEEP_PAGES * ENTRIES);

		if (peak > MEMORY_MAX_KIB)
			fail_msg("%u threads: %ld KiB", o.threads, peak);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_small_events), cmocka_unit_test(one_load_after_another),
		cmocka_unit_test(large_pages),	     cmocka_unit_test(functions),
		cmocka_unit_test(long_events),	     cmocka_unit_test(deep_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
