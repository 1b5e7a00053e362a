/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top_decode.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "confined.h"
#include "export/export.h"
#include "export/sink.h"
#include "output/name.h"
#include "report/frame.h"
#include "traced/stream.h"

#define PIPE_BYTES (1 << 20)
/* Bytes of the stream that are read at a time. */
#define PIECE (256U << 10)
/* How often to look at a file that the recorder writes: it has a FLUSH twice a second. */
#define LOOK_MS 100

struct top_decoding {
	const struct report_options *options;
	int stream, file, frames;
	bool piped;	     /* the stream comes through the pipe, not into the file */
	uint64_t size;	     /* of the file */
	uint64_t head, from; /* that were reported */
	char *piece;
};

/* Appends what the pipe has, at least something. 1, 0 at its end, or -errno. */
static int top_decode_read(struct top_decoding *d)
{
	ssize_t n, written;

	do {
		n = read(d->stream, d->piece, PIECE);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	written = pwrite(d->file, d->piece, (size_t)n, (off_t)d->size);
	if (written != n)
		return written < 0 ? -errno : -ENOSPC;
	d->size += (uint64_t)n;
	d->piped = true;
	return 1;
}

/* 1: the recorder has made the file longer; 0: it has not. */
static int top_decode_look(struct top_decoding *d)
{
	struct stat st;

	if (fstat(d->file, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size <= d->size)
		return 0;
	d->size = (uint64_t)st.st_size;
	return 1;
}

/* Waits until the file is longer. 1, 0 at the end of the stream, or -errno. */
static int top_decode_fetch(struct top_decoding *d)
{
	struct pollfd pipe = { .fd = d->stream, .events = POLLIN };
	int r;

	if (d->piped)
		return top_decode_read(d);
	while ((r = top_decode_look(d)) == 0) {
		r = poll(&pipe, 1, LOOK_MS);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r <= 0)
			continue;
		/* At the pipe's end, the file may have grown just before. */
		r = top_decode_read(d);
		return r == 0 ? top_decode_look(d) : r;
	}
	return r;
}

static int top_decode_wait(void *userdata, uint64_t from, uint64_t to)
{
	struct top_decoding *d = userdata;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r = 0;

	if (from && (from != d->head || to != d->from)) {
		frame_put(&out, FRAME_NEEDED, &(struct frame_needed){ from, to },
			  sizeof(struct frame_needed));
		r = buf_error(&out) ?: write_full(d->frames, out.data, out.len);
	}
	d->head = from;
	d->from = to;
	return r < 0 ? r : top_decode_fetch(d);
}

static int top_decode_run(void *userdata, struct export_result *ret, struct error *err)
{
	struct top_decoding *d = userdata;
	const struct export_follow follow = { top_decode_wait, d };
	const struct export_options options = {
		.format = report_live_ops.format.name,
		.report = d->options,
		.follow = &follow,
	};
	_cleanup_free_ char *piece = malloc(PIECE);
	int r = 1;

	if (!piece)
		return error_errno(err, -ENOMEM, "the decoder");
	d->piece = piece;
	while (r > 0 && d->size < STREAM_MAGIC_SIZE)
		r = top_decode_fetch(d);
	if (r < 0)
		return error_errno(err, r, "can't read the recording");
	return export_run(&report_live_ops, d->file, d->frames, &options, ret, err);
}

static void top_decode_tell(int frames, const struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT, out = BUF_INIT;

	buf_puts(&text, err->message ?: "out of memory");
	buf_putc(&text, '\0');
	buf_puts(&text, err->hint ?: "");
	frame_put(&out, FRAME_FAILED, text.data, text.len);
	if (!buf_error(&text) && !buf_error(&out))
		write_full(frames, out.data, out.len);
}

static int top_decode_main(struct top_decoding *d, pid_t parent)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	output_signals_ignore();
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		return 1;
	if (confined_run(top_decode_run, d, &result, &err) == 0)
		return 0;
	top_decode_tell(d->frames, &err);
	return 1;
}

static int top_decoder_open(int pipe[2], struct error *err)
{
	if (pipe2(pipe, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	/* Fewer switches between writer and reader; less is no error. */
	fcntl(pipe[0], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

int top_decoder_start(struct top_decoder *ret, const struct report_options *options, int file,
		      struct error *err)
{
	struct top_decoding d = { .options = options, .file = file };
	int stream[2], frames[2], r;
	pid_t parent = getpid();
	sigset_t old;

	r = top_decoder_open(stream, err);
	if (r < 0)
		return r;
	r = top_decoder_open(frames, err);
	if (r < 0) {
		close(stream[0]);
		close(stream[1]);
		return r;
	}
	fflush(NULL);
	/* A signal must not end the process before it ignores them. */
	output_signals_block(&old);
	*ret = (struct top_decoder){ fork(), frames[0], stream[1] };
	if (!ret->pid) {
		close(stream[1]);
		close(frames[0]);
		d.stream = stream[0];
		d.frames = frames[1];
		_exit(top_decode_main(&d, parent));
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(stream[0]);
	close(frames[1]);
	if (ret->pid < 0)
		return error_errno(err, -errno, "fork");
	fcntl(ret->frames, F_SETFL, O_NONBLOCK);
	return 0;
}

bool top_decoder_end(struct top_decoder *d)
{
	int status = 0;

	while (waitpid(d->pid, &status, 0) < 0 && errno == EINTR)
		;
	d->pid = 0;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

void top_decoder_deinit(struct top_decoder *d)
{
	d->stream = close_fd(d->stream);
	d->frames = close_fd(d->frames);
	if (d->pid > 0) {
		/* Its output is gone; a whole recording may still be in its input. */
		kill(d->pid, SIGKILL);
		while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	d->pid = 0;
}
