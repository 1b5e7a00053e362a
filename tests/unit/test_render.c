/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several threads render the same bytes as one, in the same order. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/render.h"
#include "trace/loan.h"

#define EVENTS 50000
#define TASKS 700
#define TASKS_KNOWN 350 /* that have a name from the start */
#define UNKNOWN_FROM 20000
#define LONG_RECORD (300U << 10)
#define SHORT_RECORD 256
#define LONG_NOTE (400U << 10)

/* A sink that fails where a test wants it to, and counts its calls. */
struct fake_sink {
	struct sink sink;
	unsigned fail_begin; /* creating that state fails; 0: none fails */
	uint64_t fail_at;    /* rendering the event of that time fails */
	uint64_t fail_at_note;
	uint64_t weight_max; /* 0: none */
	unsigned repeats;    /* of an event's record */
	unsigned begun, ended;
	uint64_t weight;
};

static int fake_begin(void **ret, struct sink *sink)
{
	struct fake_sink *s = container_of(sink, struct fake_sink, sink);

	if (++s->begun == s->fail_begin)
		return -ENOMEM;
	*ret = s;
	return 0;
}

static void fake_end(void *state)
{
	struct fake_sink *s = state;

	s->ended++;
}

static struct task_table *tasks;
/* This thread is in fake_event(). */
static _Thread_local bool rendering;

static const char *fake_name(const struct trace_event *ev)
{
	const struct task *task;

	if (ev->pid <= 0)
		return "-";
	rendering = true;
	task = task_table_find(tasks, ev->pid, ev->rec.ts);
	rendering = false;
	return task ? task->comm : "-";
}

static int fake_event(void *state, const struct trace_event *ev, struct buf *out, uint64_t *weight)
{
	const struct fake_sink *s = state;

	if (s->fail_at && ev->rec.ts == s->fail_at)
		return -ENOMEM;
	buf_printf(out, "%llu %u %s ", (unsigned long long)ev->rec.ts, ev->cpu, fake_name(ev));
	for (unsigned i = 0; i <= s->repeats; i++)
		buf_append(out, ev->rec.data, ev->rec.len);
	buf_putc(out, '\n');
	*weight += ev->rec.len;
	return 0;
}

static int fake_loss(void *state _unused_, uint32_t cpu, uint64_t count, struct buf *out,
		     uint64_t *weight)
{
	buf_printf(out, "lost %llu on %u\n", (unsigned long long)count, cpu);
	*weight += 1;
	return 0;
}

/* Reads the note as a number, so it must be aligned. */
static int fake_note(void *state, const void *note, size_t len, struct buf *out, uint64_t *weight)
{
	const struct fake_sink *s = state;
	uint64_t number;

	if ((uintptr_t)note % _Alignof(uint64_t) != 0 || len < sizeof(number))
		return -EFAULT;
	memcpy(&number, note, sizeof(number));
	if (s->fail_at_note && number == s->fail_at_note)
		return -ENOMEM;
	buf_printf(out, "note %llu ", (unsigned long long)number);
	buf_append(out, (const char *)note + sizeof(number), len - sizeof(number));
	buf_putc(out, '\n');
	*weight += 1;
	return 0;
}

static int fake_took(struct sink *sink, uint64_t weight, struct error *err)
{
	struct fake_sink *s = container_of(sink, struct fake_sink, sink);

	s->weight += weight;
	return s->weight_max && s->weight > s->weight_max
		       ? error_set(err, -EOVERFLOW, "the fake is full")
		       : 0;
}

static const struct render_ops fake_ops = {
	.begin = fake_begin,
	.end = fake_end,
	.event = fake_event,
	.loss = fake_loss,
	.note = fake_note,
	.took = fake_took,
	.failure = "can't write the fake",
};

struct run {
	unsigned threads;
	struct fake_sink sink;
	uint64_t drain_at, recall_at; /* 0: never */
	uint64_t give_fails_at;	      /* reading that event fails; 0: none fails */
	bool full;		      /* writing fails */
	bool others;		      /* no event is rendered */
	unsigned fills;
	bool filled_beside_others; /* by one of several render threads */
	bool recalled;
};

/* Overwrites each lent record as soon as it is returned. */
struct lender {
	struct loan loan;
	uint64_t number[EVENTS + 1]; /* of each event */
	size_t first;		     /* the first that is not returned */
};

static char records[EVENTS + 1][SHORT_RECORD];
static struct lender lender;

static void name_tasks(int32_t tid, int32_t end)
{
	for (; tid < end; tid++)
		assert_int_equal(task_table_name(tasks, tid, 1, "named", 5), 0);
}

static void fill(void *userdata)
{
	struct run *run = userdata;

	run->fills++;
	run->filled_beside_others |= rendering && lender.loan.recall;
	name_tasks(TASKS_KNOWN, TASKS);
}

static void spoil_returned(size_t end)
{
	for (; lender.first < end && lender.number[lender.first] < lender.loan.returned;
	     lender.first++)
		memset(records[lender.first], '!', SHORT_RECORD);
}

