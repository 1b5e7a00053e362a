/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/exporter.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/io.h"
#include "daemon/capture/capture.h"
#include "daemon/service/follow.h"
#include "daemon/service/sandbox.h"
#include "formats/formats.h"

/* Where the descriptors lie in an exporter. */
enum { STREAM_FD = CHILD_FIRST_FD, OUT_FD, OTHER_FD };

/* Words before those of what is merged, the option not among them. */
#define ARGS_FIXED 14
_Static_assert(CHILD_FDS_MAX >= 3 + MERGING_FDS_MAX, "stream, output, follow, files");

/* Far above what a stream can become; ends a runaway. */
#define OUTPUT_FACTOR 256
#define OUTPUT_EXTRA (UINT64_C(1) << 30)
#define MEMORY_FACTOR 2
#define MEMORY_EXTRA (UINT64_C(4) << 30)
/* A thousand times what the slowest machine was seen to take. */
#define CPU_BYTES_PER_S (UINT64_C(16) << 10)
#define CPU_EXTRA_S 600

int exporter_spawn(struct child **ret, struct loop *loop, const struct exporter_request *request,
		   child_done_t done, void *userdata, struct error *err)
{
	char parent[16], bytes[24], ns[24], bound[24];
	const char *argv[1 + ARGS_FIXED + MERGING_ARGS_MAX + 1] = {
		EXPORTER_OPTION,
		request->format,
		request->raw_addresses ? "raw" : "hashed",
		request->tgid ? "tgid" : "plain",
		request->quiet ? "quiet" : "prompt",
		request->follow_fd >= 0 ? "follow" : "whole",
		parent,
		request->perfetto.legacy_generic ? "legacy" : "described",
		request->perfetto.plain_sched ? "off" : "on",
		perfetto_compression_name(request->perfetto.compression),
		function_view_name(request->function_view),
		bytes,
		ns,
		request->json_array ? "array" : "object",
		bound,
	};
	const struct merging *merging = request->merging;
	struct child_spec spec = {
		.what = "exporter",
		.argv = argv,
		.fds = { request->stream_fd, request->out_fd, request->follow_fd },
		.fd_count = request->follow_fd >= 0 ? 3 : 2,
		.service = request->service,
	};

	for (size_t i = 0; i < merging->word_count; i++)
		argv[1 + ARGS_FIXED + i] = merging->words[i];
	for (size_t i = 0; i < merging->fd_count; i++)
		spec.fds[spec.fd_count++] = merging->fds[i];
	snprintf(parent, sizeof(parent), "%d", request->service ? 0 : getpid());
	snprintf(bound, sizeof(bound), "%" PRIu64, request->bound_max_ns);
	snprintf(bytes, sizeof(bytes), "%" PRIu64, request->rotate.bytes);
	snprintf(ns, sizeof(ns), "%" PRIu64, request->rotate.ns);
	return child_spawn(ret, loop, &spec, done, userdata, err);
}

int extractor_spawn(struct child **ret, struct loop *loop, const char *tracefs_root,
		    const char *state_dir, const char *instance, int stream_fd, child_done_t done,
		    void *userdata, struct error *err)
{
	const char *argv[] = { EXTRACTOR_OPTION, instance, state_dir, tracefs_root ?: "", NULL };
	struct child_spec spec = {
		.what = "extractor",
		.argv = argv,
		.fds = { stream_fd },
		.fd_count = 1,
	};

	return child_spawn(ret, loop, &spec, done, userdata, err);
}

static void fill_error(Traced__Control__Error *e, const struct error *err)
{
	e->code = (uint32_t)err->code;
	if (err->message)
		e->message = err->message;
	if (err->hint)
		e->hint = err->hint;
}

static int finish_with_error(int result_fd, const struct error *err)
{
	Traced__Control__ExportResult message = TRACED__CONTROL__EXPORT_RESULT__INIT;
	Traced__Control__Error e = TRACED__CONTROL__ERROR__INIT;

	fill_error(&e, err);
	message.error = &e;
	return child_finish(result_fd, &message);
}

/* Pointers to rows, as protobuf-c wants them. */
static int finish_with_result(int result_fd, const struct export_result *result)
{
	Traced__Control__ExportResult message = TRACED__CONTROL__EXPORT_RESULT__INIT;
	_cleanup_free_ Traced__Control__LedgerRow *rows = NULL;
	_cleanup_free_ Traced__Control__LedgerRow **pointers = NULL;

	rows = calloc(result->ledger_count + 1, sizeof(*rows));
	pointers = calloc(result->ledger_count + 1, sizeof(*pointers));
	if (!rows || !pointers)
		return EXIT_FAILURE;
	for (size_t i = 0; i < result->ledger_count; i++) {
		const struct ledger_row *from = &result->ledger[i];

		traced__control__ledger_row__init(&rows[i]);
		rows[i].cpu = from->cpu;
		rows[i].written = from->written;
		rows[i].events = from->events;
		rows[i].lost_overrun = from->lost_overrun;
		rows[i].lost_other = from->lost_other;
		rows[i].gaps = from->gaps;
		rows[i].unread = from->unread;
		pointers[i] = &rows[i];
	}
	message.events = result->events;
	message.lost = result->lost;
	message.bytes = result->bytes;
	message.event_types = result->event_types;
	message.fallback_events = result->fallback_events;
	message.incomplete = result->incomplete;
	message.warnings = result->warnings;
	message.n_warnings = result->warning_count;
	message.export_ns = result->export_ns;
	message.cpu_ns = result->cpu_ns;
	message.peak_rss_bytes = result->peak_rss_bytes;
	message.span_ns = result->span_ns;
	message.own_events = result->own_events;
	message.ledger = pointers;
	message.n_ledger = result->ledger_count;
	return child_finish(result_fd, &message);
}

