/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl top`: reports of a recording of its own, anew each second.
 *
 * 	traced ── capture stream, a pipe ──▶ decoder ── frames, a pipe ──▶ this process ──▶ terminal
 * 	  │                                    │ ▲                           │
 * 	  └─────── if it is private ────────▶ a file in memory ◀─────────────┘ snapshots
 *
 * The decoder is another process, for root a confined one (top_decode.h). This process decodes
 * nothing. If it is slow, the pipes fill, and the daemon keeps the stream in its spool. A private
 * daemon writes the stream into the file itself, and pauses while that is full.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>

#include "base/io.h"
#include "base/visible.h"
#include "cli.h"
#include "top_decay.h"
#include "top_decode.h"
#include "top_keep.h"
#include "top_screen.h"
#include "top_session.h"
#include "top_view.h"

/* Rows of each table for --batch. */
#define BATCH_ROWS 10
/* Least time between two pages whose cost is told. */
#define SHARE_MIN_NS (NSEC_PER_SEC / 2)
#define PIECE (256U << 10)
#define BY_MAX 16

/* CPU times, and when they were read. */
struct top_spent {
	uint64_t wall_ns, recorder_ns, decoder_ns, terminal_ns;
};

struct top {
	const struct options *o;
	const char *names[REPORTS_MAX];
	struct report_options reports;
	struct top_keep keep;
	struct top_decoder decoder;
	struct top_session session;
	struct buf received; /* of frames */
	struct frame_tables next, decayed;
	struct top_decay decay; /* with the window that is shown, unless decayed is */
	struct top_view view;
	struct top_spent spent;
	struct buf page;
	bool on_screen, decoded, quits, checked, shown;
	unsigned interrupts, snapshots;
	int signal_fd;
};

static void top_deinit(struct top *t)
{
	if (t->on_screen)
		top_screen_close();
	top_decoder_deinit(&t->decoder);
	top_session_deinit(&t->session);
	top_keep_deinit(&t->keep);
	frame_tables_deinit(&t->decayed);
	frame_tables_deinit(&t->next);
	top_decay_deinit(&t->decay);
	buf_deinit(&t->received);
	buf_deinit(&t->page);
	close_fd(t->signal_fd);
}

static const struct event_option top_usual_events[] = {
	{ "sched:sched_switch", NULL },
	{ "sched:sched_wak*", NULL },
	{ "sched:sched_process_exec", NULL },
	{ "irq:irq_handler_*", NULL },
	{ "irq:softirq_*", NULL },
	{ "raw_syscalls", NULL },
};
static const char *const top_usual_names[] = { "sched", "irq", "syscalls", "counts" };

/* Lists once each what rows of live tables may stand for. Returns the number. */
static size_t top_list_by(const char *ret[static BY_MAX])
{
	size_t report_count, count = 0;
	const struct report_about *reports = report_all(&report_count);

	for (size_t i = 0; i < report_count; i++) {
		if (!report_is_live(reports[i].name))
			continue;
		for (const char *const *by = reports[i].by; by && *by; by++) {
			size_t same = 0;

			while (same < count && strcmp(ret[same], *by) != 0)
				same++;
			if (same == count && count < BY_MAX)
				ret[count++] = *by;
		}
	}
	return count;
}

/* The usual tables that can't be made by it are made as usual. */
static int top_check_by(const struct top *t, struct error *err)
{
	_cleanup_buf_ struct buf all = BUF_INIT;
	const char *names[BY_MAX];
	const size_t count = t->o->by ? top_list_by(names) : 0;

	if (!t->o->by)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(names[i], t->o->by))
			return 0;
		buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
	}
	error_set(err, -EINVAL, "no table of top is made by '%s'", t->o->by);
	return error_hint(err, "they are made by %s", buf_string(&all) ?: "?");
}

static int top_take_names(struct top *t, struct error *err)
{
	const bool usual = !t->o->arg_count;
	const size_t count = usual ? ARRAY_SIZE(top_usual_names) : t->o->arg_count;

	for (size_t i = 0; i < count; i++) {
		t->names[i] = usual ? top_usual_names[i] : t->o->args[i];
		if (report_is_live(t->names[i]))
			continue;
		error_set(err, -EINVAL, "top has no table '%s'", t->names[i]);
		return error_hint(err, "its tables are sched, irq, syscalls and counts%s",
				  strchr(t->names[i], ',') ? ", with spaces between them" : "");
	}
	t->reports = (struct report_options){ .names = t->names, .count = count, .by = t->o->by };
	return usual ? top_check_by(t, err) : report_options_check(&t->reports, err);
}

static uint64_t top_share(uint64_t now, uint64_t before, uint64_t wall_ns)
{
	return before && wall_ns ? (now - MIN(before, now)) * 1000 / wall_ns : 0;
}

/* The last page comes soon after the one before: a share of so little time says nothing. */
static void top_measure(struct top *t)
{
	const struct top_spent now = {
		.wall_ns = now_ns(CLOCK_MONOTONIC),
		.recorder_ns = t->session.cpu_ns,
		.decoder_ns = t->next.window.cpu_ns,
		.terminal_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID),
	};
	const uint64_t wall = now.wall_ns - t->spent.wall_ns;

	if (t->spent.wall_ns && wall < SHARE_MIN_NS)
		return;
	t->view.cost = (struct top_cost){
		.is_known = t->spent.wall_ns,
		.recorder = top_share(now.recorder_ns, t->spent.recorder_ns, wall),
		.decoder = top_share(now.decoder_ns, t->spent.decoder_ns, wall),
		.terminal = top_share(now.terminal_ns, t->spent.terminal_ns, wall),
	};
	t->spent = now;
}

static int top_print_batch(struct top *t, struct error *err)
{
	struct report_options options = { .top = t->o->top ?: BATCH_ROWS, .min_ns = t->o->min_ns };
	const struct frame_tables *shown = t->o->decay ? &t->decayed : &t->decay.windows[0];
	char clock[16];
	time_t now = time(NULL);
	struct tm tm;

	buf_clear(&t->page);
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	buf_printf(&t->page, "%s  ", clock);
	top_put_rates(&shown->window, &t->page);
	buf_puts(&t->page, "; cost: ");
	top_put_cost(&t->view.cost, &t->page);
	buf_puts(&t->page, "\n\n");
	for (size_t i = 0; i < shown->count; i++) {
		struct table *table = shown->tables[i];
		int r;

		options.sort =
			t->o->sort && table_has_column(table, t->o->sort) ? t->o->sort : NULL;
		r = table_is_empty(table) ? 0 : table_write(table, &options, true, &t->page, err);
		if (r < 0)
			return r;
		if (!table_is_empty(table))
			buf_putc(&t->page, '\n');
	}
	if (buf_error(&t->page) < 0)
		return error_errno(err, -ENOMEM, "the tables");
	fwrite(t->page.data, 1, t->page.len, stdout);
	return cli_try_flush(err);
}

static int top_show(struct top *t, struct error *err)
{
	if (!t->on_screen)
		return top_print_batch(t, err);
	if (top_view_draw(&t->view, &t->page) < 0)
		return error_errno(err, -ENOMEM, "the page");
	top_screen_show(&t->page, TOP_LINES_ABOVE);
	return 0;
}

/* Columns are known once there are tables. */
static int top_check_sort(struct top *t, struct error *err)
{
	const struct frame_tables *shown = &t->decay.windows[0];
	bool any = false;

	t->checked = true;
	for (size_t i = 0; i < shown->count; i++)
		any |= table_has_column(shown->tables[i], t->o->sort);
	if (any || !shown->count)
		return 0;
	error_set(err, -EINVAL, "no table has a column '%s'", t->o->sort);
	return error_hint(err, "the first line of each table names its columns");
}

static int top_take_window(struct top *t, const char *data, size_t len, struct error *err)
{
	int r = frame_take(&t->next, data, len);

	if (r < 0)
		return error_errno(err, r, "the decoder's tables");
	top_measure(t);
	/* The recording's last part may have no event, and what an interrupt left is not shown. */
	if (t->quits || (t->session.finished && !t->next.window.events))
		return 0;
	if (!t->view.frozen) {
		top_decay_add(&t->decay, &t->next);
		if (top_decay_make(&t->decay, &t->decayed) < 0)
			return error_errno(err, -ENOMEM, "the tables");
	}
	t->shown = true;
	r = t->o->sort && !t->checked ? top_check_sort(t, err) : 0;
	if (r == 0)
		r = top_show(t, err);
	return r < 0 ? r : top_session_ask(&t->session, err);
}

/* The stream of the session may not even have begun: what decodes it fails. */
static bool top_left_early(const struct top *t)
{
	return t->session.left && !t->shown;
}

static int top_take_failure(const char *data, size_t len, struct error *err)
{
	size_t message = strnlen(data, len);

	error_set(err, -EIO, "%.*s", (int)message, data);
	if (message + 1 < len)
		error_hint(err, "%.*s", (int)(len - message - 1), data + message + 1);
	return -EIO;
}

static int top_take_frame(struct top *t, const struct frame_header *h, const char *data,
			  struct error *err)
{
	struct frame_needed needed;

	switch (h->kind) {
	case FRAME_WINDOW:
		return top_take_window(t, data, h->len, err);
	case FRAME_NEEDED:
		if (h->len != sizeof(needed))
			break;
		memcpy(&needed, data, sizeof(needed));
		top_keep_note(&t->keep, needed.head, needed.from, now_ns(CLOCK_MONOTONIC));
		return 0;
	case FRAME_FAILED:
		if (top_left_early(t))
			return 0;
		return top_take_failure(data, h->len, err);
	}
	return error_set(err, -EBADMSG, "the decoder misbehaves");
}

static int top_take_frames(struct top *t, struct error *err)
{
	struct frame_header h;
	const char *data;
	int r;

	while ((r = frame_next(&t->received, &h, &data)) > 0) {
		r = top_take_frame(t, &h, data, err);
		if (r < 0)
			return r;
		buf_replace(&t->received, 0, sizeof(h) + h.len, "", 0);
	}
	return r < 0 ? error_set(err, r, "the decoder misbehaves") : 0;
}

static int top_read_frames(struct top *t, struct error *err)
{
	char *to = buf_reserve(&t->received, PIECE);
	ssize_t n = to ? read(t->decoder.frames, to, PIECE) : -1;

	if (!to)
		return error_errno(err, -ENOMEM, "the decoder's tables");
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0
							 : error_errno(err, -errno, "the decoder");
	t->received.len += (size_t)n;
	t->decoded = !n;
	if (!n && !top_decoder_end(&t->decoder) && !top_left_early(t))
		return error_set(err, -ECHILD, "the process that decodes has failed");
	return top_take_frames(t, err);
}

/* "top-20261127-235959.traced"; a number follows the time of a second one. */
static void top_snapshot(struct top *t)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT, line = BUF_INIT;
	char clock[32], path[64];
	time_t now = time(NULL);
	struct tm tm;

	strftime(clock, sizeof(clock), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	if (t->snapshots++)
		snprintf(path, sizeof(path), "top-%s-%u.traced", clock, t->snapshots);
	else
		snprintf(path, sizeof(path), "top-%s.traced", clock);
	if (top_keep_save(&t->keep, path, &err) < 0)
		buf_printf(&text, "no snapshot: %s", err.message ?: "out of memory");
	else
		buf_printf(&text, "wrote %s", path);
	buf_visible(&line, buf_string(&text) ?: "out of memory", sizeof(t->view.message) - 1);
	snprintf(t->view.message, sizeof(t->view.message), "%s", buf_string(&line) ?: "");
}

static int top_end(struct top *t, struct error *err)
{
	if (t->on_screen)
		top_screen_close();
	t->on_screen = false;
	return top_session_stop(&t->session, err);
}

static int top_read_keys(struct top *t, struct error *err)
{
	enum top_action action = TOP_NOTHING;
	int key, r;

	while (action != TOP_QUIT && (key = top_screen_key()) >= 0) {
		enum top_action next = top_view_key(&t->view, key);

		if (next == TOP_SNAPSHOT)
			top_snapshot(t);
		action = MAX(action, next);
	}
	if (action == TOP_QUIT)
		t->quits = true;
	r = action == TOP_NOTHING || t->quits ? 0 : top_show(t, err);
	return r;
}

static int top_read_signal(struct top *t, struct error *err)
{
	struct signalfd_siginfo info;
	size_t rows, width;

	if (read(t->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGALRM && !t->on_screen) {
		top_session_leave(&t->session);
		return 0;
	}
	if (info.ssi_signo != SIGWINCH) {
		t->interrupts++;
		t->quits = true;
		return 0;
	}
	if (!t->on_screen)
		return 0;
	top_screen_resize();
	top_screen_size(&rows, &width);
	top_view_resize(&t->view, rows, width);
	return top_show(t, err);
}

static int top_open_signals(struct error *err)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGWINCH };
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? error_errno(err, -errno, "signalfd") : fd;
}

/* Waits for one of the four to have something, and takes it. */
static int top_turn(struct top *t, struct error *err)
{
	struct pollfd fds[] = {
		{ .fd = t->signal_fd, .events = POLLIN },
		{ .fd = t->decoded ? -1 : t->decoder.frames, .events = POLLIN },
		{ .fd = t->session.finished ? -1 : top_session_fd(&t->session), .events = POLLIN },
		{ .fd = t->on_screen ? STDIN_FILENO : -1, .events = POLLIN },
	};
	int r = 0;

	/* Tells the decoder that the file grows no more. */
	if (t->session.finished)
		t->decoder.stream = close_fd(t->decoder.stream);
	if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		return errno == EINTR ? 0 : error_errno(err, -errno, "poll");
	if (fds[2].revents)
		r = top_session_receive(&t->session, err);
	if (r == 0 && fds[1].revents)
		r = top_read_frames(t, err);
	if (r == 0 && fds[3].revents) {
		/* The terminal is gone. */
		t->quits |= !(fds[3].revents & POLLIN);
		r = top_read_keys(t, err);
	}
	if (r == 0 && fds[0].revents)
		r = top_read_signal(t, err);
	return r;
}

static int top_loop(struct top *t, struct error *err)
{
	int r = top_session_receive(&t->session, err);

	while (r == 0 && t->interrupts < 2 && !(t->decoded && t->session.finished)) {
		r = top_turn(t, err);
		if (r == 0 && t->quits && !t->session.stopping)
			r = top_end(t, err);
		/* Nobody waits for the end of a session that goes on. */
		if (t->quits && t->session.watched)
			break;
	}
	return r;
}

/* A running session has its own choice of events. */
static int top_check_session(const struct options *o, struct error *err)
{
	const char *other = o->event_count	  ? "event"
			    : o->profile	  ? "profile"
			    : o->pid_count	  ? "pid"
			    : o->cpus		  ? "cpus"
			    : o->name		  ? "name"
			    : o->buffer_bytes	  ? "buffer"
			    : o->max_memory	  ? "max-memory"
			    : o->max_cpu_permille ? "max-cpu"
			    : o->shed.count	  ? "shed"
						  : NULL;

	if (!o->session || !other)
		return 0;
	error_set(err, -EINVAL, "--session and --%s exclude each other", other);
	return error_hint(err, "a running session records what it was started for");
}

/* A session that is not our own has its own end. */
static void top_end_later(const struct options *o)
{
	/* 0 would be no timer. */
	const uint64_t us = MAX(o->duration_ns / NSEC_PER_USEC, UINT64_C(1));
	const struct itimerval in = { .it_value = { (time_t)(us / USEC_PER_SEC),
						    (suseconds_t)(us % USEC_PER_SEC) } };

	if (o->session && o->duration_ns)
		setitimer(ITIMER_REAL, &in, NULL);
}

static int top_start(struct top *t, struct error *err)
{
	struct options recorded = *t->o;
	int r;

	if (!recorded.event_count && !recorded.profile && !recorded.tracer &&
	    !recorded.hists.count && !recorded.counts_sql) {
		recorded.events = (struct event_option *)(uintptr_t)top_usual_events;
		recorded.event_count = ARRAY_SIZE(top_usual_events);
	}
	r = top_keep_init(&t->keep, err);
	/* First the decoder: it must not have the connection to the daemon. */
	if (r == 0)
		r = top_decoder_start(&t->decoder, &t->reports, t->keep.fd, err);
	if (r < 0)
		return r;
	t->signal_fd = top_open_signals(err);
	if (t->signal_fd < 0)
		return t->signal_fd;
	top_end_later(t->o);
	r = t->o->session
		    ? top_session_watch(&t->session, t->o, t->decoder.stream, err)
		    : top_session_start(&t->session, &recorded, t->decoder.stream, t->keep.fd, err);
	if (!t->session.in_file)
		t->decoder.stream = close_fd(t->decoder.stream);
	return r;
}

/* The terminal, unless lines are wanted or it can't show a page. */
static void top_open_screen(struct top *t)
{
	size_t rows, width;

	if (t->o->batch || !top_screen_is_possible())
		return;
	if (!top_screen_is_built())
		cli_warn("built without ncurses: showing lines (--batch)");
	t->on_screen = top_screen_open() == 0;
	if (!t->on_screen)
		return;
	top_screen_size(&rows, &width);
	top_view_resize(&t->view, rows, width);
}

static int top_run(const struct options *o)
{
	_cleanup_(top_deinit) struct top t = {
		.o = o,
		.keep.fd = -EBADF,
		.decoder = { .frames = -EBADF, .stream = -EBADF },
		.signal_fd = -EBADF,
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	int r;

	top_view_init(&t.view, &t.decayed);
	t.view.other = &t.decay.windows[0];
	t.view.top = o->top;
	t.view.min_ns = o->min_ns;
	if (o->sort)
		top_view_sort_by(&t.view, o->sort);
	if (top_check_session(o, &err) < 0 || top_take_names(&t, &err) < 0)
		return cli_usage(&err);
	if (top_start(&t, &err) < 0)
		return cli_fail(&err);
	top_open_screen(&t);
	r = t.on_screen ? top_show(&t, &err) : 0;
	if (r == 0)
		r = top_loop(&t, &err);
	if (t.on_screen)
		top_screen_close();
	t.on_screen = false;
	if (r == 0 && t.session.watched && !t.quits && !t.session.left && !o->quiet)
		cli_warn("session %s has ended", t.session.name);
	if (r == 0 && t.quits && !t.shown && o->batch && !o->quiet)
		cli_warn("it ended before its first table, which comes after two seconds");
	if (r == 0 && top_left_early(&t))
		cli_warn("no events of session %s came within -t: give it 2s or more",
			 t.session.name);
	return r < 0 ? cli_fail(&err) : CLI_WHOLE;
}

static const struct option_text top_texts[] = {
	{ OPT_DURATION, "end after this time: 10s, 500ms, 2m, 1h" },
	{ OPT_SESSION, "show this running session instead of recording" },
	{ 0 },
};

const struct command command_top = {
	.name = "top",
	.synopsis = "[TABLE...] [-e GLOB | --session SESSION] [--batch]",
	.summary = "what tasks, interrupts and system calls do now, each second",
	.text = "Records, and shows the tables sched, irq, syscalls and counts of each second.\n"
		"Without a selection it records what these need: switches and wake-ups, "
		"interrupts\n"
		"and all system calls. --batch, or no terminal: prints lines.\n"
		"--session shows what a running session records, from now on.\n"
		"\n"
		"  TAB, 1 to 9  table            < >   column to sort by\n"
		"  f            freeze           /     only rows with a text\n"
		"  d            decayed, or only the last second\n"
		"  s            write the last ten seconds to a .traced\n"
		"  q            quit             arrows, page up and down: scroll\n"
		"\n"
		"  tracectl top -e sched\n"
		"  tracectl top --batch --top 5 -t 10s sched",
	.texts = top_texts,
	.options = OPTION_SET(OPTION(DURATION), OPTION(EVENT), OPTION(FILTER), OPTION(PROFILE),
			      OPTION(PID), OPTION(CPUS), OPTIONS_COST, OPTION(NAME),
			      OPTION(SESSION), OPTION(BY), OPTION(SORT), OPTION(TOP), OPTION(MIN),
			      OPTION(BATCH), OPTION(DECAY), OPTION(QUIET)),
	.own = OPTION_SET(OPTION(BATCH), OPTION(DECAY)),
	.args_max = TOP_TABLES_MAX,
	.run = top_run,
};
