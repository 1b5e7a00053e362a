/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library for LD_PRELOAD that lets one call of the C library fail. FAULT_STATE is a file that all
 * processes of a run share (struct fault_state): it counts each process's calls. FAULT is "PROCESS
 * CALL N ERRNO": the Nth such call of that process fails; with "N+" all from there on. A negative
 * ERRNO is a signal that kills the process before the call. Without FAULT the calls are only
 * counted, which shows what can fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault.h"

static struct fault_state *state;
static enum fault_process process;
static bool armed, from_there_on;
static enum fault_call target;
static uint32_t nth;
static int code;
static uintptr_t program_start;
static size_t program_size;
/* Calls of this library itself do not count. */
static __thread bool inside;

static int index_of(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* argv[0] names the program; for children of traced argv[1] does. */
static enum fault_process find_process(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];

	if (argc > 1 && strcmp(argv[1], "--run-exporter") == 0)
		return FAULT_exporter;
	if (strcmp(name, "tracectl") == 0)
		return FAULT_tracectl;
	return strcmp(name, "traced") == 0 ? FAULT_traced : FAULT_PROCESSES;
}

static void arm(const char *text)
{
	char who[16], what[32], when[16];
	int p, c;

	if (sscanf(text, "%15s %31s %15s %d", who, what, when, &code) != 4)
		return;
	p = index_of(fault_processes, FAULT_PROCESSES, who);
	c = index_of(fault_calls, FAULT_CALLS, what);
	if (p < 0 || c < 0 || (enum fault_process)p != process)
		return;
	target = (enum fault_call)c;
	nth = (uint32_t)strtoul(when, NULL, 10);
	from_there_on = strchr(when, '+') != NULL;
	armed = true;
}

/* The first one is the program. */
static int find_program(struct dl_phdr_info *info, size_t size, void *userdata)
{
	(void)size;
	(void)userdata;
	program_start = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			program_size = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	return 1;
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	const char *path = getenv("FAULT_STATE"), *what = getenv("FAULT");
	int fd;

	inside = true;
	dl_iterate_phdr(find_program, NULL);
	process = find_process(argc, argv);
	fd = path && process < FAULT_PROCESSES ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd >= 0) {
		state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (state == MAP_FAILED)
			state = NULL;
		close(fd);
		if (what)
			arm(what);
	}
	inside = false;
}

static bool fails(enum fault_call call)
{
	uint32_t n;

	if (!state || inside)
		return false;
	n = 1 + __atomic_fetch_add(&state->counts[process][call], 1, __ATOMIC_RELAXED);
	if (!armed || call != target || n < nth || (n > nth && !from_there_on))
		return false;
	__atomic_store_n(&state->failed, 1, __ATOMIC_RELAXED);
	if (code < 0)
		kill(getpid(), -code);
	errno = code;
	return true;
}

/* Descriptors without a file (eventfd) can't fail; threads wake each other through them. */
static bool fails_on(enum fault_call call, int fd)
{
	struct stat64 st;
	bool was = inside, is_file;

	inside = true;
	is_file = fstat64(fd, &st) < 0 || (st.st_mode & S_IFMT);
	inside = was;
	return is_file && fails(call);
}

/*
 * Memory: dlsym() itself allocates, so these use the C library's other names. Only the program's
 * own requests fail: not all libraries survive a failure.
 */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

#define OUR_MEMORY_FAILS()                                                                         \
	((uintptr_t)__builtin_return_address(0) - program_start < program_size &&                  \
	 fails(FAULT_malloc))

