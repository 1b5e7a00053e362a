/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel delivers descriptors to the recvmsg() that reads the first byte they were sent with,
 * and ends that read at the same buffer. Each read here stops at the end of the current frame, so
 * any descriptor that comes belongs to this frame.
 */
#include "control/frame.h"

#include <endian.h>
#include <sys/socket.h>

#include "base/vec.h"

#define LENGTH_SIZE sizeof(uint32_t)
#define READ_STEP (64U << 10) /* bytes; a length may be false, so memory grows as bytes arrive */
#define PENDING_MAX 64

void frame_io_init(struct frame_io *io, int fd)
{
	*io = (struct frame_io){ .fd = fd, .max_in = CONTROL_FRAME_MAX };
}

void frame_io_deinit(struct frame_io *io)
{
	buf_deinit(&io->in);
	buf_deinit(&io->out);
	for (size_t i = 0; i < io->fd_count; i++)
		closer_close(io->closer, io->account, CLOSER_FILE, io->fds[i]);
	free(io->pending);
	*io = (struct frame_io){ .fd = -EBADF };
}

static int frame_queue_fds(struct frame_io *io, const int *fds, size_t count)
{
	struct frame_fds entry = { .offset = io->out.len, .count = count };

	if (!count)
		return 0;
	if (count > CONTROL_FDS_MAX)
		return -EINVAL;
	if (io->pending_count >= PENDING_MAX)
		return -ENOBUFS;
	if (vec_reserve_exact(io->pending, io->pending_count, 1) < 0)
		return -ENOMEM;
	memcpy(entry.fds, fds, count * sizeof(*fds));
	io->pending[io->pending_count++] = entry;
	return 0;
}

int frame_queue(struct frame_io *io, const ProtobufCMessage *message, const int *fds,
		size_t fd_count)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	uint32_t le = htole32((uint32_t)len);
	char *p;
	int r;

	if (len > CONTROL_FRAME_MAX)
		return -EMSGSIZE;
	if (frame_queued(io) + LENGTH_SIZE + len > CONTROL_QUEUE_MAX)
		return -ENOBUFS;
	if (!buf_reserve(&io->out, LENGTH_SIZE + len)) {
		io->out.failed = false;
		return -ENOMEM;
	}
	r = frame_queue_fds(io, fds, fd_count);
	if (r < 0)
		return r;
	p = io->out.data + io->out.len;
	memcpy(p, &le, LENGTH_SIZE);
	protobuf_c_message_pack(message, (uint8_t *)p + LENGTH_SIZE);
	io->out.len += LENGTH_SIZE + len;
	return 0;
}

static void frame_drop_sent(struct frame_io *io)
{
	size_t left = frame_queued(io);

	/* Move only if at least half was sent: each byte then moves once on average. */
	if (io->sent < left)
		return;
	memmove(io->out.data, io->out.data + io->sent, left);
	for (size_t i = 0; i < io->pending_count; i++)
		io->pending[i].offset -= io->sent;
	io->out.len = left;
	io->sent = 0;
	if (!left && io->out.cap > READ_STEP)
		buf_deinit(&io->out);
}

/* Calls sendmsg() once. What it sends ends before the next frame with descriptors. */
static ssize_t frame_send_some(struct frame_io *io)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * CONTROL_FDS_MAX)];
	} control = { 0 };
	struct frame_fds *riders = io->pending_count ? &io->pending[0] : NULL;
	size_t end = io->out.len;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (riders && riders->offset == io->sent) {
		struct cmsghdr *cmsg = &control.align;
		size_t size = sizeof(int) * riders->count;

		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(cmsg), riders->fds, size);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(size);
		if (io->pending_count > 1)
			end = io->pending[1].offset;
	} else if (riders) {
		end = riders->offset;
		riders = NULL;
	}
	iov.iov_base = io->out.data + io->sent;
	iov.iov_len = end - io->sent;
	n = sendmsg(io->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	if (riders)
		vec_remove(io->pending, io->pending_count, 0, 1);
	return n;
}

int frame_flush(struct frame_io *io)
{
	while (frame_queued(io)) {
		ssize_t n = frame_send_some(io);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			return 1;
		if (n < 0)
			return (int)n;
		io->sent += (size_t)n;
		frame_drop_sent(io);
	}
	return 0;
}

/* Closes descriptors that do not fit: the peer broke the protocol. */
static int frame_take_fds(struct frame_io *io, struct msghdr *msg)
{
	int r = msg->msg_flags & MSG_CTRUNC ? -EBADMSG : 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (io->fd_count < CONTROL_FDS_MAX) {
				io->fds[io->fd_count++] = fd;
			} else {
				closer_close(io->closer, io->account, CLOSER_FILE, fd);
				r = -EBADMSG;
			}
		}
	}
	return r;
}

/*
 * Reads at most want bytes of the current frame. Returns 1 if some came, 0 if there are none now.
 */
static int frame_receive_some(struct frame_io *io, size_t want)
{
	/* Too many descriptors are received, too: the kernel would close them in this thread. */
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * CLOSER_MESSAGE_FDS)];
	} control;
	struct iovec iov = { .iov_len = MIN(want, (size_t)READ_STEP) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	iov.iov_base = buf_reserve(&io->in, iov.iov_len);
	if (!iov.iov_base)
		return -ENOMEM;
	do {
		n = recvmsg(io->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (frame_take_fds(io, &msg) < 0)
		return -EBADMSG;
	if (n == 0)
		return -ECONNRESET;
	io->in.len += (size_t)n;
	return 1;
}

int frame_receive(struct frame_io *io, const uint8_t **ret_payload, size_t *ret_len,
		  int fds[static CONTROL_FDS_MAX], size_t *ret_fd_count)
{
	size_t want = LENGTH_SIZE;
	int r;

	if (io->delivered) {
		io->delivered = false;
		/* Do not keep the memory of one long frame. */
		if (io->in.cap > READ_STEP)
			buf_deinit(&io->in);
		buf_clear(&io->in);
	}
	for (;;) {
		if (io->in.len >= LENGTH_SIZE) {
			uint32_t le;

			memcpy(&le, io->in.data, LENGTH_SIZE);
			if (le32toh(le) > io->max_in)
				return -EMSGSIZE;
			want = LENGTH_SIZE + le32toh(le);
			if (io->in.len == want)
				break;
		}
		r = frame_receive_some(io, want - io->in.len);
		if (r <= 0)
			return r;
	}
	*ret_payload = (const uint8_t *)io->in.data + LENGTH_SIZE;
	*ret_len = io->in.len - LENGTH_SIZE;
	memcpy(fds, io->fds, io->fd_count * sizeof(int));
	*ret_fd_count = io->fd_count;
	io->fd_count = 0;
	io->delivered = true;
	return 1;
}