/* Gives the events, in any thread, and knows where to go on. */
struct giver {
	struct render *render;
	struct run *run;
	uint64_t next;
	uint32_t seed;
};

/* Into a reserved space larger than the note, after a space that stays unused. */
static int give_in_place(struct render *r, const char *note, size_t len, struct error *err)
{
	void *room;
	int e = render_note_room(r, LONG_NOTE, &room, err);

	if (e < 0)
		return e;
	memset(room, '!', LONG_NOTE);
	e = render_note_room(r, len + 100, &room, err);
	if (e < 0)
		return e;
	assert_int_equal((uintptr_t)room % 8, 0);
	memcpy(room, note, len);
	memset((char *)room + len, '!', 100);
	return render_note_put(r, len, err);
}

/* The event's number and a text of some length; a few are so long that a batch has room for few. */
static int give_note(const struct giver *g, uint64_t i, struct error *err)
{
	static char note[LONG_NOTE];
	size_t len = sizeof(i) + (i % 5000 == 2 ? LONG_NOTE - sizeof(i) : i % 61);

	memset(note, '.', sizeof(note));
	memcpy(note, &i, sizeof(i));
	return i % 2 ? give_in_place(g->render, note, len, err)
		     : render_note(g->render, note, len, err);
}

/* Gives a record's bytes; for some numbers, losses and a note before it. */
static int give_one(struct giver *g, uint64_t i, struct error *err)
{
	static char long_record[LONG_RECORD];
	static const int32_t long_pid = 1;
	struct render *r = g->render;
	const struct run *run = g->run;
	struct trace_event ev = { .cpu = (uint32_t)(i % 3),
				  .pid = (int32_t)(i % (i < UNKNOWN_FROM ? TASKS_KNOWN : TASKS)) };
	int e = 0;

	g->seed = g->seed * 1664525 + 1013904223;
	memset(records[i], 'a' + (char)(i % 26), SHORT_RECORD);
	/* No format says where the pid is: it is at offset 0. */
	memcpy(records[i], &ev.pid, sizeof(ev.pid));
	ev.rec = (struct record){ i, (uint8_t *)records[i], g->seed >> 24 };
	if (i == 1) {
		memset(long_record, 'l', sizeof(long_record));
		memcpy(long_record, &long_pid, sizeof(long_pid));
	}
	if (i == 3000 || i == 3001 || i == 9000) {
		ev.pid = long_pid;
		ev.rec = (struct record){ i, (uint8_t *)long_record, LONG_RECORD };
	}
	/* Sometimes more at once than a batch has room for, and one now and then. */
	for (uint64_t n = i == 12345 ? 15000 : i % 777 == 0; n && e == 0 && !run->others; n--)
		e = render_loss(r, ev.cpu, i + n, err);
	if (e == 0 && i % 5 == 2 && !run->others)
		e = give_note(g, i, err);
	if (e == 0 && i == run->drain_at)
		e = render_drain(r, err);
	if (e == 0 && i == run->give_fails_at)
		e = error_set(err, -EIO, "the fake can't be read");
	/* For slices of functions the sink keeps the event itself. */
	return e < 0 || run->others ? e : render_event(r, &ev, err);
}

static int give(void *userdata, struct error *err)
{
	struct giver *g = userdata;

	while (g->next <= EVENTS) {
		uint64_t i = g->next++;
		int e = give_one(g, i, err);

		if (e < 0)
			return e;
		lender.number[i] = lender.loan.recall ? lender.loan.lent : 0;
		if (lender.loan.recall)
			spoil_returned((size_t)i);
		else
			memset(records[i], '!', SHORT_RECORD);
		if (i == g->run->recall_at && lender.loan.recall) {
			e = lender.loan.recall(lender.loan.userdata, err);
			if (e < 0)
				return e;
			spoil_returned((size_t)i + 1);
			assert_int_equal(lender.first, i + 1);
			g->run->recalled = true;
		}
		if (lender.loan.pause)
			return 1;
	}
	return 0;
}

/* Renders all; returns the text (caller frees) and the result in *ret. */
static char *render_all(struct run *run, size_t *ret_len, int *ret)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct trace_info info = { 0 };
	const struct event_table_env env = { .word_size = 8 };
	struct output out;
	const struct sink_env sink_env = { .info = &info, .out = &out, .loan = &lender.loan };
	struct render *r = NULL;
	int fd = run->full ? open("/dev/full", O_RDWR | O_CLOEXEC)
			   : memfd_create("rendered", MFD_CLOEXEC);
	int flushed;
	char *text;

	assert_true(fd >= 0);
	assert_int_equal(task_table_new(&tasks), 0);
	name_tasks(1, TASKS_KNOWN);
	task_table_set_filler(tasks, fill, run);
	info.tasks = tasks;
	assert_int_equal(event_table_new(&info.events, &env), 0);
	lender = (struct lender){ .first = 1 };
	assert_int_equal(output_init(&out, fd, false), 0);
	*ret = render_new(&r, &fake_ops, &run->sink.sink, &sink_env, run->threads);
	if (*ret == 0)
		*ret = render_run(r, give, &(struct giver){ r, run, .next = 1, .seed = 1 }, &err);
	flushed = output_flush(&out, true);
	if (*ret == 0)
		*ret = flushed;
	assert_true((err.code != 0) == (*ret < 0 && r != NULL));
	assert_true(!err.code || err.code == -*ret);
	if (err.code)
		assert_non_null(strstr(err.message, "the fake"));
	render_free(r);
	assert_int_equal(run->sink.ended + (run->sink.fail_begin ? 1 : 0), run->sink.begun);
	*ret_len = run->full ? 0 : (size_t)lseek(fd, 0, SEEK_END);
	assert_int_equal(*ret_len, run->full ? 0 : out.bytes);
	text = malloc(*ret_len + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, *ret_len, 0), *ret_len);
	output_deinit(&out);
	task_table_free(tasks);
	event_table_free(info.events);
	close(fd);
	return text;
}

