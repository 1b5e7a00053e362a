/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "firings.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/plural.h"
#include "base/visible.h"
#include "report/watch.h"

/* Bytes of the condition and of what met it: the daemon takes marks of 1000. */
#define MARK_TEXT_MAX 400

void firing_put(const struct triggers *t, const Traced__Control__Firing *m, struct buf *out)
{
	const struct watch_condition *c = &t->conditions[m->condition];
	_cleanup_buf_ struct buf what = BUF_INIT;

	buf_append(&what, m->what.data ?: (uint8_t *)"", m->what.len);
	buf_visible(out, t->o->on.items[m->condition], MARK_TEXT_MAX);
	buf_puts(out, ": ");
	buf_visible(out, buf_string(&what) ?: "", MARK_TEXT_MAX);
	if (c->kind == WATCH_DELAY || c->kind == WATCH_MARK || c->kind == WATCH_EVENT)
		buf_printf(out, " (%" PRId32 ")", m->tid);
	if (m->cpu >= 0)
		buf_printf(out, " on CPU %" PRId32, m->cpu);
	if (c->kind == WATCH_LOST) {
		buf_printf(out, "%" PRIu64 " event%s", m->value, plural_s(m->value));
	} else if (c->kind != WATCH_EVENT) {
		buf_printf(out, ", %" PRIu64 ".%03" PRIu64 " ms", m->value / NSEC_PER_MSEC,
			   m->value % NSEC_PER_MSEC / 1000);
	}
	buf_printf(out, " at %" PRIu64 ".%06" PRIu64, m->at_ns / NSEC_PER_SEC,
		   m->at_ns % NSEC_PER_SEC / 1000);
}

static int firings_take_frame(struct firings *f, const uint8_t *data, size_t len,
			      void (*take)(const Traced__Control__Firing *m, void *data),
			      void *taker, struct error *err)
{
	Traced__Control__Firing *m = traced__control__firing__unpack(NULL, len, data);

	if (!m || m->condition >= f->triggers->count || m->what.len > WATCH_WHAT_MAX) {
		if (m)
			traced__control__firing__free_unpacked(m, NULL);
		return error_set(err, -EBADMSG, "what the exporter sent can't be decoded");
	}
	take(m, taker);
	traced__control__firing__free_unpacked(m, NULL);
	return 0;
}

int firings_read(struct firings *f, void (*take)(const Traced__Control__Firing *m, void *data),
		 void *data, struct error *err)
{
	const size_t piece = 16U << 10;
	char *to = buf_reserve(&f->in, piece);
	size_t at = 0;
	ssize_t n = to ? read(f->pipe, to, piece) : -1;
	int r = 0;

	if (n <= 0)
		return n < 0 && errno != EINTR ? error_errno(err, -errno, "pipe") : (n < 0);
	f->in.len += (size_t)n;
	while (r == 0 && f->in.len - at >= sizeof(uint32_t)) {
		const uint8_t *p = (const uint8_t *)f->in.data + at;
		uint32_t len = load_u32(p, false);

		if (len > WATCH_FRAME_MAX)
			return error_set(err, -EBADMSG, "the exporter sent too long a message");
		if (f->in.len - at < sizeof(len) + len)
			break;
		r = firings_take_frame(f, p + sizeof(len), len, take, data, err);
		at += sizeof(len) + len;
	}
	buf_replace(&f->in, 0, at, "", 0);
	return r < 0 ? r : 1;
}
