/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "far.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/vec.h"
#include "stream/reader.h"

#define MESSAGES_MAX 100
/* Space that is left to others, and bytes between two looks at it. */
#define ROOM_MIN (UINT64_C(256) << 20)
#define ROOM_CHECK (UINT64_C(16) << 20)
/* A few bytes may unpack to many: so many pieces at once, then the clocks and other hosts. */
#define UNPACK_PIECES 16

static void far_close(struct far *f)
{
	push_deinit(&f->push);
	f->process.in = close_fd(f->process.in);
	f->process.out = close_fd(f->process.out);
	f->process.err = close_fd(f->process.err);
	f->unpack = far_unpack_free(f->unpack);
}

void far_deinit(struct far *f)
{
	far_close(f);
	host_end(&f->process);
	close_fd(f->file);
	exchange_deinit(&f->clock);
}

void far_fail(struct far *f, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	if (f->failed)
		return;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	cli_warn("%s: %s", f->name->label, text ?: "failed");
	f->failed = true;
}

void far_drop(struct far *f)
{
	far_close(f);
	host_end(&f->process);
	f->state = FAR_ENDED;
}

void far_order(struct far *f, const char *order)
{
	/* Orders are few and short: a pipe that is full belongs to a host that hangs. */
	ssize_t n = f->process.in < 0 ? 0 : write(f->process.in, order, strlen(order));

	if (n < 0 && errno != EPIPE)
		far_fail(f, "it takes no orders: %m");
}

void far_ask(struct far *f)
{
	char order[EXCHANGE_ORDER_BYTES];

	exchange_ask(&f->clock, order);
	far_order(f, order);
}

/* line NULL: there is none. Returns whether the line is not for people. */
static bool far_push(struct far *f, const char *line)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = line ? push_take_line(&f->push, line, f->process.in, &err)
		     : push_go_on(&f->push, f->process.in, &err);

	if (r < 0)
		far_fail(f, "%s%s%s", err.message ?: "out of memory", err.hint ? "; " : "",
			 err.hint ?: "");
	return r != 0;
}

/* A line for people. */
static void far_pass_on(struct far *f, const char *line)
{
	const char *tail = !strncmp(line, "tracectl: ", 10) ? line + 10 : line, **told;
	char *text;

	if (!*line || f->messages == MESSAGES_MAX)
		return;
	f->messages++;
	if (asprintf(&text, "%s: %s", f->name->label, tail) < 0)
		return;
	cli_pass_on(text);
	told = vec_add_exact(f->told->items, f->told->count);
	if (told)
		*told = text;
	else
		free(text);
	if (f->messages == MESSAGES_MAX)
		cli_warn("%s: more messages are left out", f->name->label);
}

static void far_take_line(struct far *f, const char *line)
{
	int r;

	if (far_push(f, line))
		return;
	if (!strcmp(line, "@here")) {
		f->here_ns = f->here_ns ?: far_now();
		return;
	}
	if (!strcmp(line, "@armed") && f->state == FAR_ARMING && !f->push.wanted) {
		f->state = FAR_ARMED;
		f->armed_ns = f->clock.ask_at = far_now();
		return;
	}
	r = exchange_take_line(&f->clock, line);
	if (r > 0)
		far_pass_on(f, line);
	else if (r < 0)
		far_fail(f, r == -EBADMSG ? "its clock goes back" : "out of memory");
}

void far_read_lines(struct far *f)
{
	ssize_t n = read(f->process.err, f->line + f->line_len, sizeof(f->line) - f->line_len);
	char *from = f->line, *end;

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		f->process.err = close_fd(f->process.err);
		return;
	}
	f->line_len += (size_t)n;
	while ((end = memchr(from, '\n', f->line_len))) {
		/* ssh ends its lines with both. */
		if (end > from && end[-1] == '\r')
			end[-1] = '\0';
		*end++ = '\0';
		far_take_line(f, from);
		f->line_len -= (size_t)(end - from);
		from = end;
	}
	memmove(f->line, from, f->line_len);
	/* No line of ours is so long. */
	if (f->line_len == sizeof(f->line))
		f->line_len = 0;
}

static bool far_has_room(struct far *f, uint64_t more)
{
	struct statvfs st;

	if ((f->bytes + more) / ROOM_CHECK == f->bytes / ROOM_CHECK && f->bytes)
		return true;
	return fstatvfs(f->file, &st) < 0 || (uint64_t)st.f_bavail * st.f_frsize > ROOM_MIN;
}

static void far_take_capture(struct far *f, const char *piece, size_t len)
{
	if (!f->bytes && len >= STREAM_MAGIC_SIZE && !stream_begins(piece, len))
		far_fail(f, "it sends no capture");
	else if (!far_has_room(f, len))
		far_fail(f, "no space is left here for its capture");
	else if (write_full(f->file, piece, len) < 0)
		far_fail(f, "can't write its capture: %m");
	else
		f->bytes += len;
	if (f->bytes - f->heard_bytes >= FAR_HEARD_BYTES) {
		f->heard_ns = far_now();
		f->heard_bytes = f->bytes;
	}
}

static void far_unpack(struct far *f, char *piece)
{
	for (int i = 0; i < UNPACK_PIECES && !f->failed && far_is_pending(f); i++) {
		ssize_t n = far_unpack_read(f->unpack, piece, FAR_PIECE);

		if (n < 0)
			far_fail(f, "its compressed capture is damaged: its part is incomplete");
		else if (n > 0)
			far_take_capture(f, piece, (size_t)n);
	}
}

static void far_read_capture(struct far *f, char *piece)
{
	ssize_t n = read(f->process.out, piece, FAR_PIECE);

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		f->process.out = close_fd(f->process.out);
		return;
	}
	if (!f->bytes && !f->unpack && far_unpack_begins(*piece) && far_unpack_new(&f->unpack) < 0)
		far_fail(f, "out of memory");
	else if (f->unpack)
		far_unpack_add(f->unpack, piece, (size_t)n);
	else
		far_take_capture(f, piece, (size_t)n);
}

bool far_is_pending(const struct far *f)
{
	return far_unpack_is_pending(f->unpack);
}

void far_poll(const struct far *f, struct pollfd *ret)
{
	ret[0] = (struct pollfd){ .fd = f->process.err, .events = POLLIN };
	ret[1] = (struct pollfd){ .fd = far_is_pending(f) ? -EBADF : f->process.out,
				  .events = POLLIN };
	ret[2] = (struct pollfd){ .fd = f->push.fd < 0 ? -1 : f->process.in, .events = POLLOUT };
}

void far_move_data(struct far *f, const struct pollfd *ready, char *piece)
{
	if (ready[1].revents)
		far_read_capture(f, piece);
	far_unpack(f, piece);
	if (ready[2].revents && f->push.fd >= 0)
		far_push(f, NULL);
}
