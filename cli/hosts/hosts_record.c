/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl -H A -H B record`: the far side of each host is `tracectl record --control` (orders.h).
 *
 *     ARMING ──@armed──▶ ARMED ──go──▶ RECORDING ──end of its output──▶ ENDED
 *
 * An armed host records already. Once all are armed, those that did not fail get "go": what was
 * recorded before is left out, so all begin at one time. They also end at one time, by "stop". From
 * ARMED to the end each is asked for its clock. Nothing that a host sends is decoded here: its
 * capture goes into a nameless file, of which only chunk headers are read.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/io.h"
#include "base/plural.h"
#include "base/vec.h"
#include "far.h"
#include "far_words.h"
#include "formats/formats.h"
#include "hosts.h"
#include "hosts_write.h"
#include "input.h"
#include "join.h"
#include "phc.h"
#include "push.h"
#include "reports/report.h"
#include "trace/host_clock.h"

/* A host that has not said @here by then has failed. Sending a program has its own limit. */
#define ANSWER_NS (15 * NSEC_PER_SEC)
/* The longest time from @here to @armed: a slow board needs seconds to enable many events. */
#define ARM_NS (120 * NSEC_PER_SEC)
/* A host that sends less than FAR_HEARD_BYTES in that time after "stop", and goes on, has failed.
 */
#define END_NS (30 * NSEC_PER_SEC)
/* The longest wait for the exchanges before the start. */
#define TIES_FIRST_NS (2 * NSEC_PER_SEC)

struct hosts_recording {
	const struct options *o;
	struct far *far;
	size_t count;
	int signal_fd;
	int phc;			   /* our PTP clock; -EBADF: none */
	uint64_t phc_bound;		   /* ns: by how much the hosts' ones differ from it */
	uint64_t began_ns, go_ns, stop_ns; /* CLOCK_MONOTONIC; 0: not yet */
	uint64_t start;			   /* as go_ns, CLOCK_BOOTTIME */
	bool next_leaves;      /* a signal from now on leaves the hosts that have not ended */
	bool own_end;	       /* the hosts' command ends the recording */
	bool decodes;	       /* the captures are read here, which says what they lack */
	struct word_list told; /* owned, as are its strings */
};

static void hosts_recording_deinit(struct hosts_recording *h)
{
	for (size_t i = 0; i < h->count; i++)
		far_deinit(&h->far[i]);
	for (size_t i = 0; i < h->told.count; i++)
		free((char *)(uintptr_t)h->told.items[i]);
	free(h->told.items);
	free(h->far);
	close_fd(h->signal_fd);
	close_fd(h->phc);
}

/* Both of its outputs have ended. */
static void far_end(struct hosts_recording *h, struct far *f)
{
	int status;

	f->process.in = close_fd(f->process.in);
	status = host_wait(&f->process);
	if (f->state < FAR_RECORDING && push_explain(f->name->spec, status, h->o->push))
		far_fail(f, "%s", push_explain(f->name->spec, status, h->o->push));
	else if (f->state < FAR_RECORDING)
		far_fail(f, "it failed before the start (exit status %d)", status);
	else if (status != CLI_WHOLE && status != CLI_MISSING && !h->own_end)
		far_fail(f,
			 "the connection or the recorder ended with status %d: its part is "
			 "incomplete",
			 status);
	else if (!f->bytes)
		far_fail(f, "it sent no capture");
	else if (f->unpack && !far_unpack_is_whole(f->unpack))
		far_fail(f, "its compressed capture was cut: its part is incomplete");
	else if (!h->stop_ns && !h->own_end)
		cli_warn("%s: it ended before the others", f->name->label);
	/* With a command of its own it ends as the command does. */
	f->lacks = status == CLI_MISSING && !h->own_end && !f->failed;
	f->state = FAR_ENDED;
}

static void hosts_go(struct hosts_recording *h)
{
	h->go_ns = far_now();
	h->start = now_ns(CLOCK_BOOTTIME);
	for (size_t i = 0; i < h->count; i++) {
		if (h->far[i].state != FAR_ARMED)
			continue;
		far_order(&h->far[i], h->decodes ? "quiet\ngo\n" : "go\n");
		h->far[i].state = FAR_RECORDING;
	}
	if (!h->o->duration_ns && !h->own_end && !h->o->quiet)
		cli_warn("recording until Ctrl-C");
}

static void hosts_stop(struct hosts_recording *h)
{
	if (h->stop_ns)
		return;
	h->stop_ns = far_now();
	for (size_t i = 0; i < h->count; i++) {
		h->far[i].heard_ns = h->stop_ns;
		h->far[i].heard_bytes = h->far[i].bytes;
		if (h->far[i].state != FAR_ENDED)
			far_order(&h->far[i], "stop\n");
	}
}

static bool far_is_ready(const struct far *f, uint64_t at)
{
	return f->failed ||
	       (f->state == FAR_ARMED && (f->clock.ties[TIES_EXCHANGES].count >= EXCHANGES_FIRST ||
					  at - f->armed_ns > TIES_FIRST_NS));
}

/* Begins once all are ready. False: there is nothing to begin. */
static bool hosts_try_go(struct hosts_recording *h)
{
	size_t failed = 0;

	for (size_t i = 0; i < h->count; i++) {
		if (!far_is_ready(&h->far[i], far_now()))
			return true;
		failed += h->far[i].failed;
	}
	if (failed == h->count || (failed && h->o->require_all))
		return false;
	hosts_go(h);
	return true;
}

static void far_check_time(struct hosts_recording *h, struct far *f, uint64_t at)
{
	uint64_t limit = f->here_ns ? f->here_ns + ARM_NS : h->began_ns + ANSWER_NS;

	if (f->state == FAR_ARMING && at > MAX(limit, f->push.limit_ns))
		far_fail(f, "it is not ready after %" PRIu64 " s",
			 (uint64_t)((at - h->began_ns) / NSEC_PER_SEC));
	if (h->stop_ns && at - f->heard_ns > END_NS)
		far_fail(f,
			 "it does not end, and sent less than %u KiB in %" PRIu64
			 " s: its part is incomplete",
			 FAR_HEARD_BYTES >> 10, END_NS / NSEC_PER_SEC);
	else if (h->stop_ns && at - h->stop_ns > END_NS && !f->slow_told) {
		f->slow_told = true;
		h->next_leaves = true;
		cli_warn("%s: it still sends its capture; Ctrl-C leaves the rest of it",
			 f->name->label);
	}
	if (f->failed)
		far_drop(f);
	else if (f->state >= FAR_ARMED && !f->clock.asked && at >= f->clock.ask_at &&
		 f->process.err >= 0)
		far_ask(f);
}

/* False: all have ended, or nothing can begin. */
static bool hosts_check(struct hosts_recording *h)
{
	size_t ended = 0;

	for (size_t i = 0; i < h->count; i++) {
		struct far *f = &h->far[i];

		if (f->state != FAR_ENDED)
			far_check_time(h, f, far_now());
		if (f->state != FAR_ENDED && f->process.out < 0 && f->process.err < 0)
			far_end(h, f);
		ended += f->state == FAR_ENDED;
		if (f->failed && h->o->require_all && h->go_ns)
			hosts_stop(h);
	}
	if (!h->go_ns && !hosts_try_go(h))
		return false;
	if (h->go_ns && h->o->duration_ns && far_now() - h->go_ns >= h->o->duration_ns)
		hosts_stop(h);
	return ended < h->count;
}

static int hosts_wait_ms(const struct hosts_recording *h)
{
	uint64_t at = far_now(), next = at + NSEC_PER_SEC / 2;

	if (h->go_ns && !h->stop_ns && h->o->duration_ns)
		next = MIN(next, h->go_ns + h->o->duration_ns);
	for (size_t i = 0; i < h->count; i++) {
		if (far_is_pending(&h->far[i]))
			return 0;
		if (h->far[i].state >= FAR_ARMED && h->far[i].state < FAR_ENDED &&
		    h->far[i].process.err >= 0 && !h->far[i].clock.asked)
			next = MIN(next, h->far[i].clock.ask_at);
	}
	return next <= at ? 0 : (int)((next - at) / NSEC_PER_MSEC) + 1;
}

static bool hosts_on_signal(struct hosts_recording *h)
{
	struct signalfd_siginfo info;

	if (read(h->signal_fd, &info, sizeof(info)) != sizeof(info))
		return true;
	if (!h->go_ns || h->next_leaves)
		return false;
	h->next_leaves = true;
	hosts_stop(h);
	return true;
}

/* Returns 0 or -errno; -ECANCELED: the user gave up. */
static int hosts_loop(struct hosts_recording *h, struct error *err)
{
	_cleanup_free_ struct pollfd *fds = calloc(1 + FAR_FDS * h->count, sizeof(*fds));
	_cleanup_free_ char *piece = malloc(FAR_PIECE);

	if (!fds || !piece)
		return error_errno(err, -ENOMEM, "hosts");
	while (hosts_check(h)) {
		fds[0] = (struct pollfd){ .fd = h->signal_fd, .events = POLLIN };
		for (size_t i = 0; i < h->count; i++)
			far_poll(&h->far[i], fds + 1 + FAR_FDS * i);
		if (poll(fds, 1 + FAR_FDS * h->count, hosts_wait_ms(h)) < 0) {
			if (errno != EINTR)
				return error_errno(err, -errno, "poll");
			continue;
		}
		/* First the clocks: what is read later is late. */
		for (size_t i = 0; i < h->count; i++)
			if (fds[1 + FAR_FDS * i].revents)
				far_read_lines(&h->far[i]);
		for (size_t i = 0; i < h->count; i++)
			far_move_data(&h->far[i], fds + 1 + FAR_FDS * i, piece);
		if (fds[0].revents && !hosts_on_signal(h))
			return h->go_ns ? 0 : error_set(err, -ECANCELED, "cancelled");
	}
	return 0;
}

static int refuse(const struct options *o, struct error *err)
{
	static const int none[] = { OPT_ROTATE,	     OPT_KEEP,	    OPT_MERGE,
				    OPT_RING,	     OPT_STATUS,    OPT_STREAM,
				    OPT_MERGE_CLOCK, OPT_SYNC_FILE, OPT_CONTROL };

	for (size_t i = 0; i < o->typed_count; i++)
		for (size_t k = 0; k < ARRAY_SIZE(none); k++)
			if (o->typed[i].id == none[k])
				return error_set(err, -EINVAL, "record -H: --%s does not work yet",
						 option_specs[none[k]].name);
	return o->reports.count ? report_after_check(o, err) : 0;
}

static int hosts_open(struct hosts_recording *h, const struct host_list *hosts, struct error *err)
{
	_cleanup_far_words_ struct far_words words = { 0 };
	sigset_t set;

	h->far = calloc(hosts->count, sizeof(*h->far));
	if (!h->far || far_words_init(&words, h->o) < 0)
		return error_errno(err, -ENOMEM, "hosts");
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	h->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (h->signal_fd < 0)
		return error_errno(err, -errno, "signalfd");
	h->began_ns = far_now();
	for (; h->count < hosts->count; h->count++) {
		struct far *f = &h->far[h->count];

		*f = (struct far){ .name = &hosts->items[h->count],
				   .process = HOST_PROCESS_INIT,
				   .push = PUSH_INIT(h->o),
				   .told = &h->told,
				   .clock = EXCHANGE_INIT(h->phc, h->phc_bound),
				   .file = input_create_temp() };
		if (f->file < 0)
			return error_errno(err, f->file, "cannot create a temporary file in %s",
					   input_temp_place());
	}
	for (size_t i = 0; i < h->count; i++) {
		struct far *f = &h->far[i];
		int r = host_run(&f->process, f->name->spec, words.items, err);

		if (r < 0)
			return r;
		fcntl(f->process.in, F_SETFL, O_NONBLOCK);
	}
	return 0;
}

static void read_timeline(uint8_t timeline[HOST_TIMELINE_BYTES])
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *c;
	unsigned digits = 0;

	memset(timeline, 0, HOST_TIMELINE_BYTES);
	if (read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &text) < 0 ||
	    !(c = buf_string(&text)))
		return;
	for (; *c && digits < 2 * HOST_TIMELINE_BYTES; c++) {
		unsigned value = *c >= '0' && *c <= '9' ? (unsigned)(*c - '0')
							: (unsigned)((*c | 32) - 'a' + 10);

		if (value > 15)
			continue;
		timeline[digits / 2] = (uint8_t)(timeline[digits / 2] << 4 | value);
		digits++;
	}
}

/* Completes the captures. Returns how many there are. */
static size_t hosts_close_captures(struct hosts_recording *h, struct host_input *inputs)
{
	struct host_origin origin = { .start = h->start };
	size_t count = 0;

	read_timeline(origin.timeline);
	for (size_t i = 0; i < h->count; i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct far *f = &h->far[i];

		if (!f->bytes)
			continue;
		snprintf(origin.label, sizeof(origin.label), "%s", f->name->label);
		if (host_origin_append(f->file, &origin, f->clock.ties, &err) < 0)
			far_fail(f, "%s", err.message ?: "its capture is damaged");
		else
			inputs[count++] = (struct host_input){ f->file, f->name->label };
	}
	return count;
}

static int hosts_write(struct hosts_recording *h, const char *out,
		       const struct export_format *format, struct error *err)
{
	struct host_input inputs[HOSTS_MAX];
	size_t count, failed = 0, lacking = 0;
	int status;

	count = hosts_close_captures(h, inputs);
	for (size_t i = 0; i < h->count; i++)
		failed += h->far[i].failed;
	if (!count)
		return cli_fail((error_set(err, -ENODATA, "no host has recorded anything"), err));
	if (failed && h->o->require_all)
		return cli_fail((error_set(err, -ECANCELED, "%zu of %zu host%s failed", failed,
					   h->count, plural_s(h->count)),
				 err));
	status = hosts_write_captures(h->o, inputs, count, h->count > 1, out, format, err);
	if (status != CLI_WHOLE && status != CLI_MISSING && strcmp(out, "-") != 0)
		hosts_keep_captures(inputs, count);
	/* A capture that is decoded here shows what is missing, mostly. */
	for (size_t i = 0; i < h->count && (status == CLI_WHOLE || !h->decodes); i++) {
		lacking += h->far[i].lacks;
		if (h->far[i].lacks)
			cli_warn("%s: its recording lacks something (exit status %d)",
				 h->far[i].name->label, CLI_MISSING);
	}
	if (status == CLI_WHOLE && failed) {
		cli_warn("%zu of %zu host%s failed: %s %s, or a part of %s", failed, h->count,
			 plural_s(h->count),
			 h->o->reports.count && !h->o->output ? "the reports lack"
							      : "the file lacks",
			 plural(failed, "it", "them"), plural(failed, "it", "them"));
		status = CLI_MISSING;
	}
	return status == CLI_WHOLE && lacking ? CLI_MISSING : status;
}

int hosts_record(const struct options *before, const struct host_list *hosts, int argc, char **argv)
{
	_cleanup_options_ struct options o = { .socket = before->socket,
					       .require_all = before->require_all,
					       .push = before->push,
					       .push_from = before->push_from };
	_cleanup_(hosts_recording_deinit) struct hosts_recording h = { .o = &o,
								       .signal_fd = -EBADF,
								       .phc = -EBADF };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *own = NULL;
	const struct export_format *format;
	const char *out;
	int r;

	for (size_t i = 0; i < before->typed_count; i++)
		if (vec_push(o.typed, o.typed_count, o.typed_cap, before->typed[i]) < 0)
			return CLI_FAILED;
	if (options_parse(&o, argc, argv, &command_record, &(int){ 0 }, &err) < 0 ||
	    options_check(&o, &command_record, &err) < 0 || refuse(&o, &err) < 0)
		return cli_usage(&err);
	if (o.help) {
		help_command(&command_record);
		return CLI_WHOLE;
	}
	out = o.output ?: output_default(&o, hosts->count > 1 ? ".pftrace" : ".json", &own);
	if (!out)
		return cli_fail((error_errno(&err, -ENOMEM, "the output"), &err));
	format = export_format_find(o.format, out);
	if (!format) {
		error_set(&err, -EINVAL, "%s: its ending names no format", out);
		return cli_usage(&err);
	}
	if (hosts->count > 1 && !format->recording && join_check(&o, out, &err) < 0)
		return cli_usage(&err);
	r = o.output || !o.reports.count ? hosts_try_outputs(&o, hosts, out, format) : 0;
	if (r)
		return r;
	if (o.phc && (h.phc = phc_open(o.phc, &h.phc_bound, &err)) < 0)
		return cli_fail(&err);
	h.own_end = o.command != NULL;
	h.decodes = o.reports.count || !format->recording;
	o.told = &h.told;
	if (hosts_open(&h, hosts, &err) < 0 || hosts_loop(&h, &err) < 0)
		return cli_fail(&err);
	for (size_t i = 0; i < h.count; i++)
		if (h.far[i].state != FAR_ENDED) {
			far_fail(&h.far[i], "it was left: its part is incomplete");
			far_drop(&h.far[i]);
		}
	if (!h.go_ns)
		return cli_fail((error_set(&err, -ECANCELED, "nothing was recorded"), &err));
	return hosts_write(&h, out, format, &err);
}
