/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks_end.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "proto/capture.pb-c.h"
#include "traced/mark_record.h"
#include "traced/traced.h"

char marks_folder[64];

int marks_folder_make(void **state _unused_)
{
	snprintf(marks_folder, sizeof(marks_folder), "/tmp/test-marks-XXXXXX");
	if (!mkdtemp(marks_folder))
		return -1;
	return setenv("TRACED_MARKS", marks_folder, 1);
}

int marks_folder_remove(void **state _unused_)
{
	return rmdir(marks_folder);
}

struct marks *marks_serve(const struct marks_limits *limits)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	static struct closer *closer;
	struct marks *m = NULL;

	/* One for all tests: its threads may outlast a test. */
	if (!closer)
		assert_int_equal(closer_new(&closer), 0);
	if (marks_new(&m, marks_folder, true, limits, closer, &err) < 0)
		fail_msg("%s", err.message);
	/* The socket's folder is open to users other than root. */
	assert_int_equal(chmod(marks_folder, 0755), 0);
	return m;
}

void marks_find_daemon(void)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (int i = 0; i < 300 && traced_page.word && traced_page.word <= MARKS_GONE; i++) {
		TRACED_MARK("test", "nobody");
		nanosleep(&pause, NULL);
	}
}

int marks_connect(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/" MARKS_SOCKET, marks_folder);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

ssize_t marks_send(int fd, const struct marks_message *msg, int ring)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg, .iov_len = sizeof(*msg) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (ring >= 0) {
		struct cmsghdr *c;

		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &ring, sizeof(int));
	}
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

struct marks_message marks_ring_message(uint32_t size)
{
	return (struct marks_message){
		.magic = MARKS_MESSAGE_MAGIC,
		.type = MARKS_RING,
		.version = MARK_VERSION,
		.header = (uint32_t)sysconf(_SC_PAGESIZE),
		.size = size,
		.pid = getpid(),
		.tid = getpid(),
	};
}

int marks_memfd(uint64_t size, int seals)
{
	int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void take_record(struct marks_recording *r, uint32_t ring, const struct mark_record *h,
			const char *fields)
{
	size_t len = h->words * 8U - sizeof(*h);

	assert_true(ring < ARRAY_SIZE(r->epochs));
	if (h->phase == MARK_EPOCH)
		r->epochs[ring] = h->label;
	if (r->epochs[ring] < r->sink.generation)
		return; /* of an earlier recording */
	if (h->phase >= MARK_PHASE_MIN) {
		r->marks++;
		if (r->text.len < 4096)
			buf_printf(&r->text, "%c%u ", h->phase, h->label);
	}
	while (len) {
		struct mark_field f;
		uint64_t value = 0;

		assert_true(len >= sizeof(f));
		memcpy(&f, fields, sizeof(f));
		assert_true(f.words >= 1 && f.words * 8U <= len);
		if (f.words > 1)
			memcpy(&value, fields + 8, 8);
		if (f.kind == MARK_COUNT && h->phase == MARK_LOST)
			r->lost += value;
		if (h->phase == MARK_DEFINE && f.kind == MARK_NAME && r->text.len < 4096)
			buf_printf(&r->text, "%u=%.*s ", h->label, (int)(uint32_t)value,
				   fields + 12);
		fields += f.words * 8U;
		len -= f.words * 8U;
	}
}

static void take_records(struct marks_recording *r, uint32_t ring, const char *p, size_t len)
{
	uint64_t before = 0;

	while (len) {
		struct mark_record h;

		assert_true(len >= sizeof(h));
		memcpy(&h, p, sizeof(h));
		assert_true(h.words >= 2 && h.words * 8U <= len);
		assert_true(h.time >= before);
		before = h.time;
		take_record(r, ring, &h, p + sizeof(h));
		p += h.words * 8U;
		len -= h.words * 8U;
	}
}

static int on_chunk(void *userdata, enum chunk_type type, const struct iovec *iov, int count)
{
	struct marks_recording *r = userdata;
	struct marks_header h;

	if (r->fail)
		return r->fail;
	r->chunks++;
	if (type == CHUNK_PRODUCER) {
		Traced__Capture__Producer *p =
			traced__capture__producer__unpack(NULL, iov[0].iov_len, iov[0].iov_base);

		assert_non_null(p);
		assert_int_equal(count, 1);
		assert_int_equal(p->generation, r->sink.generation);
		r->producers++;
		r->pid = p->pid;
		r->tid = p->tid;
		snprintf(r->comm, sizeof(r->comm), "%.*s", (int)p->comm.len, p->comm.data);
		traced__capture__producer__free_unpacked(p, NULL);
		return 0;
	}
	assert_int_equal(type, CHUNK_MARKS);
	assert_int_equal(count, 2);
	assert_int_equal(iov[0].iov_len, sizeof(h));
	memcpy(&h, iov[0].iov_base, sizeof(h));
	r->dropped = h.dropped;
	r->bytes += iov[1].iov_len;
	take_records(r, h.ring, iov[1].iov_base, iov[1].iov_len);
	return 0;
}

void marks_recording_begin(struct marks *m, struct marks_recording *r)
{
	*r = (struct marks_recording){ .sink = { .write = on_chunk, .userdata = r } };
	assert_int_equal(marks_begin(m, &r->sink), 0);
}

void marks_recording_end(struct marks *m, struct marks_recording *r)
{
	marks_end(m, &r->sink);
	buf_deinit(&r->text);
}
