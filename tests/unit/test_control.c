/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "control/client.h"

struct pair {
	int fd[2];
	struct frame_io a, b;
};

static int pair_setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->fd), 0);
	frame_io_init(&p->a, p->fd[0]);
	frame_io_init(&p->b, p->fd[1]);
	*state = p;
	return 0;
}

static int pair_teardown(void **state)
{
	struct pair *p = *state;

	frame_io_deinit(&p->a);
	frame_io_deinit(&p->b);
	close_fd(p->fd[0]);
	close_fd(p->fd[1]);
	free(p);
	return 0;
}

static void queue_mark(struct frame_io *io, uint64_t id, const char *text, const int *fds, size_t n,
		       int expect)
{
	Traced__Control__Mark mark = TRACED__CONTROL__MARK__INIT;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;

	mark.text = (char *)text;
	request.id = id;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_MARK;
	request.mark = &mark;
	assert_int_equal(frame_queue(io, &request.base, fds, n), expect);
}

static Traced__Control__Request *take_request(struct frame_io *io, int *fds, size_t *fd_count)
{
	const uint8_t *payload;
	size_t len;

	assert_int_equal(frame_receive(io, &payload, &len, fds, fd_count), 1);
	return traced__control__request__unpack(NULL, len, payload);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	assert_int_equal(fstat(a, &sa), 0);
	assert_int_equal(fstat(b, &sb), 0);
	return sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
}

static void descriptors_stay_with_their_frame(void **state)
{
	struct pair *p = *state;
	int x = memfd_create("x", MFD_CLOEXEC), y = memfd_create("y", MFD_CLOEXEC);
	int fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	size_t n, len;

	/* All messages are sent before any is read: the kernel may deliver several at once. */
	queue_mark(&p->a, 1, "plain", NULL, 0, 0);
	queue_mark(&p->a, 2, "x", &x, 1, 0);
	queue_mark(&p->a, 3, "plain", NULL, 0, 0);
	queue_mark(&p->a, 4, "both", (int[]){ y, x }, 2, 0);
	queue_mark(&p->a, 5, "plain", NULL, 0, 0);
	assert_int_equal(frame_flush(&p->a), 0);
	for (uint64_t id = 1; id <= 5; id++) {
		Traced__Control__Request *r = take_request(&p->b, fds, &n);

		assert_int_equal(r->id, id);
		assert_int_equal(n, id == 2 ? 1 : id == 4 ? 2 : 0);
		if (id == 2)
			assert_true(same_file(fds[0], x));
		if (id == 4) {
			assert_true(same_file(fds[0], y));
			assert_true(same_file(fds[1], x));
		}
		for (size_t i = 0; i < n; i++) {
			assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
			close(fds[i]);
		}
		traced__control__request__free_unpacked(r, NULL);
	}
	assert_int_equal(frame_receive(&p->b, &payload, &len, fds, &n), 0);
	close(x);
	close(y);
}

static void frames_arrive_byte_by_byte(void **state)
{
	struct pair *p = *state;
	const uint8_t frame[] = { 5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o' };
	int fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	size_t n, len;

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < sizeof(frame); i++) {
			assert_int_equal(frame_receive(&p->b, &payload, &len, fds, &n), 0);
			assert_int_equal(write(p->fd[0], &frame[i], 1), 1);
		}
		assert_int_equal(frame_receive(&p->b, &payload, &len, fds, &n), 1);
		assert_int_equal(len, 5);
		assert_memory_equal(payload, "hello", 5);
	}
}

static void a_length_is_checked_before_memory_is_taken(void **state)
{
	struct pair *p = *state;
	uint32_t le = htole32(CONTROL_FRAME_MAX);
	int fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	size_t n, len;

	assert_int_equal(write(p->fd[0], &le, 4), 4);
	assert_int_equal(frame_receive(&p->b, &payload, &len, fds, &n), 0);
	assert_true(p->b.in.cap <= 256 << 10);

	p->a.max_in = 100;
	le = htole32(101);
	assert_int_equal(write(p->fd[1], &le, 4), 4);
	assert_int_equal(frame_receive(&p->a, &payload, &len, fds, &n), -EMSGSIZE);
}

