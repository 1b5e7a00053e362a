/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One byte: the kind of machine. The rest: the chunks that follow a recording's
 * head, through the whole exporter, into each format. Event formats are the head's:
 * libtraceevent 1.7, which parses them, does not stand hostile ones. They come from
 * the recorded kernel, and the exporter has no rights that a crash could give away.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "export/export.h"
#include "make_stream.h"
#include "util/io.h"

static bool has_format(const uint8_t *data, size_t size)
{
	static const char head[] = { 'C', 'H', 'N', 'K', CHUNK_FORMAT, 0 };

	return memmem(data, size, head, sizeof(head));
}

static void export(int fd, const char *format, const struct perfetto_options *perfetto)
{
	_cleanup_close_ int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_export_result_ struct export_result result;
	struct export_options o = { .format = format, .tgid = true, .threads = 1 };
	uint64_t events = 0;

	if (perfetto)
		o.perfetto = *perfetto;
	if (export_stream(fd, out, &o, &result, &err) < 0)
		return;
	for (size_t i = 0; i < result.ledger_count; i++)
		events += result.ledger[i].events;
	if (events != result.events)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(maker_deinit) struct maker m = { .fd = -EBADF };

	if (!size || has_format(data, size))
		return 0;
	maker_init(&m, data[0] & 1 ? 4 : 8, data[0] & 2, 1024);
	maker_head(&m);
	if (write_full(m.fd, data + 1, size - 1) < 0)
		return 0;
	export(m.fd, "txt", NULL);
	export(m.fd, "json", NULL);
	export(m.fd, "html", NULL);
	export(m.fd, "ctf", NULL);
	export(m.fd, "dat", NULL);
	export(m.fd, "dat", &(struct perfetto_options){ .compression = PERFETTO_ZSTD });
	export(m.fd, "pftrace", &(struct perfetto_options){ .compression = PERFETTO_PLAIN });
	export(m.fd, "pftrace",
	       &(struct perfetto_options){ .plain_sched = true, .compression = PERFETTO_DEFLATE });
	export(m.fd, "pftrace",
	       &(struct perfetto_options){ .legacy_generic = true, .compression = PERFETTO_ZSTD });
	return 0;
}
