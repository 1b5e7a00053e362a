/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings on the running kernel: requests, refusals, and leftovers. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/recording.h"
#include "recording.h"

static struct tracefs *fs;

static int start(struct capture **ret, struct recording *rec, const char *name,
		 const struct capture_event_spec *specs, size_t count, struct error *err)
{
	const struct capture_request request = {
		.name = name, .events = specs, .event_count = count, .buffer_bytes = 1 << 20
	};
	int r = capture_new(ret, NULL, &rec->env, &request, err);

	return r < 0 ? r : capture_start(*ret, rec->fd, err);
}

/* On a busy machine a process may be in a call that keeps others from reading its command line. */
static void warns_of_busy_processes_only(const struct capture_stats *stats)
{
	for (size_t i = 0; i < stats->warning_count; i++)
		if (!strstr(stats->warnings[i], "command lines of"))
			fail_msg("%s", stats->warnings[i]);
}

static char *own_prefix(char *prefix, size_t size)
{
	snprintf(prefix, size, "traced-%d-", getpid());
	return prefix;
}

static void sched_and_irq(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "sched" },
							   { .glob = "irq:*" } };
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture_stats stats;
	char prefix[64];
	struct recording rec;
	struct decoded *d;

	recording_init(&rec, fs);
	if (start(&c, &rec, "both", specs, 2, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(count_instances(fs, own_prefix(prefix, sizeof(prefix))), 2);
	run_for(c, 300 * NSEC_PER_MSEC);
	assert_int_equal(capture_mark(c, "halfway", &err), 0);
	run_for(c, 300 * NSEC_PER_MSEC);
	assert_int_equal(capture_stop(c, CAPTURE_END_DURATION, &err), 0);
	capture_get_stats(c, &stats);
	assert_true(stats.events > 0);
	warns_of_busy_processes_only(&stats);
	c = capture_free(c);
	assert_int_equal(count_instances(fs, prefix), 0);

	d = decode(rec.fd, NULL, NULL);
	assert_false(d->cut);
	assert_int_equal(d->ends, 1);
	assert_string_equal(d->header->trace_clock, "boot");
	assert_true(strncmp(d->header->trace_header, "# tracer: nop\n", 14) == 0);
	assert_string_equal(d->header->tracer, "nop");
	assert_non_null(strstr(d->header->trace_options, "\noverwrite\n"));
	assert_int_equal(d->header->uuid.len, 16);
	assert_true(decoded_event_id(d, "sched:sched_switch") > 0);
	assert_true(decoded_event_id(d, "ftrace:print") > 0);
	assert_true(decoded_event_id(d, "task:task_newtask") > 0);
	assert_int_equal(decoded_event_id(d, "kmem:kmalloc"), -1);
	assert_true(d->clocks >= 2);
	assert_true(d->tasks > 10);
	decoded_free(d);
	recording_deinit(&rec);
}

static void nearest_events_are_suggested(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "sched:sched_swich" } };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture *c = NULL;
	char prefix[64];
	struct recording rec;

	recording_init(&rec, fs);
	assert_int_equal(start(&c, &rec, "typo", specs, 1, &err), -ENOENT);
	assert_non_null(strstr(err.message, "sched:sched_swich"));
	assert_non_null(strstr(err.hint, "'sched:sched_switch'"));
	assert_int_equal(count_instances(fs, own_prefix(prefix, sizeof(prefix))), 0);
	recording_deinit(&rec);
}

static void refused_filter_shows_the_caret(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "sched:sched_switch",
							     .filter = "next_pio < 100" } };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture *c = NULL;
	char prefix[64];
	struct recording rec;

	recording_init(&rec, fs);
	assert_int_equal(start(&c, &rec, "filter", specs, 1, &err), -EINVAL);
	assert_non_null(strstr(err.message, "next_pio < 100"));
	assert_non_null(strstr(err.message, "Field not found"));
	assert_non_null(strstr(err.message, "\n"));
	assert_non_null(strrchr(err.message, '^'));
	assert_non_null(err.hint);
	assert_int_equal(count_instances(fs, own_prefix(prefix, sizeof(prefix))), 0);
	recording_deinit(&rec);
}

