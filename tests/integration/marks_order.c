/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that dates its marks by a clock of the caller's choice. In turn it writes a line into a
 * trace_marker and a mark into a ring, as close together as it can.
 *
 * marks_order FOLDER TRACE_MARKER CLOCK COUNT; CLOCK is a number of clock_gettime(2), or that of
 * x86's counter.
 */
#include <err.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "traced/mark_record.h"
#include "traced/mark_ring.h"

#define RING (4U << 20)
#define NAME 8 /* bytes of a mark's name */

struct order_mark {
	struct mark_record record;
	struct mark_field field;
	uint32_t len;
	char name[NAME];
	uint32_t zero;
};

struct order_epoch {
	struct mark_record record;
	struct mark_field field;
	uint64_t dropped;
};

static uint64_t stamp(uint32_t clock)
{
	struct timespec t;

#if defined(__x86_64__) || defined(__i386__)
	if (clock == MARK_CLOCK_TSC) {
		__builtin_ia32_lfence();
		return __builtin_ia32_rdtsc();
	}
#endif
	if (clock_gettime((clockid_t)clock, &t) < 0)
		err(1, "clock %u", clock);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint32_t find_recording(const char *folder)
{
	char path[200];
	struct marks_page page;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, MARKS_PAGE);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &page, sizeof(page), 0) != sizeof(page))
		err(1, "%s", path);
	close(fd);
	if (page.word < MARKS_GENERATION_MIN)
		errx(1, "nobody records");
	return page.word;
}

static void hand_over(const char *folder, int ring, uint32_t header, uint32_t clock)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct marks_message message = {
		.magic = MARKS_MESSAGE_MAGIC,
		.type = MARKS_RING,
		.version = MARK_VERSION,
		.header = header,
		.size = RING,
		.pid = getpid(),
		.tid = (int32_t)syscall(SYS_gettid),
		.clock = clock,
	};
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { &message, sizeof(message) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &ring, sizeof(int));
	snprintf(to.sun_path, sizeof(to.sun_path), "%.80s/%s", folder, MARKS_SOCKET);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    sendmsg(fd, &m, 0) != sizeof(message))
		err(1, "%s", to.sun_path);
	/* The socket stays open: it ends with the program. */
}

int main(int argc, char **argv)
{
	uint32_t clock, count, generation, header = (uint32_t)sysconf(_SC_PAGESIZE);
	struct order_epoch epoch = { .record = { .words = sizeof(epoch) / 8, .phase = MARK_EPOCH },
				     .field = {
					     .words = 2, .kind = MARK_COUNT, .type = MARK_UINT } };
	struct order_mark mark = { .record = { .words = sizeof(mark) / 8, .phase = 'i' },
				   .field = { .words = 3, .kind = MARK_NAME, .type = MARK_STRING },
				   .len = NAME };
	struct mark_ring *ring;
	int fd, marker;
	char *at;

	_Static_assert(sizeof(mark) == 40, "a record of five words");
	if (argc != 5)
		errx(2, "FOLDER TRACE_MARKER CLOCK COUNT");
	clock = (uint32_t)atoi(argv[3]);
	count = (uint32_t)atoi(argv[4]);
	if (count > RING / sizeof(mark) - 2)
		errx(2, "too many");
	generation = find_recording(argv[1]);
	marker = open(argv[2], O_WRONLY | O_CLOEXEC);
	fd = memfd_create("order", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (marker < 0 || fd < 0 || ftruncate(fd, header + RING) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		err(1, "%s", argv[2]);
	ring = mmap(NULL, header + RING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (ring == MAP_FAILED)
		err(1, "mmap");
	hand_over(argv[1], fd, header, clock);

	at = (char *)ring + header;
	epoch.record.label = generation;
	epoch.record.time = stamp(clock);
	memcpy(at, &epoch, sizeof(epoch));
	at += sizeof(epoch);
	for (uint32_t i = 0; i < count; i++) {
		char line[48], name[NAME + 1];
		int len = snprintf(line, sizeof(line), "C|%d|order%u|%u", getpid(), clock, i);

		snprintf(name, sizeof(name), "m%07u", i % 10000000);
		memcpy(mark.name, name, NAME);
		if (write(marker, line, (size_t)len) != len)
			err(1, "%s", argv[2]);
		mark.record.time = stamp(clock);
		memcpy(at, &mark, sizeof(mark));
		at += sizeof(mark);
		__atomic_store_n(&ring->head, (uint32_t)(at - (char *)ring - header),
				 __ATOMIC_RELEASE);
	}
	__atomic_store_n(&ring->closed, 1, __ATOMIC_RELEASE);
	/* The daemon cannot ask an ended process for its name. */
	printf("%d\n", getpid());
	fflush(stdout);
	pause();
	return 0;
}
