/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes every kind of mark. docs/marks.md describes them, and tests look for them in recordings.
 *
 * 	cc example.c -ltraced -o example
 * 	tracectl record -o out.json -- ./example
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <traced/traced.h>

TRACED_FRAME(frame_main, "example", "main", NULL);
TRACED_FRAME(frame_work, "example", "work", &frame_main);

static void pause_ms(long ms)
{
	const struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

static void slices(void)
{
	static const uint64_t addresses[] = { 0x401000, 0x402000 };
	struct traced_mark m;
	uint64_t start;

	TRACED_SCOPE("example", "scope", TRACED_INT("int", -42), TRACED_UINT("uint", UINT64_MAX),
		     TRACED_DOUBLE("double", 0.25), TRACED_BOOL("bool", 1),
		     TRACED_STRING("string", "a \"quoted\" \xc3\xa4 \xff byte\n"),
		     TRACED_POINTER("pointer", 0xdeadbeef),
		     TRACED_JSON("json", "{\"list\": [1, 2.5, null], \"deep\": {\"yes\": true}}"));
	TRACED_BEGIN("example,more", "begin", TRACED_INT("first", 1));
	pause_ms(1);
	TRACED_END(TRACED_INT("first", 4), TRACED_INT("second", 2));

	start = traced_now();
	pause_ms(1);
	TRACED_COMPLETE("example", "complete", start, TRACED_STRING("why", "to save half"));

	/* Marks with fields that no macro has. */
	memset(&m, 0, sizeof(m));
	m.category = "example";
	m.name = "described";
	m.cname = "good";
	m.stack.frame = &frame_work;
	m.end_stack.addresses = addresses;
	m.end_stack.count = 2;
	m.start = start;
	traced_write('X', &m);
}

/* A mark written after the event, with names that are not constants. */
static void late(uint64_t when)
{
	char name[32], text[] = { 'n', 'o', '\0', 'e', 'n', 'd' };
	struct traced_arg args[3];
	struct traced_mark m;

	snprintf(name, sizeof(name), "named %d", 1);
	args[0] = traced_arg_named(name, traced_arg_int(NULL, INT64_MIN));
	args[1] = traced_arg_named("bytes",
				   traced_arg_text(NULL, TRACED_TYPE_STRING, text, sizeof(text)));
	args[2] = traced_arg_named("null", traced_arg_text(NULL, TRACED_TYPE_STRING, NULL, 0));
	memset(&m, 0, sizeof(m));
	m.category = "example";
	m.name = "late";
	m.flags = TRACED_SCOPE_PROCESS;
	m.time = when;
	m.args = args;
	m.arg_count = 3;
	traced_write('i', &m);
}

static void moments(void)
{
	uint64_t before = traced_now();

	TRACED_INSTANT("example", "thread instant", TRACED_SCOPE_THREAD);
	TRACED_INSTANT("example", "process instant", TRACED_SCOPE_PROCESS);
	TRACED_INSTANT("example", "global instant", TRACED_SCOPE_GLOBAL);
	late(before);
	TRACED_MARK("example", "mark", TRACED_INT("n", 1));
	TRACED_SAMPLE("example", "sample", &frame_work);
	TRACED_COUNTER("example", "cats", TRACED_INT("cats", 7));
	TRACED_COUNTER("example", "pets", TRACED_INT("cats", 7), TRACED_DOUBLE("dogs", 2.5));
	TRACED_COUNTER("example", "odd", TRACED_DOUBLE("good", 1.5), TRACED_DOUBLE("bad", NAN));
	TRACED_COUNTER_OF("example", "queue", TRACED_ID(3), TRACED_UINT("length", 12));
}

static void operations(void)
{
	struct traced_id scoped = TRACED_ID(0x100);

	scoped.scope = "example scope";
	TRACED_ASYNC_BEGIN("example", "request", TRACED_ID(0x100), TRACED_STRING("url", "/"));
	TRACED_ASYNC_BEGIN("example", "headers", TRACED_ID(0x100));
	TRACED_ASYNC_INSTANT("example", "cache", TRACED_ID(0x100));
	TRACED_ASYNC_END("example", "headers", TRACED_ID(0x100), TRACED_INT("code", 200));
	TRACED_ASYNC_END("example", "request", TRACED_ID(0x100));
	TRACED_ASYNC_BEGIN("example", "scoped", scoped);
	TRACED_ASYNC_END("example", "scoped", scoped);
	TRACED_ASYNC_BEGIN("example", "local", TRACED_LOCAL(0x200));
	TRACED_ASYNC_END("example", "local", TRACED_LOCAL(0x200));
	TRACED_ASYNC_BEGIN("example", "global", TRACED_GLOBAL(0x300));
	TRACED_LINK("example", "link", TRACED_GLOBAL(0x300), TRACED_GLOBAL(0x301));
	TRACED_ASYNC_END("example", "global", TRACED_GLOBAL(0x301));
}

static void *consumer(void *unused)
{
	TRACED_THREAD_NAME("consumer");
	TRACED_THREAD_SORT_INDEX(2);
	TRACED_BEGIN("example", "step");
	TRACED_FLOW_STEP("example", "flow", TRACED_ID(0x400));
	TRACED_END();
	TRACED_BEGIN("example", "take");
	TRACED_FLOW_END_HERE("example", "flow", TRACED_ID(0x400));
	TRACED_END();
	TRACED_FLOW_END("example", "next", TRACED_ID(0x401));
	TRACED_BEGIN("example", "after");
	TRACED_END();
	return unused;
}

static void flows(void)
{
	pthread_t thread;

	TRACED_BEGIN("example", "give");
	TRACED_FLOW_START("example", "flow", TRACED_ID(0x400));
	TRACED_FLOW_START("example", "next", TRACED_ID(0x401));
	TRACED_END();
	if (pthread_create(&thread, NULL, consumer, NULL) == 0)
		pthread_join(thread, NULL);
}

static void objects(void)
{
	struct traced_mark m;

	TRACED_OBJECT_NEW("example", "Object", TRACED_ID(0x1000));
	TRACED_OBJECT_SNAPSHOT("example", "Object", TRACED_ID(0x1000), TRACED_INT("size", 1),
			       TRACED_REF("self", 0x1000));
	TRACED_OBJECT_SNAPSHOT_AS("example", "Special", TRACED_ID(0x1000), "Object",
				  TRACED_INT("size", 2));
	memset(&m, 0, sizeof(m));
	m.category = "example";
	m.name = "Object";
	m.id = TRACED_LOCAL(0);
	m.id.text = "by name";
	m.snapshot_category = "other";
	traced_write('O', &m);
	TRACED_CONTEXT_ENTER("example", "Object", TRACED_ID(0x1000));
	TRACED_INSTANT("example", "in context", TRACED_SCOPE_THREAD);
	TRACED_CONTEXT_LEAVE("example", "Object", TRACED_ID(0x1000));
	TRACED_OBJECT_DELETE("example", "Object", TRACED_ID(0x1000));
	TRACED_MEMORY_GLOBAL("example", "dump", TRACED_ID(0x500),
			     TRACED_JSON("dumps", "{\"level_of_detail\": \"light\"}"));
	TRACED_MEMORY_PROCESS("example", "dump", TRACED_ID(0x500),
			      TRACED_JSON("dumps", "{\"process_totals\": "
						   "{\"resident_set_bytes\": \"1f4000\"}}"));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	unsigned counts = 0;
	uint64_t asked;

	for (int i = 0; i < rounds; i++) {
		TRACED_PROCESS_NAME("example");
		TRACED_PROCESS_LABELS("shows everything");
		TRACED_PROCESS_SORT_INDEX(-5);
		TRACED_THREAD_NAME("main thread");
		slices();
		moments();
		operations();
		flows();
		objects();
		counts = traced_thread_counts(TRACED_WITH_THREAD_CLOCK | TRACED_WITH_INSTRUCTIONS);
		TRACED_BEGIN("example", "counted");
		TRACED_END();
		traced_thread_counts(0);
		TRACED_SYNC_RECEIVED("example-received");
		asked = traced_now();
		TRACED_SYNC_ISSUED("example-issued", asked);
	}
	printf("recorded: %s, thread clock: %s, instructions: %s, dropped: %llu\n",
	       traced_enabled() ? "yes" : "no", counts & TRACED_WITH_THREAD_CLOCK ? "yes" : "no",
	       counts & TRACED_WITH_INSTRUCTIONS ? "yes" : "no",
	       (unsigned long long)traced_dropped());
	return 0;
}