static void unknown_clock_names_the_known(void **state _unused_)
{
	static const struct capture_event_spec spec = { .glob = "irq" };
	const struct capture_request request = {
		.name = "clock", .events = &spec, .event_count = 1, .clock = "sundial"
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture *c = NULL;
	char prefix[64];
	struct recording rec;

	recording_init(&rec, fs);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), -EINVAL);
	assert_non_null(strstr(err.message, "sundial"));
	assert_non_null(strstr(err.hint, "mono"));
	assert_int_equal(count_instances(fs, own_prefix(prefix, sizeof(prefix))), 0);
	recording_deinit(&rec);
}

static void oversized_buffer_is_refused(void **state _unused_)
{
	static const struct capture_event_spec spec = { .glob = "irq" };
	const struct capture_request request = {
		.name = "huge", .events = &spec, .event_count = 1, .buffer_bytes = UINT64_C(1) << 44
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture *c = NULL;
	struct recording rec;

	recording_init(&rec, fs);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), -ENOMEM);
	assert_non_null(strstr(err.message, "CPU"));
	assert_non_null(err.hint);
	recording_deinit(&rec);
}

static void count_marks(void *userdata, enum subbufs_buffer buffer, unsigned cpu _unused_,
			const struct record *r)
{
	unsigned *marks = userdata;

	if (buffer != BUFFER_MAIN)
		return;
	marks[0] += memmem(r->data, r->len, "only first", 10) != NULL;
	marks[1] += memmem(r->data, r->len, "only second", 11) != NULL;
}

static void two_at_once(void **state _unused_)
{
	/* Quiet: the removal of one instance must not wait for a reader of the other. */
	static const struct capture_event_spec specs[] = { { .glob = "sched:sched_process_hang" } };
	_cleanup_(capture_freep) struct capture *a = NULL, *b = NULL;
	struct capture *same = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	unsigned first[2] = { 0 }, second[2] = { 0 };
	struct recording ra, rb;

	recording_init(&ra, fs);
	recording_init(&rb, fs);
	assert_int_equal(start(&a, &ra, "a", specs, 1, &err), 0);
	assert_int_equal(start(&b, &rb, "b", specs, 1, &err), 0);
	assert_int_equal(start(&same, &ra, "a", specs, 1, &err), -EEXIST);
	run_for(a, 50 * NSEC_PER_MSEC);
	run_for(b, 50 * NSEC_PER_MSEC);
	assert_int_equal(capture_mark(a, "only first", &err), 0);
	assert_int_equal(capture_mark(b, "only second", &err), 0);
	assert_int_equal(capture_stop(a, CAPTURE_END_STOPPED, &err), 0);
	a = capture_free(a);
	run_for(b, 50 * NSEC_PER_MSEC);
	assert_int_equal(capture_stop(b, CAPTURE_END_STOPPED, &err), 0);
	decoded_free(decode(ra.fd, count_marks, first));
	decoded_free(decode(rb.fd, count_marks, second));
	assert_int_equal(first[0], 1);
	assert_int_equal(first[1], 0);
	assert_int_equal(second[0], 0);
	assert_int_equal(second[1], 1);
	recording_deinit(&ra);
	recording_deinit(&rb);
}

struct birth {
	pid_t pid;
	unsigned newtask, rename, in_main;
};

static void see_birth(void *userdata, enum subbufs_buffer buffer, unsigned cpu _unused_,
		      const struct record *r)
{
	struct birth *b = userdata;

	if (!memmem(r->data, r->len, &b->pid, sizeof(b->pid)))
		return;
	if (buffer == BUFFER_MAIN)
		b->in_main++;
	else if (memmem(r->data, r->len, "shortlived", 10))
		b->rename++;
	else
		b->newtask++;
}

static void short_lived_tasks_are_known(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "irq:softirq_raise" } };
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct birth birth = { 0 };
	struct recording rec;
	struct decoded *d;

	recording_init(&rec, fs);
	assert_int_equal(start(&c, &rec, "births", specs, 1, &err), 0);
	/* Let the scan of /proc pass: only the task ring reports the child. */
	run_for(c, 200 * NSEC_PER_MSEC);
	birth.pid = fork();
	if (birth.pid == 0) {
		prctl(PR_SET_NAME, "shortlived");
		_exit(0);
	}
	waitpid(birth.pid, NULL, 0);
	assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), 0);
	d = decode(rec.fd, see_birth, &birth);
	assert_true(birth.newtask >= 1);
	assert_true(birth.rename >= 1);
	/* No event is read whose end is there. */
	assert_int_equal(decoded_event_id(d, "sched:sched_process_exit"), -1);
	decoded_free(d);
	recording_deinit(&rec);
}

