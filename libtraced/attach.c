/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives a thread a ring that the daemon reads, once the shared page says that somebody records. All
 * of this is rare: a thread's first mark, a daemon that starts, stops or is replaced, a fork. After
 * a refusal the library tries again later, by the coarse clock. Marks in between are counted as
 * dropped if somebody records.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "emit.h"

#define RETRY_NS UINT64_C(1000000000)
#define RETRY_SOON_NS UINT64_C(10000000)
#define RING_DEFAULT (1U << 20)

/* It lies in .data: MARKS_UNSET tells the first mark that nothing has looked for the page. */
_Alignas(TRACED_PAGE_SIZE) struct traced_page traced_page = { .word = MARKS_UNSET };

static struct process *shared_process; /* wiped in a forked child */
/* The socket again, not wiped: a child inherits the descriptor and must close it. */
static int last_socket; /* the descriptor + 1; 0: none */
static uint64_t last_inode;
static size_t wanted_size; /* 0: default */
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static bool exit_key_made;

static uint64_t coarse_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

static struct process *process_get(void)
{
	struct process *p = __atomic_load_n(&shared_process, __ATOMIC_ACQUIRE), *none = NULL;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	if (p)
		return p;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, size, MADV_WIPEONFORK) == 0 &&
	    __atomic_compare_exchange_n(&shared_process, &none, p, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return p;
	munmap(p, size);
	return none;
}

/* "/run/traced/NAME", or the folder in TRACED_MARKS, which set-user-ID programs ignore. */
static bool marks_path(const char *name, char *to, size_t room)
{
	const char *folder = secure_getenv("TRACED_MARKS") ?: MARKS_FOLDER;
	size_t a = strlen(folder), b = strlen(name);

	if (a + b + 2 > room)
		return false;
	memcpy(to, folder, a);
	to[a] = '/';
	memcpy(to + a + 1, name, b + 1);
	return true;
}

static const struct marks_page *page_get(void)
{
	return (const struct marks_page *)(const void *)&traced_page;
}

