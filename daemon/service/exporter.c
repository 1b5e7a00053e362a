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
#include "daemon/service/export_result.h"
#include "daemon/service/follow.h"
#include "daemon/service/order.h"
#include "daemon/service/sandbox.h"
#include "formats/formats.h"

/* Descriptor numbers in an exporter. */
enum { ORDER_FD = CHILD_FIRST_FD, STREAM_FD, OUT_FD, OTHER_FD };

_Static_assert(CHILD_FDS_MAX >= 4 + MERGING_FDS_MAX, "order, stream, output, follow, files");

/* A limit that no real output reaches; stops a runaway exporter. */
#define OUTPUT_FACTOR 256
#define OUTPUT_EXTRA (UINT64_C(1) << 30)
#define MEMORY_FACTOR 2
#define MEMORY_EXTRA (UINT64_C(4) << 30)
/* CPU limit: 1000 times the need of the slowest machine tested. */
#define CPU_BYTES_PER_S (UINT64_C(16) << 10)
#define CPU_EXTRA_S 600

int exporter_spawn(struct child **ret, struct loop *loop, const struct exporter_request *request,
		   child_done_t done, void *userdata, struct error *err)
{
	static const char *const argv[] = { EXPORTER_OPTION, NULL };
	const struct merging *merging = request->merging;
	Traced__Control__ExportOrder order = TRACED__CONTROL__EXPORT_ORDER__INIT;
	struct child_spec spec = { .what = "exporter", .argv = argv, .service = request->service };
	_cleanup_close_ int order_fd = -EBADF;

	order.output = (Traced__Control__Output *)(uintptr_t)request->output;
	order.tgid = request->tgid;
	order.follow = request->follow_fd >= 0;
	order.quiet = request->quiet;
	order.scratch = merging->scratch;
	order.skip_bytes = request->skip;
	order.part_bytes = request->part->bytes;
	order.part_start_boot_ns = request->part->start_boot_ns;
	order.part_boot_ns = request->part->boot_ns;
	order.parent = request->service ? 0 : getpid();
	order_fd = order_write(&order);
	if (order_fd < 0)
		return error_errno(err, order_fd, "cannot start the exporter");
	spec.fds[spec.fd_count++] = order_fd;
	spec.fds[spec.fd_count++] = request->stream_fd;
	spec.fds[spec.fd_count++] = request->out_fd;
	if (order.follow)
		spec.fds[spec.fd_count++] = request->follow_fd;
	for (size_t i = 0; i < merging->fd_count; i++)
		spec.fds[spec.fd_count++] = merging->fds[i];
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

static int exporter_enter(pid_t parent, bool follow, struct error *err)
{
	struct sandbox sandbox = { .drop = geteuid() == 0 };
	struct stat st;

	if (fstat(STREAM_FD, &st) < 0)
		return error_errno(err, -errno, "stream");
	sandbox.memory = MEMORY_EXTRA + MEMORY_FACTOR * (uint64_t)st.st_size;
	/* The final size of a growing stream is unknown. */
	if (!follow) {
		sandbox.file_max = OUTPUT_EXTRA + OUTPUT_FACTOR * (uint64_t)st.st_size;
		sandbox.cpu_s = CPU_EXTRA_S + (uint64_t)st.st_size / CPU_BYTES_PER_S;
	}
	sandbox.parent = parent;
	if (sandbox.drop)
		sandbox.uid = sandbox_find_user();
	return sandbox_enter(&sandbox, err);
}

static int exporter_wait_for_more(void *userdata _unused_, uint64_t from, uint64_t to)
{
	return follow_wait(OTHER_FD, from, to);
}

/* The order's descriptors are numbered below result_fd. */
static int exporter_run_order(const Traced__Control__ExportOrder *order, struct error *err,
			      struct export_result *ret, int *result_fd)
{
	static const struct export_follow following = { .wait = exporter_wait_for_more };
	struct export_merge merges[EXPORT_MERGES_MAX];
	struct export_options options = { 0 };
	struct export_watch watch;
	int r, first = order->follow ? OTHER_FD + 1 : OTHER_FD;

	*result_fd = first + merging_count(order->output, order->scratch);
	r = order_options(order->output, &options, &watch, err);
	if (r < 0)
		return r;
	options.tgid |= order->tgid;
	options.follow = order->follow ? &following : NULL;
	options.skip_from = order->skip_bytes;
	options.part = (struct stream_part){ order->part_bytes, order->part_start_boot_ns,
					     order->part_boot_ns };
	r = merging_read(&options, merges, order->output, order->scratch, first, err);
	if (r < 0)
		return r;
	if (order->quiet)
		setpriority(PRIO_PROCESS, 0, 10);
	r = exporter_enter(order->parent, order->follow, err);
	if (r < 0)
		return error_prefix(err, "the exporter's sandbox");
	return export_stream(STREAM_FD, OUT_FD, &options, ret, err);
}

int exporter_main(void)
{
	Traced__Control__ExportOrder *order = order_read(ORDER_FD);
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	int result_fd, status;

	if (!order || !order->output)
		return 2;
	close_fd(ORDER_FD);
	prctl(PR_SET_NAME, "traced-export");
	if (exporter_run_order(order, &err, &result, &result_fd) < 0)
		status = export_result_send_error(result_fd, &err);
	else
		status = export_result_send(result_fd, &result);
	traced__control__export_order__free_unpacked(order, NULL);
	return status;
}

static int exporter_serve_request(int argc, char **argv)
{
	if (argc < 1 || strcmp(argv[0], EXPORTER_OPTION) != 0)
		return 2;
	return exporter_main();
}

int exporter_service_main(void)
{
	/* The service manager passes the connection as this descriptor. */
	return child_serve(CHILD_FIRST_FD, exporter_serve_request);
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
		return export_result_send_error(CHILD_FIRST_FD + 1, &err);
	message.events = stats.events;
	message.lost = stats.lost;
	message.bytes = stats.bytes;
	message.export_ns = now_ns(CLOCK_MONOTONIC) - begin_ns;
	message.event_types = stats.event_types;
	message.warnings = (char **)(uintptr_t)stats.warnings;
	message.n_warnings = stats.warnings ? stats.warning_count : 0;
	return export_result_write(CHILD_FIRST_FD + 1, &message);
}