/* The kernel generates its symbols' text on reading, which takes longer than anything else. */
static void symbols_where_events_name_them(void **state _unused_)
{
	static const char *const stacks = "stacktrace";
	static const struct {
		struct capture_event_spec spec;
		struct capture_words options;
		unsigned kallsyms;
	} cases[] = {
		{ .spec.glob = "irq:softirq_raise" },
		{ .spec.glob = "timer:hrtimer_start", .kallsyms = 1 },
		/* The text has none after the kernel's start. */
		{ .spec.glob = "initcall:initcall_start" },
		{ .spec.glob = "irq:softirq_raise", .options = { &stacks, 1 }, .kallsyms = 1 }
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(capture_freep) struct capture *c = NULL;
		_cleanup_error_ struct error err = ERROR_INIT;
		struct recording rec;
		struct decoded *d;

		recording_init(&rec, fs);
		assert_int_equal(
			capture_new(&c, NULL, &rec.env,
				    &(struct capture_request){ .name = "symbols",
							       .events = &cases[i].spec,
							       .event_count = 1,
							       .options = cases[i].options },
				    &err),
			0);
		assert_int_equal(capture_start(c, rec.fd, &err), 0);
		run_for(c, 200 * NSEC_PER_MSEC);
		assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), 0);
		d = decode(rec.fd, NULL, NULL);
		assert_int_equal(d->kallsyms, cases[i].kallsyms);
		assert_int_equal(d->excerpts, 1);
		decoded_free(d);
		recording_deinit(&rec);
	}
}

struct pids {
	pid_t child;
	unsigned child_events, others;
};

static void see_pid(void *userdata, enum subbufs_buffer buffer, unsigned cpu _unused_,
		    const struct record *r)
{
	struct pids *p = userdata;
	int32_t pid;

	if (buffer != BUFFER_MAIN || memmem(r->data, r->len, "clock_sync", 10))
		return;
	/* common_pid, in every event since Linux 2.6.31. */
	memcpy(&pid, r->data + 4, sizeof(pid));
	if (pid == p->child)
		p->child_events++;
	else
		p->others++;
}

static void one_process_only(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "raw_syscalls:sys_enter" } };
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct pids pids = { 0 };
	struct recording rec;
	int go[2], r;
	char byte;

	assert_int_equal(pipe(go), 0);
	pids.child = fork();
	if (pids.child == 0) {
		if (read(go[0], &byte, 1) == 1)
			for (int i = 0; i < 1000; i++)
				getppid();
		_exit(0);
	}
	const struct capture_request request = { .name = "pid",
						 .events = specs,
						 .event_count = 1,
						 .pids = &pids.child,
						 .pid_count = 1,
						 .follow_forks = true };

	recording_init(&rec, fs);
	r = capture_new(&c, NULL, &rec.env, &request, &err);
	if (r == 0) {
		assert_int_equal(capture_start(c, rec.fd, &err), 0);
		assert_int_equal(write(go[1], "g", 1), 1);
	}
	close(go[0]);
	close(go[1]);
	waitpid(pids.child, NULL, 0);
	if (r == -ENOENT)
		skip();
	assert_int_equal(r, 0);
	assert_int_equal(capture_stop(c, CAPTURE_END_COMMAND_EXITED, &err), 0);
	decoded_free(decode(rec.fd, see_pid, &pids));
	assert_true(pids.child_events >= 1000);
	assert_int_equal(pids.others, 0);
	recording_deinit(&rec);
}

static void see_cpu(void *userdata, enum subbufs_buffer buffer, unsigned cpu,
		    const struct record *r _unused_)
{
	unsigned *cpus = userdata;

	if (buffer == BUFFER_MAIN)
		*cpus |= 1U << cpu;
}

static void one_cpu_only(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "sched" } };
	_cleanup_(cpu_set_deinit) struct cpu_set last = { 0 };
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t before, after;
	unsigned seen = 0;
	char list[24];
	struct recording rec;

	if (cpus < 2 || cpus > 31)
		skip();
	snprintf(list, sizeof(list), "%ld", cpus - 1);
	assert_int_equal(parse_cpu_list(list, &last, NULL), 0);
	const struct capture_request request = {
		.name = "cpu", .events = specs, .event_count = 1, .cpus = &last
	};

	recording_init(&rec, fs);
	sched_getaffinity(0, sizeof(before), &before);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), 0);
	assert_int_equal(capture_start(c, rec.fd, &err), 0);
	run_for(c, 50 * NSEC_PER_MSEC);
	/* A mark is written on any CPU, and stays there. */
	assert_int_equal(capture_mark(c, "from anywhere", &err), 0);
	sched_getaffinity(0, sizeof(after), &after);
	assert_true(CPU_EQUAL(&before, &after));
	assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), 0);
	decoded_free(decode(rec.fd, see_cpu, &seen));
	assert_int_equal(seen, 1U << (cpus - 1));
	recording_deinit(&rec);
}

