/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that are hostile, or die in the middle of something, beside an honest one: its marks
 * arrive, the daemon goes on, and losses are counted.
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "marks_end.h"
#include "proto/capture.pb-c.h"
#include "traced/mark_record.h"
#include "traced/traced.h"

#define NOBODY 65534
#define RINGS_MAX 4096

static const struct marks_limits limits = {
	.producers = 600,
	.producers_per_user = 300,
	.rings_per_user = 300,
	.bytes_per_user = 64U << 20,
	.rate_per_user = 64U << 20,
};

/* A process's data as received: whole records, and consecutive numbers. */
struct process_marks {
	pid_t pid; /* 0: there is none */
	uint64_t marks, bytes, next;
	uint64_t lost, dropped; /* by LOST records; by the ring's count */
	bool broken;		/* its records are invalid */
};

struct recording {
	struct marks_sink sink;
	struct process_marks *processes; /* owned */
	size_t count;
	size_t ring_process[RINGS_MAX];
	uint32_t epoch[RINGS_MAX];
};

static size_t process_of(struct recording *r, pid_t pid)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->processes[i].pid == pid)
			return i;
	r->processes = reallocarray(r->processes, r->count + 1, sizeof(*r->processes));
	assert_non_null(r->processes);
	r->processes[r->count] = (struct process_marks){ .pid = pid };
	return r->count++;
}

static struct process_marks marks_of(const struct recording *r, pid_t pid)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->processes[i].pid == pid)
			return r->processes[i];
	return (struct process_marks){ 0 };
}

/* The first number of a record's fields, whatever it means; UINT64_MAX: it has none. */
static uint64_t first_number(const char *record, size_t len)
{
	struct mark_field f;
	uint64_t value;

	if (len < sizeof(struct mark_record) + 16)
		return UINT64_MAX;
	memcpy(&f, record + sizeof(struct mark_record), sizeof(f));
	memcpy(&value, record + sizeof(struct mark_record) + 8, sizeof(value));
	return f.words == 2 ? value : UINT64_MAX;
}

static void take_records(struct recording *r, uint32_t ring, const char *p, size_t len)
{
	struct process_marks *of = &r->processes[r->ring_process[ring]];

	of->bytes += len;
	while (len && !of->broken) {
		struct mark_record h;
		size_t size;

		memcpy(&h, p, MIN(len, sizeof(h)));
		size = h.words * 8U;
		if (len < sizeof(h) || size < sizeof(h) || size > len) {
			of->broken = true;
			return;
		}
		if (h.phase == MARK_EPOCH)
			r->epoch[ring] = h.label;
		if (r->epoch[ring] >= r->sink.generation && h.phase == MARK_LOST) {
			of->lost += first_number(p, size);
			of->next += first_number(p, size);
		} else if (r->epoch[ring] >= r->sink.generation && h.phase >= MARK_PHASE_MIN) {
			/* Marks of these tests count from 0: none is missing, none comes twice. */
			of->broken |= h.phase == 'i' && first_number(p, size) != of->next;
			of->next++;
			of->marks++;
		}
		p += size;
		len -= size;
	}
}

static int on_chunk(void *userdata, enum chunk_type type, const struct iovec *iov, int count)
{
	struct recording *r = userdata;
	struct marks_header h;

	if (type == CHUNK_PRODUCER) {
		Traced__Capture__Producer *p =
			traced__capture__producer__unpack(NULL, iov[0].iov_len, iov[0].iov_base);

		assert_non_null(p);
		assert_true(p->ring < RINGS_MAX);
		r->ring_process[p->ring] = process_of(r, p->pid);
		traced__capture__producer__free_unpacked(p, NULL);
		return 0;
	}
	assert_int_equal(count, 2);
	memcpy(&h, iov[0].iov_base, sizeof(h));
	assert_true(h.ring < RINGS_MAX);
	r->processes[r->ring_process[h.ring]].dropped = h.dropped;
	take_records(r, h.ring, iov[1].iov_base, iov[1].iov_len);
	return 0;
}

static void begin(struct marks *m, struct recording *r)
{
	*r = (struct recording){ .sink = { .write = on_chunk, .userdata = r } };
	assert_int_equal(marks_begin(m, &r->sink), 0);
}

static void end(struct marks *m, struct recording *r)
{
	marks_end(m, &r->sink);
	free(r->processes);
}

