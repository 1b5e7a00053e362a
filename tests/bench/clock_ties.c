/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clock_ties RUNS [MS]: real ties of clocks whose true offset and drift are known. In each run one
 * process asks another one for its clock, by the code of `tracectl -H` (exchange.h, orders.h), for
 * MS after the first exchanges. Between them are two processes that hold lines up, each direction
 * by itself. One of them also writes into each answer what another clock would show: CLOCK_BOOTTIME
 * with an offset and a drift of that run. So the error of the tie is known, and has to be within
 * its bound, from the begin to the end. Needs no root. Exit status 1: an error is above its bound.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "hosts/exchange.h"
#include "hosts/orders.h"

/* Runs at a time. They mostly wait. */
#define JOBS 8
/* As `tracectl -H`: the longest wait for the first exchanges. */
#define FIRST_NS (2 * NSEC_PER_SEC)
/* A recorder reads its clock before it is ready, and once more at its end. */
#define MARGIN_NS (10 * NSEC_PER_MSEC)
#define PLACES 40

/* Two clocks: far = near + offset + drift * (near - begin). */
struct world {
	uint64_t seed, begin, offset; /* ns */
	double drift;
	uint64_t delay[2], jitter[2]; /* ns: to the far side, and back */
};

struct outcome {
	int status;
	uint64_t bound, error; /* ns */
	bool drift_known;
};

/* Splitmix64. */
static uint64_t random_u64(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t far_of(const struct world *w, uint64_t near)
{
	double since = (double)(int64_t)(near - w->begin);

	return near + w->offset + (uint64_t)(int64_t)(since * w->drift);
}

static struct world world_of(uint64_t run)
{
	static const uint64_t delays[] = { 0, 1000000, 5000000 };
	static const uint64_t jitters[] = { 0, 50000, 1000000, 3000000 };
	struct world w = { .seed = run, .begin = now_ns(CLOCK_BOOTTIME) };

	w.offset = random_u64(&w.seed) % (2000000 * NSEC_PER_SEC);
	w.drift = ((double)(random_u64(&w.seed) % 400001) - 200000) * 1e-9;
	for (int i = 0; i < 2; i++) {
		w.delay[i] = delays[random_u64(&w.seed) % ARRAY_SIZE(delays)];
		w.jitter[i] = jitters[random_u64(&w.seed) % ARRAY_SIZE(jitters)];
	}
	return w;
}

_Noreturn static void fail(const char *what)
{
	perror(what);
	_exit(2);
}

/* Mostly short, now and then ten times as long. */
static void hold_up(struct world *w, int way)
{
	uint64_t scale = w->jitter[way] * (random_u64(&w->seed) % 10 ? 1 : 10);
	uint64_t ns = w->delay[way] + random_u64(&w->seed) % (scale + 1);
	struct timespec t = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	if (ns)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* The answer is the other clock's. */
static void change_clock(const struct world *w, char *line, size_t size)
{
	uint64_t number, ns;

	if (sscanf(line, "@clock %" SCNu64 " %" SCNu64, &number, &ns) == 2)
		snprintf(line, size, "@clock %" PRIu64 " %" PRIu64 "\n", number, far_of(w, ns));
}

/* way 0: orders; 1: answers. */
_Noreturn static void relay_main(struct world *w, int way, int from, int to)
{
	FILE *in = fdopen(from, "r");
	char line[256];

	w->seed += (uint64_t)way << 32;
	while (in && fgets(line, sizeof(line), in)) {
		if (way)
			change_clock(w, line, sizeof(line));
		hold_up(w, way);
		if (write_full(to, line, strlen(line)) < 0)
			break;
	}
	_exit(0);
}

/* The far side behaves as a recorder after "go". */
_Noreturn static void far_main(int from, int to)
{
	struct orders orders = ORDERS_INIT;

	if (dup2(to, STDERR_FILENO) < 0)
		fail("dup2");
	orders.fd = from;
	while (!orders.gone)
		orders_take(&orders);
	_exit(0);
}

/* Closes what the process does not need, so that each sees the end of its pipe. */
static void keep_only(int in, int out)
{
	for (int fd = 3; fd < 64; fd++)
		if (fd != in && fd != out)
			close(fd);
}

/* Begins the far side and the relays. ret: our ends, of orders and of answers. */
static void world_open(struct world *w, int ret[2])
{
	int pipes[4][2]; /* orders: to the relay, from it; answers: to the relay, from it */

	for (int i = 0; i < 4; i++)
		if (pipe(pipes[i]) < 0)
			fail("pipe");
	for (int i = 0; i < 3; i++) {
		int in = pipes[i][0], out = pipes[i + 1][1];
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid)
			continue;
		keep_only(in, out);
		if (i == 1)
			far_main(in, out);
		relay_main(w, i / 2, in, out);
	}
	ret[0] = pipes[0][1];
	ret[1] = pipes[3][0];
	for (int i = 0; i < 4; i++) {
		if (pipes[i][0] != ret[1])
			close(pipes[i][0]);
		if (pipes[i][1] != ret[0])
			close(pipes[i][1]);
	}
}

static int take_answers(struct exchange *e, FILE *in)
{
	char line[256];

	if (!fgets(line, sizeof(line), in))
		return -EPIPE;
	return exchange_take_line(e, line);
}

/* The exchanges of a recording that lasts for length_ns. */
static int exchange_for(struct exchange *e, const int fds[2], uint64_t length_ns)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC), end = begin + FIRST_NS + length_ns, at;
	_cleanup_fclose_ FILE *in = fdopen(fds[1], "r");
	bool goes = false;
	int r = in ? 0 : -ENOMEM;

	for (e->ask_at = begin; r == 0 && (at = now_ns(CLOCK_MONOTONIC)) < end;) {
		struct pollfd answers = { fds[1], POLLIN, 0 };
		uint64_t next = e->asked ? end : MIN(end, e->ask_at);

		if (!goes && e->ties[TIES_EXCHANGES].count >= EXCHANGES_FIRST) {
			goes = true;
			end = at + length_ns;
		}
		if (!e->asked && at >= e->ask_at) {
			char order[EXCHANGE_ORDER_BYTES];

			exchange_ask(e, order);
			r = write_full(fds[0], order, strlen(order));
			continue;
		}
		if (poll(&answers, 1, (int)((next - MIN(next, at)) / NSEC_PER_MSEC) + 1) > 0)
			r = take_answers(e, in);
	}
	return r;
}

