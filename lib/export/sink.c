/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/sink.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "print/printer.h"

int sink_print(struct printer *printer, const struct trace_event *ev, struct buf *out)
{
	int r;

	if (unlikely(!ev->desc)) {
		/* Like print_trace_fmt() of kernel/trace/trace.c. */
		buf_printf(out, "Unknown type %d", ev->id);
		return buf_error(out);
	}
	r = event_print(printer, ev->desc, &ev->rec, out);
	/* The text already ends in "[truncated]". */
	return r == -EBADMSG ? 0 : r;
}

int sink_skip_event(struct sink *s _unused_, const struct trace_event *ev _unused_,
		    struct error *err _unused_)
{
	return 0;
}

int sink_skip_loss(struct sink *s _unused_, uint32_t cpu _unused_, uint64_t before_ts _unused_,
		   uint64_t after_ts _unused_, uint64_t count _unused_, struct error *err _unused_)
{
	return 0;
}

int export_format_check_clock(const struct export_format *format, const char *clock,
			      struct error *err)
{
	_cleanup_buf_ struct buf good = BUF_INIT;

	if (!format->clocks)
		return 0;
	for (const char *const *c = format->clocks; *c; c++) {
		if (strcmp(*c, clock) == 0)
			return 0;
		buf_printf(&good, " %s", *c);
	}
	error_set(err, -EINVAL, "no reader of .%s understands the trace clock '%s'", format->name,
		  clock);
	error_hint(err, "write .txt or .traced, or record with one of these clocks (-C):%s",
		   buf_string(&good) ?: "");
	return -EINVAL;
}

/* Whether fd can be rewritten: a pipe can't, and O_APPEND ignores the offset. */
static bool fd_is_rewritable(int fd)
{
	return lseek(fd, 0, SEEK_CUR) == 0 && !(fcntl(fd, F_GETFL) & O_APPEND);
}

int export_format_check_file(const struct export_format *format, const struct perfetto_options *o,
			     int fd, struct error *err)
{
	/* Only its compressed version fills in places later. */
	if (!format->packed_goes_back || o->compression == PERFETTO_PLAIN || fd_is_rewritable(fd))
		return 0;
	error_set(err, -ESPIPE, "a compressed .%s can't be written to a pipe or appended to a file",
		  format->name);
	return error_hint(err, "write to a new file, or omit --compress");
}