/* Serves as the daemon's loop does. Returns the CPU time of the longest turn, ns. */
static uint64_t serve(struct marks *m, uint64_t ns, void (*meanwhile)(void))
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + ns, now, worst = 0;

	while ((now = now_ns(CLOCK_MONOTONIC)) < until) {
		struct pollfd p = { .fd = marks_fd(m), .events = POLLIN };
		uint64_t due = MIN(marks_deadline(m), now + 5 * NSEC_PER_MSEC), began;

		poll(&p, 1, due > now ? (int)((due - now) / NSEC_PER_MSEC) : 0);
		if (meanwhile)
			meanwhile();
		began = now_ns(CLOCK_THREAD_CPUTIME_ID);
		if (p.revents)
			marks_dispatch(m);
		worst = MAX(worst, now_ns(CLOCK_THREAD_CPUTIME_ID) - began);
		began = now_ns(CLOCK_THREAD_CPUTIME_ID);
		if (now_ns(CLOCK_MONOTONIC) >= marks_deadline(m))
			marks_drain(m);
		worst = MAX(worst, now_ns(CLOCK_THREAD_CPUTIME_ID) - began);
	}
	return worst;
}

static uint64_t honest_made;

static void mark_honestly(void)
{
	for (int i = 0; i < 10; i++) {
		TRACED_INSTANT("test", "honest", TRACED_SCOPE_THREAD,
			       TRACED_UINT("n", honest_made));
		honest_made++;
	}
}

static void check_honest(const struct recording *r)
{
	struct process_marks p = marks_of(r, getpid());

	assert_false(p.broken);
	assert_int_equal(p.lost, 0);
	assert_int_equal(p.marks, honest_made);
}

/* Shared with a child, which counts in it. */
static uint64_t *made;

/* A whole ring of ours, mapped. */
static struct mark_ring *give_ring(int fd, uint32_t size)
{
	struct marks_message msg = marks_ring_message(size);
	int ring = marks_memfd(msg.header + size, RING_SEALS);
	void *p;

	if (ring < 0)
		_exit(1);
	p = mmap(NULL, msg.header + size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	if (p == MAP_FAILED || marks_send(fd, &msg, ring) < 0)
		_exit(1);
	close(ring);
	return p;
}

/* Runs act in a child, as nobody if we are root. */
static pid_t become(void (*act)(void), bool nobody)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nobody && getuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	     setresuid(NOBODY, NOBODY, NOBODY) < 0))
		_exit(1);
	/* The change of identity cleared it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	act();
	_exit(0);
}

static void finish(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* It ran until it was killed. */
	assert_true(WIFSIGNALED(status));
}

#define FLOOD_RINGS 4
/* Sends full rings and wake-ups as fast as it can, without writing a byte of them. */
static void flood(void)
{
	struct mark_ring *rings[FLOOD_RINGS];
	struct marks_message look = marks_ring_message(0);
	int fd = marks_connect();

	look.type = MARKS_LOOK;
	for (int i = 0; i < FLOOD_RINGS; i++)
		rings[i] = give_ring(fd, MARK_RING_MAX);
	for (;;) {
		for (int i = 0; i < FLOOD_RINGS; i++)
			__atomic_store_n(&rings[i]->head,
					 __atomic_load_n(&rings[i]->tail, __ATOMIC_ACQUIRE) +
						 MARK_RING_MAX,
					 __ATOMIC_RELEASE);
		__atomic_store_n(made, *made + 1, __ATOMIC_RELEASE);
		marks_send(fd, &look, -1);
	}
}

/* Until it has filled all its rings once more; a busy machine may not let it run at once. */
static void wait_for_flood(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t before = __atomic_load_n(made, __ATOMIC_ACQUIRE);

	for (int i = 0; i < 20000 && __atomic_load_n(made, __ATOMIC_ACQUIRE) < before + 2; i++)
		nanosleep(&pause, NULL);
}

/*
 * CPU time of copying two rings between fresh pages, ns: some 40 ms. Under a sanitizer, whose own
 * memory has page faults, too, and where these are slow, it is many times as long.
 */
static uint64_t copy_two_rings(void)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *from = malloc(MARK_RING_MAX), *to = malloc(MARK_RING_MAX);

		assert_non_null(from);
		assert_non_null(to);
		memset(from, i, MARK_RING_MAX);
		memcpy(to, from, MARK_RING_MAX);
		assert_int_equal(to[MARK_RING_MAX - 1], i);
	}
	return now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

/* Several copies are measured: other load makes some of them slow. */
static uint64_t slowest_copy(uint64_t earlier)
{
	for (int i = 0; i < 3; i++)
		earlier = MAX(earlier, copy_two_rings());
	return earlier;
}