static struct outcome judge(const struct world *w, const struct exchange *e)
{
	uint64_t from = w->begin, length = now_ns(CLOCK_BOOTTIME) + MARGIN_NS - from;
	struct host_clock clock;
	struct outcome ret = { .status = host_clock_choose(&clock, e->ties, far_of(w, from),
							   far_of(w, from + length)) };

	if (ret.status < 0)
		return ret;
	ret.bound = clock.bound;
	ret.drift_known = clock.drift_known;
	for (uint64_t i = 0; i <= PLACES; i++) {
		uint64_t near = from + length / PLACES * i;
		uint64_t got = host_clock_apply(&clock, far_of(w, near));

		ret.error = MAX(ret.error, MAX(got, near) - MIN(got, near));
	}
	return ret;
}

_Noreturn static void run_main(uint64_t run, uint64_t length_ns, int out)
{
	struct world w = world_of(run);
	struct exchange e = EXCHANGE_INIT(-EBADF, 0);
	struct outcome outcome;
	int fds[2], r;

	/* The begin of a recording is before the first exchange. */
	w.begin -= MARGIN_NS;
	world_open(&w, fds);
	r = exchange_for(&e, fds, length_ns);
	if (r < 0)
		outcome = (struct outcome){ .status = r };
	else
		outcome = judge(&w, &e);
	close(fds[0]);
	while (wait(NULL) > 0)
		;
	write_full(out, &outcome, sizeof(outcome));
	_exit(0);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_row(const char *what, uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	printf("| %s | %.1f us | %.1f us | %.1f us |\n", what, (double)values[0] / 1e3,
	       (double)values[count / 2] / 1e3, (double)values[count - 1] / 1e3);
}

/* Returns how many are not within their bound. */
static size_t print_all(const struct outcome *all, size_t count)
{
	_cleanup_free_ uint64_t *bounds = calloc(count, sizeof(*bounds));
	_cleanup_free_ uint64_t *errors = calloc(count, sizeof(*errors));
	size_t tied = 0, outside = 0, drifts = 0;
	double closest = 0;

	if (!bounds || !errors)
		fail("calloc");
	for (size_t i = 0; i < count; i++) {
		if (all[i].status < 0) {
			printf("not tied: %s\n", strerror(-all[i].status));
			continue;
		}
		bounds[tied] = all[i].bound;
		errors[tied++] = all[i].error;
		outside += all[i].error > all[i].bound;
		drifts += all[i].drift_known;
		closest = MAX(closest, (double)all[i].error / (double)all[i].bound);
	}
	if (tied) {
		printf("| %zu runs | least | median | largest |\n|---|---|---|---|\n", count);
		print_row("bound", bounds, tied);
		print_row("error", errors, tied);
		printf("\nOutside the bound: %zu. The largest error is %.0f %% of its bound. Drift "
		       "known: "
		       "%zu.\n",
		       outside, closest * 100, drifts);
	}
	return outside + count - tied;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, done = 0, begun = 0;
	uint64_t length_ns = (argc > 2 ? strtoull(argv[2], NULL, 10) : 200) * NSEC_PER_MSEC;
	_cleanup_free_ struct outcome *all = calloc(count + 1, sizeof(*all));
	int pipes[2], status;

	if (!count || !all) {
		fprintf(stderr, "usage: clock_ties RUNS [MS]\n");
		return 2;
	}
	if (pipe(pipes) < 0)
		fail("pipe");
	while (done < count) {
		for (; begun < count && begun < done + JOBS; begun++) {
			pid_t pid = fork();

			if (pid < 0)
				fail("fork");
			if (!pid)
				run_main(begun + 1, length_ns, pipes[1]);
		}
		/* We keep the pipe open, so a read would wait forever for a run that died. */
		if (waitpid(-1, &status, 0) < 0)
			fail("waitpid");
		if (status) {
			fprintf(stderr, "a run failed: wait status %#x\n", (unsigned)status);
			return 2;
		}
		if (read_full(pipes[0], &all[done], sizeof(*all)) != sizeof(*all))
			fail("read");
		done++;
	}
	return print_all(all, count) ? 1 : 0;
}
