/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interface between libtraced and traced, which may have different versions: a page that says
 * whether somebody records, a socket that receives rings, and the rings. Not installed.
 *
 * The daemon writes the page, a file that everybody may map for reading. If a thread finds a
 * generation in it, it creates a ring and sends its descriptor to the socket: a memfd of the ring's
 * size, which is sealed against growing and shrinking and nothing else.
 * There is no reply: the thread starts to write at once, by the mapping that it has already: the
 * daemon seals the memfd against others. Each ring has one writer, the thread, and
 * one reader, the daemon. Numbers have the machine's byte order.
 *
 * 	bytes 0 .. header	struct mark_ring
 * 	header .. + size	records, a circular buffer
 *
 * head and tail count bytes since the ring was created, modulo 2^32. The daemon owns the records
 * between them, the thread owns the rest. head always lies between two records. The daemon trusts
 * only its own copy of tail. It trusts nothing that the thread wrote: head and the records may be
 * invalid.
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

/* Special values of struct marks_page.word; others are generations. */
enum marks_word {
	MARKS_OFF = 0,	  /* nobody records */
	MARKS_UNSET = 1,  /* never in the file: the program has not looked for the file yet */
	MARKS_ABSENT = 2, /* never in the file: there is no file */
	MARKS_GONE = 3,	  /* the daemon has stopped and removed the file */
	MARKS_GENERATION_MIN = 16,
};

struct marks_page {
	uint32_t word; /* enum marks_word, or the number of the latest recording */
	uint32_t version;
	uint64_t daemon; /* differs after each start of the daemon */
	/*
	 * Not 0: the file is removed when the daemon ends or, if it was killed, by the next such
	 * daemon.
	 */
	uint32_t transient;
};

#define MARK_RING_MIN (64U << 10) /* bytes of records; a power of two */
#define MARK_RING_MAX (16U << 20)

struct mark_ring {
	/* Written by the thread. */
	uint32_t head;	  /* store with release order */
	uint32_t dropped; /* marks that did not fit, modulo 2^32 */
	uint32_t closed;  /* not 0: the thread has ended and head is final */
	uint32_t zero[13];
	/* Written by the daemon. */
	uint32_t tail; /* store with release order */
	uint32_t zero_too[15];
};

#define MARKS_MESSAGE_MAGIC UINT32_C(0x4b52414d) /* "MARK" */

enum marks_message_type {
	MARKS_RING = 1, /* sent with the memfd's descriptor */
	MARKS_LOOK = 2, /* a ring is filling, or was closed */
};

struct marks_message {
	uint32_t magic;
	uint16_t type;
	uint16_t version; /* MARK_VERSION of the records */
	uint32_t header;  /* bytes before the records: a multiple of the page size */
	uint32_t size;	  /* bytes of records */
	int32_t pid, tid; /* in the thread's own pid namespace */
	uint32_t clock;
	uint32_t zero;
	char comm[16]; /* the thread's name from the kernel, terminated */
};
