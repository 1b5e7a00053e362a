/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A client's bytes: frames, and the requests in them. */
#include "fuzz.h"

#include <sys/socket.h>

#include "base/io.h"
#include "control/frame.h"
#include "proto/control.pb-c.h"

#define SEND_MAX (64U << 10) /* fits the socket's buffer, because nobody reads at the same time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2], fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	size_t len, fd_count;
	struct frame_io io;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	frame_io_init(&io, pair[1]);
	write_full(pair[0], data, MIN(size, (size_t)SEND_MAX));
	shutdown(pair[0], SHUT_WR);
	while (frame_receive(&io, &payload, &len, fds, &fd_count) == 1) {
		Traced__Control__Request *request;

		if (fd_count)
			abort(); /* no descriptor was sent */
		request = traced__control__request__unpack(NULL, len, payload);
		if (request) {
			/* A parsed request can be packed again. */
			if (frame_queue(&io, &request->base, NULL, 0) == -EMSGSIZE)
				abort();
			traced__control__request__free_unpacked(request, NULL);
		}
	}
	frame_io_deinit(&io);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