#define TOO_MANY (CONTROL_FDS_MAX + 1)

static void too_many_descriptors_break_the_rules(void **state)
{
	struct pair *p = *state;
	int fds[CONTROL_FDS_MAX], before, after;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * TOO_MANY)];
	} control = { 0 };
	struct iovec iov = { .iov_base = (char[]){ 1 }, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const uint8_t *payload;
	size_t n, len;

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int) * TOO_MANY);
	for (size_t i = 0; i < TOO_MANY; i++)
		memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &null, sizeof(int));
	before = dup(0);
	close(before);
	assert_int_equal(sendmsg(p->fd[0], &msg, 0), 1);
	assert_int_equal(frame_receive(&p->b, &payload, &len, fds, &n), -EBADMSG);
	frame_io_deinit(&p->b);
	after = dup(0);
	close(after);
	assert_int_equal(before, after); /* none of the eight stays open */
	close(null);
}

static void a_peer_that_does_not_read_fills_a_bounded_queue(void **state)
{
	struct pair *p = *state;
	char *text = malloc(1 << 20);
	unsigned sent = 0, got = 0;

	assert_non_null(text);
	memset(text, 'x', (1 << 20) - 1);
	text[(1 << 20) - 1] = '\0';
	for (; frame_queued(&p->a) + (1 << 20) + 100 < CONTROL_QUEUE_MAX; sent++) {
		queue_mark(&p->a, sent + 1, text, NULL, 0, 0);
		assert_in_range(frame_flush(&p->a), 0, 1);
	}
	queue_mark(&p->a, 999, text, NULL, 0, -ENOBUFS);
	while (got < sent) {
		int fds[CONTROL_FDS_MAX];
		const uint8_t *payload;
		size_t n, len;
		int r = frame_receive(&p->b, &payload, &len, fds, &n);

		assert_in_range(r, 0, 1);
		if (r) {
			Traced__Control__Request *request =
				traced__control__request__unpack(NULL, len, payload);

			assert_int_equal(request->id, ++got);
			assert_int_equal(strlen(request->mark->text), (1 << 20) - 1);
			traced__control__request__free_unpacked(request, NULL);
		}
		assert_in_range(frame_flush(&p->a), 0, 1);
	}
	assert_int_equal(frame_queued(&p->a), 0);
	free(text);
}

static void a_vanished_peer_is_no_signal(void **state)
{
	struct pair *p = *state;
	int fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	size_t n, len;

	p->fd[1] = close_fd(p->fd[1]);
	queue_mark(&p->a, 1, "text", NULL, 0, 0);
	assert_int_equal(frame_flush(&p->a), -EPIPE);
	assert_int_equal(frame_receive(&p->a, &payload, &len, fds, &n), -ECONNRESET);
}

/* A small daemon for the client: a thread that sends prepared answers. */
struct fake_daemon {
	int fd;
	uint32_t version;
	bool out_of_order;
};

static void fake_reply(struct frame_io *io, Traced__Control__Reply *reply)
{
	assert_int_equal(frame_queue(io, &reply->base, NULL, 0), 0);
	assert_int_equal(frame_flush(io), 0);
}

static void fake_answer(struct fake_daemon *d, struct frame_io *io, Traced__Control__Request *r)
{
	Traced__Control__HelloReply hello = TRACED__CONTROL__HELLO_REPLY__INIT;
	Traced__Control__Error error = TRACED__CONTROL__ERROR__INIT;
	Traced__Control__Done done = TRACED__CONTROL__DONE__INIT;
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;

	if (r->verb_case == TRACED__CONTROL__REQUEST__VERB_HELLO) {
		hello.version = d->version;
		hello.daemon = (char *)"traced 9";
		reply.id = r->id;
		reply.body_case = TRACED__CONTROL__REPLY__BODY_HELLO;
		reply.hello = &hello;
		fake_reply(io, &reply);
		return;
	}
	if (d->out_of_order) {
		done.count = 77;
		reply.id = 1000;
		reply.body_case = TRACED__CONTROL__REPLY__BODY_DONE;
		reply.done = &done;
		fake_reply(io, &reply);
	}
	reply = (Traced__Control__Reply)TRACED__CONTROL__REPLY__INIT;
	error.code = ENOENT;
	error.message = (char *)"no session";
	error.hint = (char *)"look";
	error.hint_needs_output = true;
	reply.id = r->id;
	reply.error = &error;
	fake_reply(io, &reply);
}

