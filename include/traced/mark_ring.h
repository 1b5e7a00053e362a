/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Between libtraced and traced, who may be of different versions: the page that says
 * whether anybody records, the socket at which rings are handed over, and the rings.
 * Not installed.
 *
 * The page is a file that the daemon writes and everybody may map to read. A thread
 * that finds a generation in it makes a ring, a sealed memfd, and sends its
 * descriptor to the socket; nobody answers, and the thread begins to write at once.
 *
 *	bytes 0 .. header	struct mark_ring
 *	header .. + size	records, round and round
 *
 * head and tail count bytes since the ring's beginning, modulo 2^32. The records
 * between them are the daemon's, the rest is the thread's; head always lies between
 * two records. The daemon believes its own copy of tail, and of what the
 * thread wrote nothing: not even that head and the records make sense.
 */
#pragma once

#include <stdint.h>

#ifndef MARKS_FOLDER
#define MARKS_FOLDER "/run/traced"
#endif
#define MARKS_SOCKET "marks.sock" /* SOCK_SEQPACKET */
#define MARKS_PAGE "marks.page"

#define MARKS_PAGE_BYTES 4096
#define MARKS_PAGE_VERSION 1

/* What struct marks_page.word may hold besides a generation. */
enum marks_word {
	MARKS_OFF = 0,	  /* nobody records */
	MARKS_UNSET = 1,  /* never in the file: the program has not looked for it */
	MARKS_ABSENT = 2, /* never in the file: there is none */
	MARKS_GONE = 3,	  /* the daemon has left and removed the file */
	MARKS_GENERATION_MIN = 16,
};

struct marks_page {
	uint32_t word; /* enum marks_word, or the number of the recording begun last */
	uint32_t version;
	uint64_t daemon; /* another one with each start of the daemon */
	/* Not 0: it goes with the daemon; or with the next such, if that was killed. */
	uint32_t transient;
};

#define MARK_RING_MIN (64U << 10) /* bytes of records; a power of two */
#define MARK_RING_MAX (16U << 20)

struct mark_ring {
	/* Written by the thread. */
	uint32_t head;	  /* release */
	uint32_t dropped; /* marks that found no room, modulo 2^32 */
	uint32_t closed;  /* not 0: the thread has ended, head is final */
	uint32_t zero[13];
	/* Written by the daemon. */
	uint32_t tail; /* release */
	uint32_t zero_too[15];
};

#define MARKS_MESSAGE_MAGIC UINT32_C(0x4b52414d) /* "MARK" */

enum marks_message_type {
	MARKS_RING = 1, /* with the memfd's descriptor */
	MARKS_LOOK = 2, /* a ring fills, or is closed */
};

struct marks_message {
	uint32_t magic;
	uint16_t type;
	uint16_t version; /* MARK_VERSION of the records */
	uint32_t header;  /* bytes before the records: a multiple of the page size */
	uint32_t size;	  /* bytes of records */
	int32_t pid, tid; /* as the thread knows them: of its own namespace */
	uint32_t clock;
	uint32_t zero;
	char comm[16]; /* the thread's name; as the kernel has it, terminated */
};
