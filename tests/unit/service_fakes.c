/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service_fakes.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/io.h"
#include "daemon/capture/plan/hists.h"
#include "daemon/capture/plan/spare.h"
#include "daemon/capture/tracefs/events.h"
#include "formats/formats.h"
#include "traced/stream.h"

struct fakes fakes = { .data_fd = -1 };

struct capture {
	int fd, stream_fd;
	unsigned slices, due; /* armed and not undone; to be armed */
	uint64_t bytes, started;
};

struct capture_spare {
	unsigned number;
};

struct tracefs {
	int unused;
};

static void note_first(char *to, size_t size, const struct capture_words *words)
{
	snprintf(to, size, "%s", words->count ? words->items[0] : "");
}

int capture_spare_new(struct capture_spare **ret, const struct capture_env *env _unused_,
		      unsigned number, const struct capture_request *request, struct error *err)
{
	if (fakes.spare_error)
		return error_set(err, fakes.spare_error, "no room for a spare");
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return error_errno(err, -ENOMEM, "fake");
	(*ret)->number = number;
	snprintf(fakes.spare_clock, sizeof(fakes.spare_clock), "%s", request->clock);
	fakes.spare_buffer = request->buffer_bytes;
	__atomic_add_fetch(&fakes.spares, 1, __ATOMIC_SEQ_CST);
	return 0;
}

struct capture_spare *capture_spare_free(struct capture_spare *s)
{
	if (s)
		__atomic_sub_fetch(&fakes.spares, 1, __ATOMIC_SEQ_CST);
	free(s);
	return NULL;
}

uint64_t capture_spare_bytes(const struct capture_spare *s)
{
	return 4096 * s->number;
}

int capture_begin(struct capture **ret, struct capture_spare **spare,
		  const struct capture_env *env _unused_, const struct capture_request *request,
		  struct error *err)
{
	struct capture *c;

	fakes.spares_taken += *spare != NULL;
	*spare = capture_spare_free(*spare);
	fakes.events[0] = '\0';
	fakes.event_count = request->event_count;
	for (size_t i = 0; i < request->event_count; i++) {
		if (i)
			strcat(fakes.events, " ");
		strcat(fakes.events, request->events[i].glob);
	}
	note_first(fakes.only, sizeof(fakes.only), &request->bounds.only);
	note_first(fakes.never, sizeof(fakes.never), &request->bounds.never);
	fakes.hide_addresses = request->bounds.hide_addresses;
	fakes.names_max = request->functions.names_max;
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_errno(err, -ENOMEM, "fake");
	c->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->stream_fd = -1;
	c->due = __atomic_load_n(&fakes.arming_ms, __ATOMIC_SEQ_CST);
	close_fd(fakes.data_fd);
	fakes.data_fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
	__atomic_add_fetch(&fakes.captures, 1, __ATOMIC_SEQ_CST);
	*ret = c;
	return 0;
}

/* In slices of a millisecond. */
int capture_arm(struct capture *c, struct error *err)
{
	if (c->slices >= c->due)
		return fakes.new_error ? error_set(err, fakes.new_error, "no such event") : 0;
	c->slices++;
	usleep(1000);
	return 1;
}

bool capture_undo(struct capture *c)
{
	return c->slices && c->slices--;
}

static int put(struct capture *c, int fd, const char *text)
{
	c->bytes += strlen(text);
	return write_full(fd, text, strlen(text));
}

int capture_prepare(struct capture *c _unused_, int stream_fd _unused_, struct error *err _unused_)
{
	return 0;
}

int capture_start(struct capture *c, int stream_fd, struct error *err)
{
	if (fakes.start_error)
		return error_set(err, fakes.start_error, "can't start");
	c->stream_fd = stream_fd;
	c->started = now_ns(CLOCK_BOOTTIME);
	return stream_fd < 0 ? 0 : put(c, stream_fd, STREAM_MAGIC);
}

uint64_t capture_started_ns(const struct capture *c)
{
	return c->started;
}

enum capture_end capture_cancel_reason(const struct capture *c _unused_)
{
	return CAPTURE_END_STOPPED;
}

int capture_fd(const struct capture *c)
{
	return c->fd;
}

uint64_t capture_deadline(const struct capture *c _unused_)
{
	return now_ns(CLOCK_BOOTTIME) + 50 * NSEC_PER_MSEC;
}

int capture_dispatch(struct capture *c, struct error *err)
{
	uint64_t value;

	fakes.dispatches++;
	if (fakes.dispatch_error)
		return error_set(err, fakes.dispatch_error, "the stream takes no more");
	if (fakes.always_more)
		return 1;
	if (read(c->fd, &value, sizeof(value)) == sizeof(value) && c->stream_fd >= 0)
		return put(c, c->stream_fd, "data ");
	return 0;
}

