/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/histograms.h"

#include <fcntl.h>
#include <poll.h>
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
	_cleanup_buf_ struct buf shown = BUF_INIT;
	size_t len;

	synthetic_put_shown(event, &shown);
	message.event = (char *)buf_string(&shown);
	if (!message.event)
		return -ENOMEM;
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

/* The event's hist file, or -errno. */
static int histogram_open(const struct capture *c, const char *event)
{
	char path[512];
	int fd;

	event_file(event, "hist", path, sizeof(path));
	fd = openat(c->run.rings[BUFFER_MAIN].dir, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int histogram_write(struct capture *c, const char *event, int fd)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = fd < 0 ? fd : read_to_end(fd, TEXT_MAX, &text);

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

	for (size_t i = 0; r == 0 && i < h->count; i++) {
		_cleanup_close_ int fd = -EBADF;

		if (!histogram_is_first(h, i))
			continue;
		fd = histogram_open(c, h->items[i].event);
		r = histogram_write(c, h->items[i].event, fd);
	}
	return r;
}

/*
 * Since Linux 6.14 a hist file that was read is readable again when the histogram has counted more;
 * before that it always is. This does not sleep in poll(): for somebody who does, the kernel raises
 * an interrupt at each event that it counts.
 */
static bool histogram_counted(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* The file stays open, as the kernel remembers in it what was read. */
static int histogram_write_change(struct capture *c, size_t i)
{
	const char *event = c->setup.hists.items[i].event;
	int *read = &c->run.hist_files[i], fd;

	if (*read >= 0 && !histogram_counted(*read))
		return 0;
	fd = histogram_open(c, event);
	close_fd(*read);
	*read = fd;
	return histogram_write(c, event, fd);
}

int histograms_write_due(struct capture *c, uint64_t now)
{
	const struct hists *h = &c->setup.hists;
	uint64_t end;
	int r = 0;

	if (!h->count || now < c->run.next_hists)
		return 0;
	for (size_t i = 0; r == 0 && i < h->count; i++)
		if (histogram_is_first(h, i))
			r = histogram_write_change(c, i);
	end = now_ns(CLOCK_BOOTTIME);
	c->run.next_hists = now + MAX(INTERVAL_NS, (end - now) * INTERVAL_PER_COST);
	return r;
}