static void test_same_bytes(void **state _unused_)
{
	static const struct run runs[] = {
		{ .threads = 2 },
		{ .threads = 5 },
		{ .threads = 1000 },
		{ .threads = 0 },
		{ .threads = 3, .drain_at = 3001 },
		{ .threads = 3, .recall_at = 3001 },
		{ .threads = 2, .recall_at = 4096 },
		/* Creating the second or the third thread fails. */
		{ .threads = 4, .sink.fail_begin = 2 },
		{ .threads = 4, .sink.fail_begin = 3 },
	};
	struct run alone = { .threads = 1 };
	size_t want_len, len;
	char *want, *text;
	int r;

	want = render_all(&alone, &want_len, &r);
	assert_int_equal(r, 0);
	assert_int_equal(alone.fills, 1);
	assert_true(want_len > 3 * LONG_RECORD);
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct run run = runs[i];

		text = render_all(&run, &len, &r);
		assert_int_equal(r, 0);
		assert_int_equal(len, want_len);
		assert_memory_equal(text, want, len);
		assert_int_equal(run.sink.weight, alone.sink.weight);
		assert_int_equal(run.fills, 1);
		assert_false(run.filled_beside_others);
		free(text);
	}
	free(want);
}

/* A batch with a long text is written in parts. */
static void test_long_lines(void **state _unused_)
{
	static const unsigned threads[] = { 2, 3, 1000 };
	struct run alone = { .threads = 1, .sink.repeats = 30 };
	struct run full = { .threads = 3, .sink.repeats = 30, .full = true };
	size_t want_len, len;
	char *want, *text;
	int r;

	want = render_all(&alone, &want_len, &r);
	assert_int_equal(r, 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		struct run run = { .threads = threads[i], .sink.repeats = 30 };

		text = render_all(&run, &len, &r);
		assert_int_equal(r, 0);
		assert_int_equal(len, want_len);
		assert_memory_equal(text, want, len);
		assert_int_equal(run.sink.weight, alone.sink.weight);
		free(text);
	}
	free(want);
	free(render_all(&full, &len, &r));
	assert_int_equal(r, -ENOSPC);
}

/* Records that a sink does not hand on to be rendered are returned, too. */
static void test_not_rendered(void **state _unused_)
{
	struct run run = { .threads = 3, .recall_at = 30000, .others = true };
	size_t len;
	int r;

	free(render_all(&run, &len, &r));
	assert_int_equal(r, 0);
	assert_true(run.recalled);
}

static void test_failures(void **state _unused_)
{
	static const struct {
		struct run run;
		int result;
	} cases[] = {
		{ { .threads = 1, .sink.fail_begin = 1 }, -ENOMEM },
		{ { .threads = 4, .sink.fail_begin = 1 }, -ENOMEM },
		{ { .threads = 1, .sink.fail_at = 5000 }, -ENOMEM },
		{ { .threads = 4, .sink.fail_at = 1 }, -ENOMEM },
		{ { .threads = 4, .sink.fail_at = 5000 }, -ENOMEM },
		{ { .threads = 4, .sink.fail_at = EVENTS }, -ENOMEM },
		{ { .threads = 1, .sink.fail_at_note = 20002 }, -ENOMEM },
		{ { .threads = 4, .sink.fail_at_note = 20002 }, -ENOMEM },
		{ { .threads = 1, .sink.weight_max = 2000000 }, -EOVERFLOW },
		{ { .threads = 4, .sink.weight_max = 2000000 }, -EOVERFLOW },
		{ { .threads = 1, .give_fails_at = 30000 }, -EIO },
		{ { .threads = 4, .give_fails_at = 1 }, -EIO },
		{ { .threads = 4, .give_fails_at = 30000 }, -EIO },
		{ { .threads = 4, .give_fails_at = EVENTS }, -EIO },
		{ { .threads = 1, .full = true }, -ENOSPC },
		{ { .threads = 4, .full = true }, -ENOSPC },
		{ { .threads = 4, .full = true, .drain_at = 30000 }, -ENOSPC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run run = cases[i].run;
		size_t len;
		int r;

		free(render_all(&run, &len, &r));
		assert_int_equal(r, cases[i].result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_not_rendered),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