static void limited_stream_is_closed_in_order(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "sched:sched_process_hang" } };
	const struct capture_request request = {
		.name = "limit", .events = specs, .event_count = 1, .stream_limit = 3 << 20
	};
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct recording rec;
	struct decoded *d;
	int r = 0;

	recording_init(&rec, fs);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), 0);
	assert_int_equal(capture_start(c, rec.fd, &err), 0);
	for (int i = 0; i < 200000 && r >= 0; i++) {
		assert_int_equal(capture_mark(c, "a mark of about forty bytes, many times", &err),
				 0);
		if (i % 1000 == 0)
			r = capture_dispatch(c, &err);
	}
	assert_int_equal(r, -EDQUOT);
	capture_stop(c, CAPTURE_END_NO_SPACE, &err);
	d = decode(rec.fd, NULL, NULL);
	assert_false(d->cut);
	assert_int_equal(d->ends, 1);
	assert_true(d->notes >= 1);
	assert_true(d->whole <= 3 << 20);
	decoded_free(d);
	recording_deinit(&rec);
}

static void count_end_mark(void *userdata, enum subbufs_buffer buffer, unsigned cpu _unused_,
			   const struct record *r)
{
	unsigned *marks = userdata;

	*marks += buffer == BUFFER_MAIN && memmem(r->data, r->len, "the last words", 14);
}

static void stream_is_closed_though_tracing_stays_on(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "sched:sched_process_hang" } };
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	unsigned marks = 0;
	struct recording rec;
	struct decoded *d;
	int on;

	recording_init(&rec, fs);
	assert_int_equal(start(&c, &rec, "stays", specs, 1, &err), 0);
	run_for(c, 50 * NSEC_PER_MSEC);
	assert_int_equal(capture_mark(c, "the last words", &err), 0);
	/* The file that turns tracing off can't be written. */
	on = c->run.rings[BUFFER_MAIN].switch_fd;
	c->run.rings[BUFFER_MAIN].switch_fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), -ENOSPC);
	close_fd(c->run.rings[BUFFER_MAIN].switch_fd);
	c->run.rings[BUFFER_MAIN].switch_fd = on;
	assert_non_null(strstr(err.message, "turn tracing off"));
	d = decode(rec.fd, count_end_mark, &marks);
	assert_false(d->cut);
	assert_int_equal(d->ends, 1);
	assert_true(d->notes >= 1);
	assert_int_equal(marks, 1);
	decoded_free(d);
	recording_deinit(&rec);
}

static void turned_off_by_others_is_told(void **state _unused_)
{
	static const struct capture_event_spec spec = { .glob = "sched" };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture_stats stats;
	struct capture *c = NULL;
	struct recording rec;

	recording_init(&rec, fs);
	assert_int_equal(start(&c, &rec, "off", &spec, 1, &err), 0);
	capture_get_stats(c, &stats);
	assert_int_equal(stats.warning_count, 0);
	assert_int_equal(tracefs_write(c->run.rings[BUFFER_MAIN].dir, "tracing_on", "0"), 0);
	assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), 0);
	capture_get_stats(c, &stats);
	assert_int_equal(stats.warning_count, 1);
	assert_non_null(strstr(stats.warnings[0], "turned tracing off"));
	capture_free(c);
	recording_deinit(&rec);
}

static void full_device_is_told(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "irq" } };
	_cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	const struct capture_request request = { .name = "full",
						 .events = specs,
						 .event_count = 1 };
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct recording rec;
	char prefix[64];

	if (full < 0)
		skip();
	recording_init(&rec, fs);
	assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), 0);
	assert_int_equal(capture_start(c, full, &err), -ENOSPC);
	assert_int_equal(capture_stop(c, CAPTURE_END_NO_SPACE, &err), 0);
	c = capture_free(c);
	assert_int_equal(count_instances(fs, own_prefix(prefix, sizeof(prefix))), 0);
	recording_deinit(&rec);
}

