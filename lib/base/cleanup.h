/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scope-bound ownership as in systemd: _cleanup_(f) passes a variable to f when it goes out of
 * scope. TAKE_PTR and TAKE_FD move ownership out of it.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_ __attribute__((unused))
#define _hot_ __attribute__((hot))
#define _cold_ __attribute__((cold))
#define _noinline_ __attribute__((noinline))
#define _always_inline_ __attribute__((always_inline))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CONCAT_(a, b) a##b
#define CONCAT(a, b) CONCAT_(a, b)
/* Each expansion has its own variable names, so that uses nest without shadowing. */
#define CHOOSE_(a, op, b, x, y)                                                                    \
	({                                                                                         \
		__typeof__(a) x = (a);                                                             \
		__typeof__(b) y = (b);                                                             \
		x op y ? x : y;                                                                    \
	})
#define MIN(a, b) CHOOSE_(a, <, b, CONCAT(_x, __COUNTER__), CONCAT(_y, __COUNTER__))
#define MAX(a, b) CHOOSE_(a, >, b, CONCAT(_x, __COUNTER__), CONCAT(_y, __COUNTER__))
#define container_of(ptr, type, member)                                                            \
	((type *)(void *)((char *)(ptr) - __builtin_offsetof(type, member)))

#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) _taken = (p);                                                        \
		(p) = NULL;                                                                        \
		_taken;                                                                            \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int _taken = (fd);                                                                 \
		(fd) = -EBADF;                                                                     \
		_taken;                                                                            \
	})

/* Defines void func_p(type *p) for _cleanup_. func must accept NULL. */
#define DEFINE_CLEANUP_FUNC(type, func)                                                            \
	static inline void func##p(type *p)                                                        \
	{                                                                                          \
		if (*p)                                                                            \
			func(*p);                                                                  \
	}                                                                                          \
	struct cleanup_wants_a_semicolon

static inline void freep(void *p)
{
	free(*(void **)p);
}

/* Closes fd if valid; keeps errno. Always returns -EBADF, to store in its place. */
static inline int close_fd(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return -EBADF;
}

static inline void close_fdp(int *fd)
{
	close_fd(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(close_fdp)
#define _cleanup_fclose_ _cleanup_(fclosep)
