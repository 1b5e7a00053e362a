/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "far_pack.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/io.h"

#if HAVE_ZSTD
/* The fastest: the far machine has other things to do. */
#define LEVEL 1
/* Levels up to 3 have windows of at most 2 MiB. */
#define WINDOW_LOG_MAX 21

/* A zstd frame begins with it. STREAM_MAGIC begins with another byte: one is enough. */
#define FIRST_BYTE '\x28'

static bool pipe_is_empty(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static int pack_piece(ZSTD_CCtx *z, ZSTD_inBuffer in, ZSTD_EndDirective how, int to)
{
	char piece[FAR_PIECE];
	size_t left;
	int r = 0;

	do {
		ZSTD_outBuffer out = { .dst = piece, .size = sizeof(piece) };

		left = ZSTD_compressStream2(z, &out, &in, how);
		if (ZSTD_isError(left))
			return -ENOMEM;
		r = write_full(to, piece, out.pos);
	} while (r == 0 && (how == ZSTD_e_continue ? in.pos < in.size : left > 0));
	return r;
}

static int pack_all(ZSTD_CCtx *z, int from, int to)
{
	char piece[FAR_PIECE];
	ssize_t n;
	int r = 0;

	ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, LEVEL);
	do {
		n = read(from, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = pack_piece(z, (ZSTD_inBuffer){ .src = piece, .size = (size_t)n },
			       n == 0		     ? ZSTD_e_end
			       : pipe_is_empty(from) ? ZSTD_e_flush
						     : ZSTD_e_continue,
			       to);
	} while (n && r == 0);
	return r;
}

/* Ends with its input: what ends the recorder must not cut the recording. */
_Noreturn static void pack_main(int from, int to)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	ZSTD_CCtx *z = ZSTD_createCCtx();
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	prctl(PR_SET_NAME, "tracectl-pack");
	/* The orders are the recorder's. */
	close(STDIN_FILENO);
	r = z ? pack_all(z, from, to) : -ENOMEM;
	ZSTD_freeCCtx(z);
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

int far_pack_start(pid_t *ret, int *fd, struct error *err)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "cannot compress the capture");
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		pack_main(ends[0], *fd);
	}
	close(ends[0]);
	if (pid < 0) {
		int e = errno;

		close(ends[1]);
		return error_errno(err, -e, "cannot compress the capture");
	}
	close_fd(*fd);
	*fd = ends[1];
	*ret = pid;
	return 0;
}

struct far_unpack {
	ZSTD_DCtx *context;
	ZSTD_inBuffer in;
	bool is_full;  /* the last output was: there may be more */
	bool is_whole; /* the frame has ended */
	char data[FAR_PIECE];
};

bool far_unpack_begins(char first)
{
	return first == FIRST_BYTE;
}

int far_unpack_new(struct far_unpack **ret)
{
	struct far_unpack *u = calloc(1, sizeof(*u));

	if (!u || !(u->context = ZSTD_createDCtx()) ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(u->context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
		far_unpack_free(u);
		return -ENOMEM;
	}
	*ret = u;
	return 0;
}

struct far_unpack *far_unpack_free(struct far_unpack *u)
{
	if (u)
		ZSTD_freeDCtx(u->context);
	free(u);
	return NULL;
}

bool far_unpack_is_pending(const struct far_unpack *u)
{
	return u && (u->in.pos < u->in.size || u->is_full);
}

void far_unpack_add(struct far_unpack *u, const char *data, size_t len)
{
	memcpy(u->data, data, len);
	u->in = (ZSTD_inBuffer){ .src = u->data, .size = len };
}

ssize_t far_unpack_read(struct far_unpack *u, char *out, size_t len)
{
	ZSTD_outBuffer to = { .dst = out, .size = len };
	size_t more = ZSTD_decompressStream(u->context, &to, &u->in);

	if (ZSTD_isError(more))
		return -EBADMSG;
	u->is_full = to.pos == to.size;
	u->is_whole = !more;
	return (ssize_t)to.pos;
}

bool far_unpack_is_whole(const struct far_unpack *u)
{
	return u->is_whole;
}
#else
int far_pack_start(pid_t *ret, int *fd _unused_, struct error *err _unused_)
{
	*ret = 0;
	return 0;
}

bool far_unpack_begins(char first _unused_)
{
	return false;
}

int far_unpack_new(struct far_unpack **ret _unused_)
{
	return -EOPNOTSUPP;
}

struct far_unpack *far_unpack_free(struct far_unpack *u _unused_)
{
	return NULL;
}

bool far_unpack_is_pending(const struct far_unpack *u _unused_)
{
	return false;
}

void far_unpack_add(struct far_unpack *u _unused_, const char *data _unused_, size_t len _unused_)
{
}

ssize_t far_unpack_read(struct far_unpack *u _unused_, char *out _unused_, size_t len _unused_)
{
	return -EOPNOTSUPP;
}

bool far_unpack_is_whole(const struct far_unpack *u _unused_)
{
	return false;
}
#endif

void far_pack_end(pid_t *packer)
{
	while (*packer && waitpid(*packer, NULL, 0) < 0 && errno == EINTR)
		;
	*packer = 0;
}

void far_pack_drop(pid_t *packer)
{
	if (*packer)
		kill(*packer, SIGKILL);
	far_pack_end(packer);
}