/* A flush after whatever was moved. */
uint64_t capture_flushes(const struct capture *c)
{
	return c->bytes;
}

uint64_t capture_bytes(const struct capture *c)
{
	return c->bytes;
}

int capture_flush(struct capture *c, struct error *err _unused_)
{
	c->bytes++;
	return 0;
}

void capture_turn_off(struct capture *c _unused_)
{
	fakes.turned_off++;
}

static void pass_gate(void)
{
	fakes.at_gate++;
	for (int ms = 0; ms < 20000 && fakes.gate_closed; ms++)
		usleep(1000);
	fakes.at_gate--;
}

int capture_stop(struct capture *c, enum capture_end reason, struct error *err)
{
	char text[16];

	pass_gate();
	if (fakes.stop_error)
		return error_set(err, fakes.stop_error, "can't stop");
	snprintf(text, sizeof(text), "end %d", (int)reason);
	return c->stream_fd < 0 ? 0 : put(c, c->stream_fd, text);
}

int capture_snapshot(struct capture *c, int stream_fd, enum capture_end reason, struct error *err)
{
	char text[64];

	pass_gate();
	snprintf(text, sizeof(text),
		 "%s"
		 "snapshot %d",
		 STREAM_MAGIC, (int)reason);
	if (fakes.rest && ftruncate(stream_fd, (off_t)fakes.rest) < 0)
		return error_set(err, -errno, "can't write the names");
	return put(c, stream_fd, text);
}

void capture_watch(struct capture *c _unused_, bool watched _unused_)
{
}

int capture_prepare_part(struct capture *c _unused_, struct error *err _unused_)
{
	return 0;
}

int capture_take_part(struct capture *c _unused_, struct capture_part *ret,
		      struct error *err _unused_)
{
	*ret = (struct capture_part){ .bytes = 1 };
	return 0;
}

int capture_count_held(struct capture *c _unused_, uint64_t *ret)
{
	*ret = fakes.held;
	return 0;
}

int capture_append(struct capture *c _unused_, enum chunk_type type _unused_,
		   const struct iovec *iov _unused_, int count _unused_)
{
	return 0;
}

int capture_note(struct capture *c _unused_, const char *text _unused_,
		 enum note_kind kind _unused_)
{
	return 0;
}

int capture_mark(struct capture *c _unused_, const char *text, struct error *err)
{
	if (fakes.marks_refused) {
		fakes.marks_refused--;
		return error_set(err, -EBADF, "no room for a mark");
	}
	fakes.marks++;
	snprintf(fakes.last_mark, sizeof(fakes.last_mark), "%s", text);
	return 0;
}

int capture_sync(struct capture *c _unused_, const char *id, struct capture_sync *ret,
		 struct error *err)
{
	if (fakes.marks_refused) {
		fakes.marks_refused--;
		return error_set(err, -EEXIST, "it has it already");
	}
	snprintf(fakes.last_mark, sizeof(fakes.last_mark), "%s", id);
	*ret = (struct capture_sync){ .before_ns = 100 + 10 * fakes.marks,
				      .after_ns = 105 + 10 * fakes.marks };
	fakes.marks++;
	return 0;
}

void capture_get_stats(struct capture *c, struct capture_stats *ret)
{
	static const struct capture_cpu_stats cpus[] = { { .cpu = 0, .events = 3 },
							 { .cpu = 1, .offline = true } };
	static const char *const warnings[] = { "a warning" };

	*ret = (struct capture_stats){
		.start_boot_ns = c->started,
		.events = 3,
		.bytes = c->bytes,
		.reader = "fake",
		.instance = "traced-fake",
		.cpus = cpus,
		.cpu_count = ARRAY_SIZE(cpus),
		.warnings = warnings,
		.warning_count = 1,
	};
}

struct capture *capture_free(struct capture *c)
{
	if (c) {
		__atomic_sub_fetch(&fakes.captures, 1, __ATOMIC_SEQ_CST);
		close_fd(c->fd);
		free(c);
	}
	return NULL;
}

/* Runs in a process of its own. */
int capture_extract(const struct capture_env *env _unused_, const char *instance, int stream_fd,
		    struct capture_stats *ret, struct error *err)
{
	const char *name = instance ?: "top";

	if (strcmp(name, "absent") == 0)
		return error_set(err, -ENOENT, "no instance \"%s\"", name);
	*ret = (struct capture_stats){ .events = 1 };
	write_full(stream_fd, STREAM_MAGIC, STREAM_MAGIC_SIZE);
	return write_full(stream_fd, name, strlen(name));
}