static int enter(const char *parent, bool follow, struct error *err)
{
	struct sandbox sandbox = { .drop = geteuid() == 0 };
	struct stat st;

	if (fstat(STREAM_FD, &st) < 0)
		return error_errno(err, -errno, "stream");
	sandbox.memory = MEMORY_EXTRA + MEMORY_FACTOR * (uint64_t)st.st_size;
	/* Nobody knows how much a stream will be that is being written. */
	if (!follow) {
		sandbox.file_max = OUTPUT_EXTRA + OUTPUT_FACTOR * (uint64_t)st.st_size;
		sandbox.cpu_s = CPU_EXTRA_S + (uint64_t)st.st_size / CPU_BYTES_PER_S;
	}
	sandbox.parent = (pid_t)strtol(parent, NULL, 10);
	if (sandbox.drop)
		sandbox.uid = sandbox_find_user();
	return sandbox_enter(&sandbox, err);
}

static int wait_for_more(void *userdata _unused_, uint64_t from, uint64_t to)
{
	return follow_wait(OTHER_FD, from, to);
}

int exporter_main(int argc, char **argv)
{
	static const struct export_follow following = { .wait = wait_for_more };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct export_merge merges[EXPORT_MERGES_MAX];
	struct export_options options = { 0 };
	int result_fd = OTHER_FD, r;

	if (argc < ARGS_FIXED)
		return 2;
	options.format = argv[0];
	options.raw_addresses = strcmp(argv[1], "raw") == 0;
	options.tgid = strcmp(argv[2], "tgid") == 0;
	options.rotate.bytes = strtoull(argv[10], NULL, 10);
	options.rotate.ns = strtoull(argv[11], NULL, 10);
	options.json_array = strcmp(argv[12], "array") == 0;
	options.bound_max_ns = strtoull(argv[13], NULL, 10);
	prctl(PR_SET_NAME, "traced-export");
	if (strcmp(argv[3], "quiet") == 0)
		setpriority(PRIO_PROCESS, 0, 10);
	if (strcmp(argv[4], "follow") == 0) {
		options.follow = &following;
		result_fd = OTHER_FD + 1;
	}
	r = merging_read(&options, merges, argv + ARGS_FIXED, (size_t)(argc - ARGS_FIXED),
			 result_fd);
	if (r < 0)
		return 2;
	result_fd += r;
	if (perfetto_options_set(&options.perfetto, "generic", argv[6], &err) < 0 ||
	    perfetto_options_set(&options.perfetto, "compact-sched", argv[7], &err) < 0 ||
	    perfetto_options_set(&options.perfetto, "compress", argv[8], &err) < 0 ||
	    function_view_find(argv[9], &options.function_view, &err) < 0)
		return finish_with_error(result_fd, &err);
	if (enter(argv[5], options.follow, &err) < 0) {
		error_prefix(&err, "the exporter's sandbox");
		return finish_with_error(result_fd, &err);
	}
	if (export_stream(STREAM_FD, OUT_FD, &options, &result, &err) < 0)
		return finish_with_error(result_fd, &err);
	return finish_with_result(result_fd, &result);
}

static int serve_request(int argc, char **argv)
{
	if (argc < 1 || strcmp(argv[0], EXPORTER_OPTION) != 0)
		return 2;
	return exporter_main(argc - 1, argv + 1);
}

int exporter_service_main(void)
{
	/* Where a service manager puts the connection. */
	return child_serve(CHILD_FIRST_FD, serve_request);
}

int extractor_main(int argc, char **argv)
{
	Traced__Control__ExportResult message = TRACED__CONTROL__EXPORT_RESULT__INIT;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct capture_env env = { .proc = "/proc" };
	struct capture_stats stats = { 0 };
	uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);
	int r;

	if (argc != 3)
		return 2;
	prctl(PR_SET_NAME, "traced-extract");
	env.state_dir = argv[1];
	r = tracefs_open(&fs, *argv[2] ? argv[2] : NULL, &err);
	if (r >= 0) {
		env.tracefs = fs;
		r = capture_extract(&env, *argv[0] ? argv[0] : NULL, CHILD_FIRST_FD, &stats, &err);
	}
	if (r < 0)
		return finish_with_error(CHILD_FIRST_FD + 1, &err);
	message.events = stats.events;
	message.lost = stats.lost;
	message.bytes = stats.bytes;
	message.export_ns = now_ns(CLOCK_MONOTONIC) - begin_ns;
	message.event_types = stats.event_types;
	message.warnings = (char **)(uintptr_t)stats.warnings;
	message.n_warnings = stats.warnings ? stats.warning_count : 0;
	return child_finish(CHILD_FIRST_FD + 1, &message);
}