void *malloc(size_t size)
{
	return OUR_MEMORY_FAILS() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return OUR_MEMORY_FAILS() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return OUR_MEMORY_FAILS() ? NULL : __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (OUR_MEMORY_FAILS() || __builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return __libc_realloc(p, bytes);
}

char *strndup(const char *s, size_t max)
{
	size_t len = strnlen(s, max);
	char *copy = OUR_MEMORY_FAILS() ? NULL : __libc_malloc(len + 1);

	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

char *strdup(const char *s)
{
	size_t size = strlen(s) + 1;
	char *copy = OUR_MEMORY_FAILS() ? NULL : __libc_malloc(size);

	return copy ? memcpy(copy, s, size) : NULL;
}

static void *next(void **cache, const char *name)
{
	if (!*cache) {
		bool was = inside;

		inside = true;
		*cache = dlsym(RTLD_NEXT, name);
		inside = was;
	}
	return *cache;
}

/* One wrapper: the call that it counts as, its result, its failure, its arguments. */
#define WRAP(call, type, failure, name, parameters, arguments)                                     \
	type name parameters;                                                                      \
	type name parameters                                                                       \
	{                                                                                          \
		static void *cache;                                                                \
		type(*real) parameters;                                                            \
                                                                                                   \
		if (fails(FAULT_##call))                                                           \
			return failure;                                                            \
		real = (type(*) parameters)next(&cache, #name);                                    \
		return real arguments;                                                             \
	}

#define WRAP_FD(call, type, failure, name, parameters, arguments)                                  \
	type name parameters;                                                                      \
	type name parameters                                                                       \
	{                                                                                          \
		static void *cache;                                                                \
		type(*real) parameters;                                                            \
                                                                                                   \
		if (fails_on(FAULT_##call, fd))                                                    \
			return failure;                                                            \
		real = (type(*) parameters)next(&cache, #name);                                    \
		return real arguments;                                                             \
	}

/* The mode may be absent; passing an absent argument on does no harm. */
#define WRAP_OPEN(name, first, ...)                                                                \
	int name first;                                                                            \
	int name first                                                                             \
	{                                                                                          \
		static void *cache;                                                                \
		int(*real) first;                                                                  \
		mode_t mode;                                                                       \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = va_arg(ap, mode_t);                                                         \
		va_end(ap);                                                                        \
		if (fails(FAULT_open))                                                             \
			return -1;                                                                 \
		real = (int(*) first)next(&cache, #name);                                          \
		return real(__VA_ARGS__, mode);                                                    \
	}

WRAP_OPEN(open64, (const char *path, int flags, ...), path, flags)
WRAP_OPEN(openat64, (int dir, const char *path, int flags, ...), dir, path, flags)
WRAP(open, int, -1, __openat64_2, (int dir, const char *path, int flags), (dir, path, flags))
WRAP(open, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
WRAP(open, void *, NULL, opendir, (const char *path), (path))
WRAP(open, void *, NULL, fdopendir, (int fd), (fd))

WRAP_FD(read, ssize_t, -1, read, (int fd, void *data, size_t len), (fd, data, len))
WRAP_FD(read, ssize_t, -1, pread64, (int fd, void *data, size_t len, off64_t at),
	(fd, data, len, at))
WRAP_FD(write, ssize_t, -1, write, (int fd, const void *data, size_t len), (fd, data, len))
WRAP_FD(write, ssize_t, -1, writev, (int fd, const struct iovec *iov, int count), (fd, iov, count))
WRAP_FD(write, ssize_t, -1, pwrite64, (int fd, const void *data, size_t len, off64_t at),
	(fd, data, len, at))
WRAP(splice, ssize_t, -1, splice,
     (int in, off64_t *at_in, int out, off64_t *at_out, size_t len, unsigned flags),
     (in, at_in, out, at_out, len, flags))
WRAP(ftruncate, int, -1, ftruncate64, (int fd, off64_t len), (fd, len))
WRAP(fallocate, int, -1, fallocate64, (int fd, int mode, off64_t at, off64_t len),
     (fd, mode, at, len))
WRAP(fsync, int, -1, fsync, (int fd), (fd))
WRAP(stat, int, -1, fstat64, (int fd, struct stat64 *st), (fd, st))
WRAP(lseek, off64_t, -1, lseek64, (int fd, off64_t at, int whence), (fd, at, whence))
WRAP(rename, int, -1, renameat, (int from, const char *a, int to, const char *b), (from, a, to, b))
WRAP(link, int, -1, linkat, (int from, const char *a, int to, const char *b, int flags),
     (from, a, to, b, flags))
WRAP(mkdir, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(mkdir, int, -1, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))

WRAP(mmap, void *, MAP_FAILED, mmap64,
     (void *p, size_t len, int prot, int flags, int fd, off64_t at), (p, len, prot, flags, fd, at))
WRAP(pipe, int, -1, pipe2, (int fds[2], int flags), (fds, flags))
WRAP(socket, int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(socket, int, -1, socketpair, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds))
WRAP(sendmsg, ssize_t, -1, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(recvmsg, ssize_t, -1, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(poll, int, -1, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
WRAP(poll, int, -1, ppoll,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *set),
     (fds, count, timeout, set))
WRAP(epoll, int, -1, epoll_create1, (int flags), (flags))
WRAP(fork, pid_t, -1, fork, (void), ())

/* Removing needs no memory: the kernel refuses it only for a wrong descriptor. libsystemd aborts.
 */
int epoll_ctl(int fd, int op, int other, struct epoll_event *event)
{
	static void *cache;
	int (*real)(int, int, int, struct epoll_event *);

	if (op != EPOLL_CTL_DEL && fails(FAULT_epoll))
		return -1;
	real = (int (*)(int, int, int, struct epoll_event *))next(&cache, "epoll_ctl");
	return real(fd, op, other, event);
}
