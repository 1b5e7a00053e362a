/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording of a machine of the other byte order (s390x), as JSON and as a Perfetto trace,
 * against the kernel's own text. test_recorded.c compares the text export with it.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "fixture.h"
#include "proto/perfetto/trace.pb-c.h"

#define PB(name) Perfetto__Protos__##name
#define CAPTURE TEST_DATA "/6.12.107-s390x/mixed.traced.gz"
#define TEXT TEST_DATA "/6.12.107-s390x/mixed.txt.gz"
#define EVENTS_MAX 100000

struct seen {
	uint64_t usecs;
	const char *details; /* of sched_switch; NULL: another event */
	int32_t next_pid;
	const char *next_comm;
};

/* The next line after the head, terminated in place; NULL: there is none. */
static char *next_event(char **text)
{
	while (*text && **text) {
		char *line = *text, *end = strchr(line, '\n');

		*text = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		if (*line != '#')
			return line;
	}
	return NULL;
}

/* "SECONDS.MICROS: EVENT: details" of a line. */
static char *time_of(char *line)
{
	char *p = strstr(line, " [0");

	assert_non_null(p);
	p = strstr(p, "] ");
	assert_non_null(p);
	p = strchr(p + 2, ' ');
	assert_non_null(p);
	return p + strspn(p, " ");
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Readers of JSON want calls named like events, and know fewer task states. */
static bool same_event(char *kernel, char *ours)
{
	char *a = strstr(kernel, ": "), *b = strstr(ours, ": "), *state;

	if (!a || !b || a - kernel != b - ours || strncmp(kernel, ours, (size_t)(a - kernel)) != 0)
		return false;
	a += 2;
	b += 2;
	if (begins(b, "sys_enter_") || begins(b, "sys_exit_"))
		b = strstr(b, ": ") + 2;
	if (begins(a, "sched_switch: ") && begins(b, "sched_switch: ")) {
		state = strstr(a, "prev_state=I");
		if (state)
			state[strlen("prev_state=")] = 'S';
	}
	return !strcmp(a, b);
}

static void the_json_equals_the_kernels_text(void **state _unused_)
{
	const struct export_options options = { .format = "json", .raw_addresses = true };
	_cleanup_buf_ struct buf text = BUF_INIT, file = BUF_INIT;
	_cleanup_free_ char *own = NULL;
	char *kernel, *ours, *a, *b;
	size_t events = 0;
	json_t *json;

	fixture_read_gz(TEXT, &text);
	fixture_export(CAPTURE, &options, &file);
	json = json_loadb(file.data, file.len, 0, NULL);
	assert_non_null(json);
	own = strdup(json_string_value(json_object_get(json, "systemTraceEvents")));
	json_decref(json);
	kernel = buf_string(&text);
	ours = own;
	for (;; events++) {
		a = next_event(&kernel);
		b = next_event(&ours);
		if (!a || !b)
			break;
		a = time_of(a);
		b = time_of(b);
		if (!same_event(a, b))
			fail_msg("the kernel: %s\nours:       %s", a, b);
	}
	assert_null(a);
	assert_null(b);
	assert_true(events > 20000);
}

static int by_time(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return x->usecs < y->usecs ? -1 : x->usecs > y->usecs;
}

static size_t read_text(struct buf *text, struct seen *seen)
{
	char *rest = buf_string(text), *line;
	size_t n = 0;

	while ((line = next_event(&rest))) {
		unsigned long long seconds, micros;

		line = time_of(line);
		assert_int_equal(sscanf(line, "%llu.%llu:", &seconds, &micros), 2);
		assert_true(n < EVENTS_MAX);
		seen[n] = (struct seen){ .usecs = seconds * 1000000 + micros };
		line = strstr(line, ": ") + 2;
		if (begins(line, "sched_switch: "))
			seen[n].details = line;
		n++;
	}
	return n;
}

static size_t read_bundles(const PB(Trace) * trace, struct seen *seen)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->n_packet; i++) {
		const PB(TracePacket) *p = trace->packet[i];

		if (p->data_case != PERFETTO__PROTOS__TRACE_PACKET__DATA_FTRACE_EVENTS)
			continue;
		for (size_t k = 0; k < p->ftrace_events->n_event; k++) {
			const PB(FtraceEvent) *e = p->ftrace_events->event[k];

			assert_true(n < EVENTS_MAX);
			seen[n] = (struct seen){ .usecs = (e->timestamp + 500) / 1000 };
			if (e->event_case == PERFETTO__PROTOS__FTRACE_EVENT__EVENT_SCHED_SWITCH) {
				seen[n].next_pid = e->sched_switch->next_pid;
				seen[n].next_comm = e->sched_switch->next_comm;
			}
			n++;
		}
	}
	return n;
}

/* Each switch of one has an equal in the same microsecond of the other. */
static bool has_switch(const struct seen *of, size_t count, const struct seen *wanted)
{
	char ending[128];

	snprintf(ending, sizeof(ending), "next_comm=%s next_pid=%d ", wanted->next_comm,
		 wanted->next_pid);
	for (size_t i = 0; i < count && of[i].usecs == wanted->usecs; i++)
		if (of[i].details && strstr(of[i].details, ending))
			return true;
	return false;
}

static void the_perfetto_trace_equals_the_kernels_text(void **state _unused_)
{
	const struct export_options options = { .format = "pftrace", .perfetto.plain_sched = true };
	_cleanup_free_ struct seen *kernel = calloc(EVENTS_MAX, sizeof(*kernel));
	_cleanup_free_ struct seen *ours = calloc(EVENTS_MAX, sizeof(*ours));
	_cleanup_buf_ struct buf text = BUF_INIT, file = BUF_INIT;
	size_t count, first = 0, switches = 0;
	PB(Trace) * trace;

	fixture_read_gz(TEXT, &text);
	fixture_export(CAPTURE, &options, &file);
	trace = perfetto__protos__trace__unpack(NULL, file.len, (uint8_t *)file.data);
	assert_true(kernel && ours && trace);
	count = read_text(&text, kernel);
	assert_true(count > 20000);
	assert_int_equal(read_bundles(trace, ours), count);
	qsort(kernel, count, sizeof(*kernel), by_time);
	qsort(ours, count, sizeof(*ours), by_time);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(kernel[i].usecs, ours[i].usecs);
		if (kernel[first].usecs != kernel[i].usecs)
			first = i;
		if (!ours[i].next_comm)
			continue;
		switches++;
		if (!has_switch(kernel + first, count - first, &ours[i]))
			fail_msg("no switch to %s, %d at %llu us", ours[i].next_comm,
				 ours[i].next_pid, (unsigned long long)ours[i].usecs);
	}
	assert_true(switches > 500);
	perfetto__protos__trace__free_unpacked(trace, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_json_equals_the_kernels_text),
		cmocka_unit_test(the_perfetto_trace_equals_the_kernels_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