/* After a slice that has enabled some of the events. */
static void arming_can_be_undone_between_slices(void **state _unused_)
{
	static const struct capture_event_spec spec = { .glob = "*:*" };
	const struct capture_request request = {
		.name = "undone", .events = &spec, .event_count = 1, .buffer_bytes = 64 << 10
	};
	_cleanup_(capture_freep) struct capture *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	char prefix[64], journal[512];
	size_t done = 0;
	struct recording rec;
	int r = 1;

	recording_init(&rec, fs);
	assert_int_equal(capture_begin(&c, NULL, &rec.env, &request, &err), 0);
	while (r > 0 && done < 50) {
		r = capture_arm(c, &err);
		done = 0;
		for (size_t i = 0; i < c->setup.plan.count; i++)
			done += c->setup.plan.steps[i].done;
	}
	assert_int_equal(r, 1);
	assert_true(count_instances(fs, own_prefix(prefix, sizeof(prefix))) >= 1);
	snprintf(journal, sizeof(journal), "%s/%s.journal", rec.state, c->setup.instance);
	assert_int_equal(access(journal, F_OK), 0);
	while (capture_undo(c))
		;
	assert_int_equal(count_instances(fs, prefix), 0);
	c = capture_free(c);
	assert_int_equal(access(journal, F_OK), -1);
	recording_deinit(&rec);
}

static void see_ring_marks(void *userdata, enum subbufs_buffer buffer, unsigned cpu _unused_,
			   const struct record *r)
{
	uint8_t *seen = userdata;
	const char *text;
	unsigned n;

	if (buffer == BUFFER_MAIN && (text = memmem(r->data, r->len, "ring mark ", 10)) &&
	    sscanf(text, "ring mark %u", &n) == 1 && n < 32)
		seen[n]++;
}

/* Each snapshot holds the events since the last one: together all, none twice. */
static void snapshots_follow_each_other(void **state _unused_)
{
	static const enum capture_reader readers[] = { CAPTURE_READER_MMAP, CAPTURE_READER_SPLICE,
						       CAPTURE_READER_READ };
	static const struct capture_event_spec specs[] = { { .glob = "sched:sched_process_hang" } };

	for (size_t k = 0; k < ARRAY_SIZE(readers); k++) {
		const struct capture_request request = { .name = "ring",
							 .events = specs,
							 .event_count = 1,
							 .ring = true,
							 .reader = readers[k] };
		_cleanup_(capture_freep) struct capture *c = NULL;
		_cleanup_error_ struct error err = ERROR_INIT;
		uint8_t seen[32] = { 0 };

		struct recording rec;

		if (readers[k] == CAPTURE_READER_MMAP && !kernel_maps_rings())
			continue;
		recording_init(&rec, fs);
		assert_int_equal(capture_new(&c, NULL, &rec.env, &request, &err), 0);
		assert_int_equal(capture_start(c, -1, &err), 0);
		for (unsigned shot = 0, n = 0; shot < 4; shot++) {
			struct decoded *d;
			uint64_t held;

			for (unsigned i = 0; i < 3; i++, n++) {
				char text[32];

				snprintf(text, sizeof(text), "ring mark %u", n);
				assert_int_equal(capture_mark(c, text, &err), 0);
			}
			assert_int_equal(capture_count_held(c, &held), 0);
			assert_in_range(held, 3 * sizeof("ring mark 0"), UINT32_MAX);
			assert_int_equal(ftruncate(rec.fd, 0), 0);
			assert_int_equal(lseek(rec.fd, 0, SEEK_SET), 0);
			assert_int_equal(capture_snapshot(c, rec.fd, CAPTURE_END_SNAPSHOT, &err),
					 0);
			d = decode(rec.fd, see_ring_marks, seen);
			assert_int_equal(d->ends, 1);
			assert_true(decoded_event_id(d, "ftrace:print") > 0);
			decoded_free(d);
			for (unsigned i = 0; i < n; i++)
				assert_int_equal(seen[i], 1);
		}
		assert_int_equal(capture_stop(c, CAPTURE_END_STOPPED, &err), 0);
		recording_deinit(&rec);
	}
}