static void *fake_daemon_run(void *userdata)
{
	struct fake_daemon *d = userdata;
	struct frame_io io;
	int fds[CONTROL_FDS_MAX];
	const uint8_t *payload;
	size_t n, len;
	int r;

	frame_io_init(&io, d->fd);
	while ((r = frame_receive(&io, &payload, &len, fds, &n)) >= 0) {
		Traced__Control__Request *request;

		if (r == 0) {
			usleep(1000);
			continue;
		}
		request = traced__control__request__unpack(NULL, len, payload);
		fake_answer(d, &io, request);
		traced__control__request__free_unpacked(request, NULL);
	}
	frame_io_deinit(&io);
	close(d->fd);
	return NULL;
}

static void client_tells_replies_apart(void **state)
{
	struct pair *p = *state;
	struct fake_daemon d = { .fd = p->fd[0], .version = CONTROL_VERSION, .out_of_order = true };
	Traced__Control__Mark mark = TRACED__CONTROL__MARK__INIT;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Reply *reply = NULL;
	struct control_client *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fake_daemon_run, &d), 0);
	assert_int_equal(control_client_adopt(&c, TAKE_FD(p->fd[1]), &err), 0);
	mark.text = (char *)"x";
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_MARK;
	request.mark = &mark;
	assert_int_equal(control_client_call(c, &request, NULL, 0, &reply, &err), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.message, "no session");
	assert_string_equal(err.hint, "look");
	assert_true(err.hint_needs_output);
	/* The client kept the other reply. */
	assert_int_equal(control_client_receive(c, 0, &reply, &err), 1);
	assert_int_equal(reply->id, 1000);
	assert_int_equal(reply->done->count, 77);
	traced__control__reply__free_unpacked(reply, NULL);
	assert_int_equal(control_client_receive(c, 0, &reply, &err), 0);
	control_client_free(c);
	assert_int_equal(pthread_join(thread, NULL), 0);
	p->fd[0] = -EBADF;
}

static void client_refuses_another_version(void **state)
{
	struct pair *p = *state;
	struct fake_daemon d = { .fd = p->fd[0], .version = CONTROL_VERSION + 1 };
	struct control_client *c = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fake_daemon_run, &d), 0);
	assert_int_equal(control_client_adopt(&c, TAKE_FD(p->fd[1]), &err), -EPROTO);
	assert_non_null(err.hint);
	assert_null(c);
	assert_int_equal(pthread_join(thread, NULL), 0);
	p->fd[0] = -EBADF;
}

static void no_daemon_has_a_hint(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct control_client *c = NULL;

	assert_int_equal(control_client_connect(&c, "/nonexistent/traced.sock", &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nonexistent/traced.sock"));
	assert_non_null(err.hint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(descriptors_stay_with_their_frame, pair_setup,
						pair_teardown),
		cmocka_unit_test_setup_teardown(frames_arrive_byte_by_byte, pair_setup,
						pair_teardown),
		cmocka_unit_test_setup_teardown(a_length_is_checked_before_memory_is_taken,
						pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(too_many_descriptors_break_the_rules, pair_setup,
						pair_teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_does_not_read_fills_a_bounded_queue,
						pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(a_vanished_peer_is_no_signal, pair_setup,
						pair_teardown),
		cmocka_unit_test_setup_teardown(client_tells_replies_apart, pair_setup,
						pair_teardown),
		cmocka_unit_test_setup_teardown(client_refuses_another_version, pair_setup,
						pair_teardown),
		cmocka_unit_test(no_daemon_has_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
