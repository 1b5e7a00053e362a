/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks as a user event. Stand-ins for the kernel's calls check what it checks
 * (kernel/trace/trace_events_user.c); few kernels have user events.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "traced/traced.h"

#define INDEX 7
#define FIELDS 24 /* bytes before the texts */

static struct {
	int file; /* the descriptor that the library opened */
	unsigned long request;
	char described[512];
	uint64_t enable_addr;
	uint32_t size;
	uint8_t enable_bit, enable_size;
	unsigned writes;
	char last[4096];
	size_t len;
} kernel;

int __wrap_open64(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
ssize_t __wrap_writev(int fd, const struct iovec *parts, int count);

int __wrap_open64(const char *path, int flags, ...)
{
	if (strcmp(path, "/sys/kernel/tracing/user_events_data") == 0)
		return memfd_create("user_events_data", MFD_CLOEXEC);
	return __real_open64(path, flags, 0600);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	char *reg;
	uint64_t text;

	va_start(args, request);
	reg = va_arg(args, char *);
	va_end(args);
	kernel.file = fd;
	kernel.request = request;
	memcpy(&kernel.size, reg, 4);
	kernel.enable_bit = (uint8_t)reg[4];
	kernel.enable_size = (uint8_t)reg[5];
	memcpy(&kernel.enable_addr, reg + 8, 8);
	memcpy(&text, reg + 16, 8);
	snprintf(kernel.described, sizeof(kernel.described), "%s", (char *)(uintptr_t)text);
	memcpy(reg + 24, &(uint32_t){ INDEX }, 4);
	return 0;
}

ssize_t __wrap_writev(int fd, const struct iovec *parts, int count)
{
	assert_int_equal(fd, kernel.file);
	kernel.writes++;
	kernel.len = 0;
	for (int i = 0; i < count; i++) {
		assert_true(kernel.len + parts[i].iov_len <= sizeof(kernel.last));
		memcpy(kernel.last + kernel.len, parts[i].iov_base, parts[i].iov_len);
		kernel.len += parts[i].iov_len;
	}
	errno = EBADF;
	return -1;
}

/* A __rel_loc text of the last event, found and checked as user_event_validate() does. */
static const char *text_at(size_t field)
{
	const char *event = kernel.last + 4;
	size_t len = kernel.len - 4, at, size;
	uint32_t loc;

	memcpy(&loc, event + field, 4);
	at = field + 4 + (loc & 0xffff);
	size = loc >> 16;
	assert_true(size > 0 && at >= FIELDS && at + size <= len);
	assert_int_equal(event[at + size - 1], 0);
	assert_int_equal(strlen(event + at), size - 1);
	return event + at;
}

static void assert_event(const char *phase, const char *category, const char *name,
			 const char *args)
{
	uint32_t index;

	memcpy(&index, kernel.last, 4);
	assert_int_equal(index, INDEX);
	assert_string_equal(kernel.last + 4, phase);
	assert_string_equal(text_at(4), category);
	assert_string_equal(text_at(8), name);
	assert_string_equal(text_at(12), args);
}

static uint64_t last_duration(void)
{
	uint64_t duration;

	memcpy(&duration, kernel.last + 4 + 16, 8);
	return duration;
}

static int listen(void **state _unused_)
{
	traced_listeners = 1;
	kernel.writes = 0;
	return 0;
}

static int stop_listening(void **state _unused_)
{
	traced_listeners = 0;
	return 0;
}

static void the_event_is_registered(void **state _unused_)
{
	assert_int_equal(kernel.request, _IOWR('*', 0, void *));
	assert_int_equal(kernel.size, 28);
	assert_int_equal(kernel.enable_bit, 0);
	assert_int_equal(kernel.enable_size, 4);
	assert_int_equal(kernel.enable_addr, (uintptr_t)&traced_listeners);
	assert_true(kernel.file >= 256);
	assert_int_equal(fcntl(kernel.file, F_GETFD), FD_CLOEXEC);
	assert_string_equal(kernel.described,
			    "traced_mark char[4] phase; __rel_loc char[] category; "
			    "__rel_loc char[] name; __rel_loc char[] args; u64 duration");
}

static void nobody_listens(void **state _unused_)
{
	assert_false(traced_enabled());
	TRACED_BEGIN("app", "work");
	TRACED_END();
	assert_int_equal(kernel.writes, 0);
}

static void each_mark_is_an_event(void **state _unused_)
{
	assert_true(traced_enabled());
	TRACED_BEGIN("app", "work");
	assert_event("B", "app", "work", "");
	TRACED_END();
	assert_event("E", "", "", "");
	TRACED_INSTANT("app", "hello", TRACED_SCOPE_THREAD, TRACED_INT("n", -1),
		       TRACED_STRING("s", "two words"), TRACED_DOUBLE("d", 0.5),
		       TRACED_BOOL("b", 1), TRACED_UINT("u", 7), TRACED_POINTER("p", 0x10));
	assert_event("i", "app", "hello", "n=-1 s=two words d=0.5 b=true u=7 p=0x10");
	assert_int_equal(last_duration(), 0);
	TRACED_FLOW_START("app", "hand over", TRACED_ID(3));
	assert_event("s", "app", "hand over", "id=0x3");
	TRACED_COMPLETE("app", "whole", traced_now() - 1000000);
	assert_event("X", "app", "whole", "");
	assert_true(last_duration() >= 1000000 && last_duration() < 10000000000);
	assert_int_equal(kernel.writes, 5);
}

static void long_texts_are_cut(void **state _unused_)
{
	char text[5000];
	struct traced_mark mark = { .category = text, .name = text };
	struct traced_arg arg = traced_arg_named(text, traced_arg_int(NULL, 1));

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	mark.args = &arg;
	mark.arg_count = 1;
	traced_write('i', &mark);
	assert_int_equal(strlen(text_at(4)), 255);
	assert_int_equal(strlen(text_at(8)), 255);
	assert_int_equal(strlen(text_at(12)), 1023);
}

static void errno_stays(void **state _unused_)
{
	errno = EDOM;
	TRACED_MARK("app", "moment");
	assert_int_equal(errno, EDOM);
	assert_int_equal(kernel.writes, 1);
}

/* A daemon closes unknown descriptors, and the number becomes another file's. */
static void another_file_gets_nothing(void **state _unused_)
{
	int other = memfd_create("other", MFD_CLOEXEC);

	assert_int_equal(dup2(other, kernel.file), kernel.file);
	TRACED_MARK("app", "moment");
	close(kernel.file);
	TRACED_MARK("app", "moment");
	assert_int_equal(kernel.writes, 0);
	close(other);
}

int main(int argc _unused_, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_event_is_registered),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test_setup_teardown(each_mark_is_an_event, listen, stop_listening),
		cmocka_unit_test_setup_teardown(long_texts_are_cut, listen, stop_listening),
		cmocka_unit_test_setup_teardown(errno_stays, listen, stop_listening),
		cmocka_unit_test_setup_teardown(another_file_gets_nothing, listen, stop_listening),
	};

	/* The library registers the event before main(). */
	if (!getenv("TRACED_USER_EVENTS")) {
		assert_int_equal(kernel.request, 0);
		setenv("TRACED_USER_EVENTS", "1", 1);
		setenv("TRACED_MARKS", "/nonexistent", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