static void a_flood_is_taken_at_its_rate(void **state _unused_)
{
	const uint64_t time = 600 * NSEC_PER_MSEC;
	_cleanup_(marks_freep) struct marks *m = NULL;
	uint64_t copy, worst, most, began;
	struct recording r;
	pid_t pid;

	if (getuid() != 0)
		skip(); /* the flood would come from our own user */
	copy = slowest_copy(0);
	m = marks_serve(&limits);
	honest_made = 0;
	marks_find_daemon();
	begin(m, &r);
	began = now_ns(CLOCK_MONOTONIC);
	pid = become(flood, true);
	worst = serve(m, time, mark_honestly);
	/* On a busy machine it may not have begun yet. */
	for (int i = 0; i < 100 && marks_of(&r, pid).bytes < MARK_RING_MAX; i++)
		worst = MAX(worst, serve(m, time, mark_honestly));
	finish(pid);
	serve(m, 20 * NSEC_PER_MSEC, NULL);
	/* A burst, and a debt, of one ring each; the time that passes. */
	most = 2 * MARK_RING_MAX + limits.rate_per_user *
					   ((now_ns(CLOCK_MONOTONIC) - began) / NSEC_PER_USEC) /
					   (NSEC_PER_SEC / NSEC_PER_USEC);
	assert_in_range(marks_of(&r, pid).bytes, MARK_RING_MAX, most);
	/* A turn mostly takes a quarter of that. */
	assert_in_range(worst, 0, 4 * slowest_copy(copy));
	marks_end(m, &r.sink);
	check_honest(&r);
	free(r.processes);
}

#define SHARE (3 * MARK_RING_MAX)

static uint64_t fixed_share(void *userdata _unused_)
{
	return SHARE;
}

/* A user's marks take no more of a recording than their share; root's and others' go on. */
static void a_flood_has_a_share(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = NULL;
	struct recording r;
	pid_t pid;

	if (getuid() != 0)
		skip();
	m = marks_serve(&limits);
	honest_made = 0;
	marks_find_daemon();
	begin(m, &r);
	r.sink.share = fixed_share;
	pid = become(flood, true);
	for (int i = 0; i < 100 && !r.sink.missing; i++)
		serve(m, 100 * NSEC_PER_MSEC, mark_honestly);
	assert_in_range(r.sink.missing, 1, FLOOD_RINGS);
	serve(m, 100 * NSEC_PER_MSEC, mark_honestly);
	finish(pid);
	serve(m, 20 * NSEC_PER_MSEC, NULL);
	assert_in_range(marks_of(&r, pid).bytes, MARK_RING_MAX, SHARE);
	marks_end(m, &r.sink);
	check_honest(&r);
	free(r.processes);
}

/* Rings of random bytes, with valid and invalid heads. */
static void write_garbage(void)
{
	unsigned seed = (unsigned)getpid();
	size_t header = (size_t)sysconf(_SC_PAGESIZE), part = MARK_RING_MIN / 16;

	for (;;) {
		int fd = marks_connect();
		struct mark_ring *shared = give_ring(fd, MARK_RING_MIN);

		for (int n = 0; n < 50; n++) {
			char *bytes = (char *)shared + header + (size_t)(n % 16) * part;

			for (size_t i = 0; i < part; i++)
				bytes[i] = (char)rand_r(&seed);
			shared->dropped = (uint32_t)rand_r(&seed);
			shared->tail = (uint32_t)rand_r(&seed);
			shared->closed = n == 49;
			if (n % 10 == 9)
				shared->head = (uint32_t)rand_r(&seed);
			else
				shared->head += (uint32_t)rand_r(&seed) % 8192 & ~7U;
			usleep(200);
		}
		munmap(shared, header + MARK_RING_MIN);
		close(fd);
	}
}

static void garbage_is_its_makers_own(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_count count;
	struct recording r;
	pid_t pids[3];

	honest_made = 0;
	marks_find_daemon();
	begin(m, &r);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = become(write_garbage, true);
	/* On a busy machine they may not have begun yet. */
	for (int i = 0; i < 50; i++) {
		serve(m, 400 * NSEC_PER_MSEC, mark_honestly);
		marks_get_count(m, &count);
		if (count.refused)
			break;
	}
	assert_true(count.refused > 0);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		finish(pids[i]);
	for (int i = 0; i < 3000; i++) {
		serve(m, 20 * NSEC_PER_MSEC, NULL);
		marks_get_count(m, &count);
		if (count.producers == 1)
			break;
	}
	assert_int_equal(count.producers, 1);
	assert_int_equal(count.rings, 1);
	marks_end(m, &r.sink);
	check_honest(&r);
	free(r.processes);
}