static void extraction_leaves_the_buffer_as_it_was(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf size = BUF_INIT;
	_cleanup_close_ int dir = -EBADF;
	struct capture_stats stats;
	uint8_t seen[32] = { 0 };
	struct recording rec;
	struct decoded *d;
	char name[64];

	recording_init(&rec, fs);
	snprintf(name, sizeof(name), "traced-test-extract-%d", getpid());
	assert_int_equal(tracefs_make_instance(fs, name), 0);
	dir = tracefs_open_instance(fs, name);
	assert_int_equal(tracefs_write(dir, "trace_clock", "mono"), 0);
	for (unsigned i = 0; i < 32; i++) {
		char text[32];

		snprintf(text, sizeof(text), "ring mark %u", i);
		assert_int_equal(tracefs_write(dir, "trace_marker", text), 0);
	}
	assert_int_equal(capture_extract(&rec.env, name, rec.fd, &stats, &err), 0);
	assert_int_equal(stats.events, 32);
	assert_int_equal(tracefs_read(dir, "tracing_on", &size), 0);
	assert_string_equal(buf_string(&size), "1");
	d = decode(rec.fd, see_ring_marks, seen);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(seen[i], 1);
	assert_string_equal(d->header->trace_clock, "mono");
	assert_true(decoded_event_id(d, "kmem:kmalloc") > 0);
	assert_int_equal(d->kallsyms, 1);
	assert_int_equal(d->excerpts, 1);
	decoded_free(d);
	assert_int_equal(capture_extract(&rec.env, "traced-test-no-such", rec.fd, NULL, &err),
			 -ENOENT);
	assert_non_null(err.hint);
	dir = close_fd(dir);
	assert_int_equal(tracefs_remove_instance(fs, name), 0);
	recording_deinit(&rec);
}

static void instance_that_was_removed_by_others(void **state _unused_)
{
	static const struct capture_event_spec specs[] = { { .glob = "irq" } };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture *c = NULL;
	struct recording rec;
	char prefix[64];

	/* Open files keep the instance while it records; the journal copes with missing ones. */
	recording_init(&rec, fs);
	assert_int_equal(start(&c, &rec, "removed", specs, 1, &err), 0);
	snprintf(prefix, sizeof(prefix), "traced-%d-removed", getpid());
	assert_int_equal(tracefs_try_remove_instance(fs, prefix), -EBUSY);
	capture_free(c);
	assert_int_equal(count_instances(fs, prefix), 0);
	recording_deinit(&rec);
}

/* Removes it as another daemon would that can't see its maker. */
static void instance_is_held_while_it_is_made(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct journal journal = { 0 };
	struct plan plan = { 0 };
	struct recording rec;
	char name[64];

	recording_init(&rec, fs);
	snprintf(name, sizeof(name), "traced-%d-held", getpid());
	assert_int_equal(journal_create(&journal, rec.state, name, &err), 0);
	plan_instance(&plan, name);
	assert_int_equal(plan_apply(&plan, fs, &journal, &err), 0);
	assert_int_equal(tracefs_try_remove_instance(fs, name), -EBUSY);
	assert_int_equal(plan_undo(&plan, fs), 0);
	assert_int_equal(count_instances(fs, name), 0);
	journal_drop(&journal);
	plan_deinit(&plan);
	recording_deinit(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sched_and_irq),
		cmocka_unit_test(nearest_events_are_suggested),
		cmocka_unit_test(refused_filter_shows_the_caret),
		cmocka_unit_test(unknown_clock_names_the_known),
		cmocka_unit_test(oversized_buffer_is_refused),
		cmocka_unit_test(two_at_once),
		cmocka_unit_test(short_lived_tasks_are_known),
		cmocka_unit_test(symbols_where_events_name_them),
		cmocka_unit_test(one_process_only),
		cmocka_unit_test(one_cpu_only),
		cmocka_unit_test(limited_stream_is_closed_in_order),
		cmocka_unit_test(stream_is_closed_though_tracing_stays_on),
		cmocka_unit_test(turned_off_by_others_is_told),
		cmocka_unit_test(full_device_is_told),
		cmocka_unit_test(arming_can_be_undone_between_slices),
		cmocka_unit_test(snapshots_follow_each_other),
		cmocka_unit_test(extraction_leaves_the_buffer_as_it_was),
		cmocka_unit_test(instance_that_was_removed_by_others),
		cmocka_unit_test(instance_is_held_while_it_is_made),
	};

	fs = open_tracefs_or_skip();
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	tracefs_free(fs);
	return r;
}
