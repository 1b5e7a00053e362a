/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/histograms.h"

#include <string.h>

#include "base/io.h"
#include "daemon/capture/tracefs/events.h"
#include "proto/capture.pb-c.h"

/* Leaves room for the message's other fields. */
#define TEXT_MAX (STREAM_HISTOGRAM_MAX - 1024)
#define INTERVAL_NS NSEC_PER_SEC
/* The kernel sorts a histogram to show it. To read them takes no more than this part of the time.
 */
#define INTERVAL_PER_COST 50

static int histogram_write_text(struct stream_writer *w, const char *event, const struct buf *text)
{
	Traced__Capture__Histogram message = TRACED__CAPTURE__HISTOGRAM__INIT;
	_cleanup_free_ uint8_t *packed = NULL;
	size_t len;

	message.event = (char *)event;
	message.boot_ns = now_ns(CLOCK_BOOTTIME);
	message.text.data = (uint8_t *)text->data;
	message.text.len = text->len;
	len = traced__capture__histogram__get_packed_size(&message);
	packed = malloc(len);
	if (!packed)
		return -ENOMEM;
	traced__capture__histogram__pack(&message, packed);
	return stream_write_packed(w, CHUNK_HISTOGRAM, packed, len);
}

static int histogram_write(struct capture *c, const char *event)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[512];
	int r;

	event_file(event, "hist", path, sizeof(path));
	r = read_file_at(c->run.rings[BUFFER_MAIN].dir, path, TEXT_MAX, &text);
	if (r == 0)
		r = histogram_write_text(&c->run.writer, event, &text);
	if (r == 0 || c->run.writer.failed)
		return r;
	report_warn_missing(&c->report, "the histogram of %s is missing: %s", event,
			    r == -EFBIG ? "it is too long" : strerror(-r));
	return 0;
}

/* A file has all histograms of its event. */
static bool histogram_is_first(const struct hists *h, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(h->items[k].event, h->items[i].event) == 0)
			return false;
	return true;
}

int histograms_write(struct capture *c)
{
	const struct hists *h = &c->setup.hists;
	int r = 0;

	for (size_t i = 0; r == 0 && i < h->count; i++)
		if (histogram_is_first(h, i))
			r = histogram_write(c, h->items[i].event);
	return r;
}

int histograms_write_due(struct capture *c, uint64_t now)
{
	uint64_t end;
	int r;

	if (!c->setup.hists.count || now < c->run.next_hists)
		return 0;
	r = histograms_write(c);
	end = now_ns(CLOCK_BOOTTIME);
	c->run.next_hists = now + MAX(INTERVAL_NS, (end - now) * INTERVAL_PER_COST);
	return r;
}