static void connect_often(void)
{
	int fds[900];

	for (;;) {
		size_t n = 0;

		/*
		 * A program that connects faster than the daemon accepts waits, and keeps what it
		 * has.
		 */
		for (int full = 0; n < ARRAY_SIZE(fds) && full < 500;) {
			fds[n] = marks_connect();
			if (fds[n] >= 0) {
				n++;
				continue;
			}
			full++;
			usleep(1000);
		}
		while (n)
			close(fds[--n]);
	}
}

static void thousands_of_connections(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = NULL;
	struct marks_count count;
	struct recording r;
	pid_t pids[4];

	if (getuid() != 0)
		skip();
	m = marks_serve(&limits);
	honest_made = 0;
	marks_find_daemon();
	begin(m, &r);
	mark_honestly();
	serve(m, 10 * NSEC_PER_MSEC, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = become(connect_often, true);
	marks_get_count(m, &count);
	for (int i = 0; i < 1000 && count.refused < 200; i++) {
		serve(m, 20 * NSEC_PER_MSEC, mark_honestly);
		marks_get_count(m, &count);
		assert_in_range(count.producers, 1, limits.producers_per_user + 1);
	}
	assert_true(count.refused > 0);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		finish(pids[i]);
	/* Once they are gone, there is room for all. */
	for (int i = 0; i < 3000 && count.producers > 1; i++) {
		serve(m, 20 * NSEC_PER_MSEC, NULL);
		marks_get_count(m, &count);
	}
	assert_int_equal(count.producers, 1);
	marks_end(m, &r.sink);
	check_honest(&r);
	free(r.processes);
}

static void mark_until_killed(void)
{
	traced_ring_size(MARK_RING_MIN); /* a ring that fills */
	for (;;) {
		TRACED_INSTANT(
			"test", "n", TRACED_SCOPE_THREAD, TRACED_UINT("n", *made),
			TRACED_STRING("text", "of some length, so that a record takes time"));
		__atomic_store_n(made, *made + 1, __ATOMIC_RELEASE);
	}
}

/* Whenever the program dies, each of its marks is present or counted, and none is partial. */
static void killed_in_mid_write(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct recording r;
	unsigned marked = 0, dropping = 0;

	marks_find_daemon();
	begin(m, &r);
	for (unsigned i = 0; i < 40; i++) {
		struct process_marks p;
		uint64_t all, known;
		pid_t pid;

		*made = 0;
		pid = become(mark_until_killed, false);
		/* The first ones may die before their first mark. Unread, some fill their rings. */
		for (unsigned n = 0; i >= 8 && n < 20000; n++) {
			if (__atomic_load_n(made, __ATOMIC_ACQUIRE) >
			    (i % 4 == 1 ? MARK_RING_MIN / 16 : 0))
				break;
			if (i % 2)
				usleep(1000);
			else
				serve(m, NSEC_PER_MSEC, NULL);
		}
		if (i % 2) /* nobody empties its ring */
			usleep((i % 8 + 1) * 1000);
		else
			serve(m, (i % 8 + 1) * 700 * NSEC_PER_USEC, NULL);
		finish(pid);
		serve(m, 5 * NSEC_PER_MSEC, NULL);
		all = *made;
		p = marks_of(&r, pid);
		assert_false(p.broken);
		/* No record reports the last loss. */
		known = p.marks + MAX(p.lost, p.dropped);
		if (known != all && known != all + 1)
			fail_msg("%ju made, %ju written, %ju dropped, %ju told", (uintmax_t)all,
				 (uintmax_t)p.marks, (uintmax_t)p.dropped, (uintmax_t)p.lost);
		marked += p.marks > 0;
		dropping += p.dropped > 0;
	}
	/* Some may not reach their first mark. */
	assert_true(marked >= 20);
	assert_true(dropping >= 5);
	end(m, &r);
}

static void storm(void)
{
	for (int i = 0; i < 150; i++) {
		pid_t pid = fork();

		if (!pid) {
			TRACED_INSTANT("test", "n", TRACED_SCOPE_THREAD, TRACED_UINT("n", 0));
			if (i % 3 == 0)
				kill(getpid(), SIGKILL);
			if (i % 3 == 1)
				syscall(SYS_exit_group, 0);
			_exit(0);
		}
		if (pid < 0 || (i % 4 == 3 && waitpid(pid, NULL, 0) < 0))
			_exit(1);
	}
	while (wait(NULL) > 0)
		;
	pause();
}

static void a_storm_of_forks(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct marks_count count;
	struct recording r;
	pid_t pid;

	honest_made = 0;
	marks_find_daemon();
	begin(m, &r);
	mark_honestly();
	pid = become(storm, false);
	for (int i = 0; i < 15000 && r.count < 151; i++)
		serve(m, 20 * NSEC_PER_MSEC, mark_honestly);
	finish(pid);
	serve(m, 20 * NSEC_PER_MSEC, NULL);
	marks_get_count(m, &count);
	assert_int_equal(count.producers, 1);
	marks_end(m, &r.sink);
	check_honest(&r);
	assert_int_equal(r.count, 151);
	for (size_t i = 0; i < r.count; i++) {
		assert_false(r.processes[i].broken);
		if (r.processes[i].pid != getpid())
			assert_int_equal(r.processes[i].marks, 1);
	}
	free(r.processes);
}

static void exec_forever(void)
{
	TRACED_INSTANT("test", "n", TRACED_SCOPE_THREAD, TRACED_UINT("n", 0));
	execl("/bin/sleep", "sleep", "60", NULL);
}

/* Marks written before exec are kept, though the process goes on as another program. */
static void marks_before_exec(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = marks_serve(&limits);
	struct recording r;
	pid_t pid;

	marks_find_daemon();
	begin(m, &r);
	pid = become(exec_forever, false);
	for (int i = 0; i < 5000 && !marks_of(&r, pid).pid; i++)
		serve(m, 20 * NSEC_PER_MSEC, NULL);
	assert_int_equal(marks_of(&r, pid).marks, 1);
	finish(pid);
	end(m, &r);
}

/* Neither the begin nor the end of a recording reads more of a flood than its rate allows. */
static void a_flood_does_not_delay_the_end(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = NULL;
	struct marks_limits slow = limits;
	struct recording r, later;
	uint64_t before;
	pid_t pid;

	if (getuid() != 0)
		skip();
	/* A rate so low that a long read allows no more bytes. */
	slow.rate_per_user = MARK_RING_MAX;
	m = marks_serve(&slow);
	honest_made = 0;
	marks_find_daemon();
	begin(m, &r);
	pid = become(flood, true);
	for (int i = 0; i < 100 && marks_of(&r, pid).bytes < 2 * MARK_RING_MAX; i++)
		serve(m, 100 * NSEC_PER_MSEC, mark_honestly);
	before = marks_of(&r, pid).bytes;
	wait_for_flood();
	begin(m, &later);
	assert_in_range(marks_of(&r, pid).bytes - before, 0, 2 * MARK_RING_MAX);
	mark_honestly();
	before = marks_of(&r, pid).bytes;
	wait_for_flood();
	marks_end(m, &r.sink);
	assert_in_range(marks_of(&r, pid).bytes - before, 0, 2 * MARK_RING_MAX);
	assert_in_range(r.sink.missing, 1, FLOOD_RINGS);
	check_honest(&r);
	/* The later recording has no marks that were made before it. */
	for (int i = 0; i < 100 && later.sink.missing == 0; i++)
		serve(m, 100 * NSEC_PER_MSEC, NULL);
	assert_in_range(later.sink.missing, 1, FLOOD_RINGS);
	finish(pid);
	end(m, &later);
	free(r.processes);
}

/* Root's programs have no limit; then a drain ends before it has visited all rings. */
static void the_end_visits_all_rings(void **state _unused_)
{
	_cleanup_(marks_freep) struct marks *m = NULL;
	struct recording r;
	pid_t pid;
	int more = 0;

	if (getuid() != 0)
		skip();
	m = marks_serve(&limits);
	honest_made = 0;
	marks_find_daemon();
	begin(m, &r);
	serve(m, 20 * NSEC_PER_MSEC, mark_honestly);
	pid = become(flood, false);
	for (int i = 0; i < 500 && !more; i++) {
		serve(m, 10 * NSEC_PER_MSEC, NULL);
		more = marks_drain(m);
	}
	assert_true(more);
	mark_honestly();
	marks_end(m, &r.sink);
	check_honest(&r);
	finish(pid);
	free(r.processes);
}

static int setup(void **state)
{
	made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return made == MAP_FAILED ? -1 : marks_folder_make(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_is_taken_at_its_rate),
		cmocka_unit_test(a_flood_has_a_share),
		cmocka_unit_test(a_flood_does_not_delay_the_end),
		cmocka_unit_test(the_end_visits_all_rings),
		cmocka_unit_test(garbage_is_its_makers_own),
		cmocka_unit_test(thousands_of_connections),
		cmocka_unit_test(killed_in_mid_write),
		cmocka_unit_test(a_storm_of_forks),
		cmocka_unit_test(marks_before_exec),
	};

	return cmocka_run_group_tests(tests, setup, marks_folder_remove);
}