/* Maps the daemon's page over ours. Call it with the process's lock held. */
static bool page_map(void)
{
	struct stat st;
	char path[128];
	bool mapped = false;
	int fd;

	if ((size_t)sysconf(_SC_PAGESIZE) > TRACED_PAGE_SIZE ||
	    !marks_path(MARKS_PAGE, path, sizeof(path)))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	/* If others could truncate the file, this process would die of SIGBUS. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= MARKS_PAGE_BYTES &&
	    (st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & 022))
		mapped = mmap(&traced_page, sizeof(traced_page), PROT_READ, MAP_SHARED | MAP_FIXED,
			      fd, 0) != MAP_FAILED;
	close(fd);
	return mapped && page_word() != MARKS_GONE && page_get()->version == MARKS_PAGE_VERSION;
}

/* Replaces the daemon's page by an empty one of our own. A later mark looks for a new daemon. */
static void page_unmap(void)
{
	if (mmap(&traced_page, sizeof(traced_page), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		__atomic_store_n(&traced_page.word, MARKS_ABSENT, __ATOMIC_RELAXED);
}

/* Returns the current word. Call it with the process's lock held. */
static uint32_t page_find(struct process *p, uint32_t word)
{
	uint64_t now;

	if (word == MARKS_OFF || word >= MARKS_GENERATION_MIN)
		return word;
	now = coarse_ns();
	if (word == MARKS_GONE)
		page_unmap();
	else if (now < p->retry)
		return MARKS_ABSENT;
	p->retry = now + RETRY_NS;
	if (page_map())
		return page_word();
	page_unmap();
	return MARKS_ABSENT;
}

static bool socket_is(int fd, uint64_t inode)
{
	struct stat st;

	/* Programs may close unknown descriptors, and their numbers are reused: check the inode. */
	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && (uint64_t)st.st_ino == inode;
}

static void process_close_socket(struct process *p)
{
	if (last_socket && socket_is(last_socket - 1, last_inode))
		close(last_socket - 1);
	last_socket = 0;
	p->socket = 0;
}

static bool process_connect(struct process *p, uint64_t daemon)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, high;

	process_close_socket(p);
	if (!marks_path(MARKS_SOCKET, sa.sun_path, sizeof(sa.sun_path)))
		return false;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	/* Avoid low numbers: some programs expect to get them. */
	high = fcntl(fd, F_DUPFD_CLOEXEC, 256);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (connect(fd, (const struct sockaddr *)(const void *)&sa, sizeof(sa)) < 0 ||
	    fstat(fd, &st) < 0) {
		close(fd);
		return false;
	}
	p->socket = fd + 1;
	p->socket_inode = (uint64_t)st.st_ino;
	p->daemon = daemon;
	last_socket = p->socket;
	last_inode = p->socket_inode;
	return true;
}

/* Returns 0, -EAGAIN if the socket is full, or an error that ends this connection. */
static int process_send(struct process *p, const struct marks_message *m, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (!p->socket || !socket_is(p->socket - 1, p->socket_inode))
		return -ENOTCONN;
	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	if (sendmsg(p->socket - 1, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*m))
		return 0;
	switch (errno) {
	case ENOBUFS:
	case ENOMEM:
	case ETOOMANYREFS: /* too many of the user's descriptors are in flight */
		return -EAGAIN;
	default:
		return -errno;
	}
}

/*
 * Returns false if no message was sent. A mark must not wait, so none is sent if another thread
 * holds the lock. The daemon looks at the rings by itself, too, but later.
 */
bool process_wake(void)
{
	static const struct marks_message look = { .magic = MARKS_MESSAGE_MAGIC,
						   .type = MARKS_LOOK,
						   .version = MARK_VERSION };
	struct process *p = shared_process;
	int saved = errno;
	bool sent = false;

	if (p && pthread_mutex_trylock(&p->lock) == 0) {
		sent = process_send(p, &look, -1) == 0;
		pthread_mutex_unlock(&p->lock);
	}
	errno = saved;
	return sent;
}

static size_t ring_size_wanted(void)
{
	size_t wanted = __atomic_load_n(&wanted_size, __ATOMIC_RELAXED), size = MARK_RING_MIN;
	const char *text = wanted ? NULL : secure_getenv("TRACED_RING");

	if (text)
		wanted = (size_t)strtoull(text, NULL, 0);
	if (!wanted)
		wanted = RING_DEFAULT;
	while (size < wanted && size < MARK_RING_MAX)
		size *= 2;
	return size;
}

void traced_ring_size(size_t bytes)
{
	__atomic_store_n(&wanted_size, bytes, __ATOMIC_RELAXED);
}

static void thread_on_exit(void *value)
{
	struct thread *t = value;
	bool other = t->busy;

	t->busy = 1;
	barrier();
	if (t->ring && t->ring->generation && !other) {
		__atomic_store_n(&t->ring->shared->closed, 1, __ATOMIC_RELEASE);
		process_wake();
	}
	ring_forget(t);
	barrier();
	t->busy = 0;
}

static void thread_make_exit_key(void)
{
	exit_key_made = pthread_key_create(&exit_key, thread_on_exit) == 0;
}

/*
 * Returns like process_send(). A full socket keeps its connection: all other threads' rings depend
 * on it.
 */
static int ring_hand_over(struct process *p, struct ring *r, int fd)
{
	uint64_t daemon = page_get()->daemon;
	int e = -ENOTCONN;
	struct marks_message m = {
		.magic = MARKS_MESSAGE_MAGIC,
		.type = MARKS_RING,
		.version = MARK_VERSION,
		.header = r->header,
		.size = r->mask + 1,
		.pid = (int32_t)getpid(),
		.tid = (int32_t)syscall(SYS_gettid),
		.clock = MARK_CLOCK_BOOTTIME,
	};

	prctl(PR_GET_NAME, m.comm);
	r->daemon = daemon;
	if (p->socket && p->daemon == daemon)
		e = process_send(p, &m, fd);
	if (e == 0 || e == -EAGAIN)
		return e;
	return process_connect(p, daemon) ? process_send(p, &m, fd) : -ENOTCONN;
}

/* Call it with the process's lock held. On failure returns the time in ns until the next try. */
static uint64_t thread_make_ring(struct thread *t, struct process *p)
{
	struct ring *r;
	int fd = -1, e;

	r = ring_new(ring_size_wanted(), &fd);
	if (!r)
		return RETRY_NS;
	r->shared->dropped = (uint32_t)t->dropped;
	r->limit = (r->mask + 1) / 4;
	t->ring = r;
	t->mapped = r->mapped;
	e = ring_hand_over(p, r, fd);
	if (e < 0)
		ring_forget(t);
	close(fd);
	pthread_once(&exit_once, thread_make_exit_key);
	if (exit_key_made)
		pthread_setspecific(exit_key, t);
	return e == -EAGAIN ? RETRY_SOON_NS : RETRY_NS;
}

static bool thread_has_ring(struct thread *t)
{
	if (!t->ring)
		return false;
	if (t->ring->mapped && t->ring->daemon == page_get()->daemon)
		return true;
	/* The daemon was replaced, or this is a forked child, whose ring is wiped. */
	ring_forget(t);
	return false;
}

static struct ring *thread_attach_ring(struct thread *t, struct process *p, uint32_t word)
{
	pthread_mutex_lock(&p->lock);
	word = page_find(p, word);
	if (word < MARKS_GENERATION_MIN) {
		pthread_mutex_unlock(&p->lock);
		return NULL;
	}
	if (t->seen != word) {
		t->seen = word;
		t->base = t->dropped;
	}
	if (!thread_has_ring(t) && coarse_ns() >= t->retry) {
		t->retry = coarse_ns() + thread_make_ring(t, p);
		if (t->ring)
			t->retry = 0;
	}
	pthread_mutex_unlock(&p->lock);
	if (!t->ring) {
		ring_drop(t, NULL);
		return NULL;
	}
	return ring_begin_epoch(t, t->ring, word) ? t->ring : NULL;
}

/* True if it is time to look for a daemon or its replacement. */
static bool process_may_look(const struct process *p, uint32_t word)
{
	return word == MARKS_GONE || coarse_ns() >= p->retry;
}

int traced_look(void)
{
	struct thread *t = &traced_thread;
	struct process *p;
	uint32_t word = page_word();
	int saved = errno;

	/* A signal handler interrupted the holder of the lock. */
	if (t->busy)
		return word >= MARKS_GENERATION_MIN || user_event_wanted();
	t->busy = 1;
	barrier();
	p = process_get();
	if (p && word != MARKS_OFF && word < MARKS_GENERATION_MIN && process_may_look(p, word)) {
		pthread_mutex_lock(&p->lock);
		word = page_find(p, page_word());
		pthread_mutex_unlock(&p->lock);
	}
	barrier();
	t->busy = 0;
	errno = saved;
	return word >= MARKS_GENERATION_MIN || user_event_wanted();
}

struct ring *thread_attach(struct thread *t, uint32_t word)
{
	struct process *p = process_get();
	struct ring *r = NULL;
	int saved = errno;

	if (p && (word >= MARKS_GENERATION_MIN || process_may_look(p, word)))
		r = thread_attach_ring(t, p, word);
	errno = saved;
	return r;
}