int capture_recover(const struct capture_env *env _unused_, struct buf *kept _unused_,
		    struct error *err _unused_)
{
	return 0;
}

int tracefs_open(struct tracefs **ret, const char *root, struct error *err)
{
	if (root && strcmp(root, "/nowhere") == 0)
		return error_set(err, -ENODEV, "no tracefs");
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : error_errno(err, -ENOMEM, "fake");
}

dev_t tracefs_device(const struct tracefs *fs _unused_)
{
	return 0;
}

int tracefs_dup(struct tracefs **ret, const struct tracefs *fs _unused_)
{
	return tracefs_open(ret, NULL, NULL);
}

struct tracefs *tracefs_free(struct tracefs *fs)
{
	free(fs);
	return NULL;
}

int tracefs_events(struct tracefs *fs _unused_, const char *const **ret, size_t *ret_count,
		   struct error *err _unused_)
{
	static const char *const names[] = { "irq:irq_handler_entry", "sched:sched_switch",
					     "sched:sched_waking" };

	*ret = names;
	*ret_count = ARRAY_SIZE(names);
	return 0;
}

int tracefs_list(const struct tracefs *fs _unused_, enum tracefs_list what, struct buf *out)
{
	buf_puts(out, what == TRACEFS_CLOCKS ? "local boot" : "nop");
	return 0;
}

int tracefs_format(const struct tracefs *fs _unused_, const char *event, struct buf *out)
{
	buf_printf(out, "format of %s", event);
	return 0;
}

bool event_glob_matches(const char *glob, const char *name)
{
	return strncmp(glob, name, strlen(glob)) == 0;
}

bool capture_counts_only(const struct capture_request *request)
{
	return request->hists.count && !request->event_count;
}

uint64_t hists_memory(const struct capture_words *specs)
{
	return (uint64_t)specs->count << 20;
}

const struct export_format *export_format_find(const char *name, const char *path _unused_)
{
	static const struct export_format formats[] = {
		{ .name = "watch", .only_live = true },
		{ .name = "txt" },
		{ .name = "files", .directory = true },
		{ .name = "fail" },
		{ .name = "crash" },
		{ .name = "hang" },
		{ .name = "mute" },
		{ .name = "lie" },
		{ .name = "raw", .raw_records = true },
		{ .name = "stream", .raw_records = true, .recording = true },
		{ .name = "late" },
	};

	for (size_t i = 0; name && i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

/* Copies what comes; of what it copied it needs nothing but the magic. */
static int follow_stream(int stream_fd, int out_fd, const struct export_follow *follow,
			 struct export_result *ret, struct error *err)
{
	int r = 1;

	for (;;) {
		char data[512];
		ssize_t n = read(stream_fd, data, sizeof(data));

		if (n > 0 && write_full(out_fd, data, (size_t)n) < 0)
			return error_set(err, -EPIPE, "nobody reads");
		ret->bytes += (uint64_t)MAX(n, (ssize_t)0);
		if (n > 0)
			continue;
		if (r <= 0)
			break;
		r = follow->wait(follow->userdata, STREAM_MAGIC_SIZE, ret->bytes);
	}
	ret->events = 3;
	ret->export_ns = 1;
	return r;
}

int export_stream(int stream_fd, int out_fd, const struct export_options *options,
		  struct export_result *ret, struct error *err)
{
	char data[512];
	ssize_t n;

	*ret = (struct export_result){ 0 };
	if (strcmp(options->format, "fail") == 0) {
		error_set(err, -ENOSPC, "no space for the output");
		return error_hint(err, "make room");
	}
	if (strcmp(options->format, "lie") == 0)
		return error_set(err, -70000, "no errno");
	if (strcmp(options->format, "crash") == 0)
		raise(SIGKILL);
	if (strcmp(options->format, "hang") == 0)
		for (;;)
			pause();
	if (strcmp(options->format, "mute") == 0)
		_exit(0);
	if (options->follow) {
		int r = follow_stream(stream_fd, out_fd, options->follow, ret, err);

		return r == 0 && strcmp(options->format, "late") == 0
			       ? error_set(err, -ENOSPC, "no space at the end")
			       : r;
	}
	n = read_full(stream_fd, data, sizeof(data));
	ret->bytes = (uint64_t)n;
	ret->events = 3;
	ret->export_ns = 1;
	return write_full(out_fd, data, (size_t)n) < 0 ? error_set(err, -EPIPE, "nobody reads") : 0;
}

void export_result_deinit(struct export_result *r _unused_)
{
}
