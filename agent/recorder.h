/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows an order: runs `tracectl record` as a child, without a shell, and puts what it wrote into
 * the spool. One recording at a time, in the folder "recording". A segment moves as soon as it is
 * whole; its name there, SERIAL.0001.pftrace, says whose it is, so a later agent moves what a
 * killed one left.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "agent/policy.h"
#include "agent/spool.h"
#include "base/buf.h"
#include "fleet/order.h"

struct recorder {
	int dirfd;	      /* of the folder; -EBADF: none yet */
	pid_t pid;	      /* 0: no child */
	uint64_t deadline_ns; /* CLOCK_BOOTTIME: the child is ended */
	unsigned urges;	      /* signals that it got */
	uint64_t started_s;   /* seconds since 1970 */
	unsigned segments;    /* moved or lost so far */
	uint64_t look_ns;     /* CLOCK_BOOTTIME: the next look for segments; UINT64_MAX: none */
	bool is_full;	      /* segments_max is reached: the child ends */
	struct error failure; /* of the first segment that was lost */
	uint64_t said;	      /* bytes of the child's messages that were logged */
	uint64_t say_ns;      /* CLOCK_BOOTTIME: the next look for messages */
	char cause[256];      /* the last message of tracectl, without its name; "": none */
};
#define RECORDER_INIT ((struct recorder){ .dirfd = -EBADF })

#define RECORDER_ARGUMENTS_MAX 96
/*
 * Fills argv, which ends with NULL, with words of order, policy and numbers (numbers' text).
 * tracectl gets no other word that somebody far away wrote.
 */
struct recorder_arguments {
	const char *argv[RECORDER_ARGUMENTS_MAX];
	char duration[32], output[64], rotate_ns[32], rotate_bytes[32], cpu[16];
	char *reports; /* owned */
};
int recorder_arguments_init(struct recorder_arguments *ret, const struct order *order,
			    const struct policy *policy, struct error *err);
void recorder_arguments_deinit(struct recorder_arguments *arguments);

/* Opens the folder, and leaves what is in it. */
int recorder_open(struct recorder *recorder, int state_fd, struct error *err);
/* Waits until a killed agent's child has ended. The order whose segments it left; 0: none. */
uint64_t recorder_find_left(const struct recorder *recorder);
void recorder_close(struct recorder *recorder);

int recorder_start(struct recorder *recorder, const struct order *order,
		   const struct policy *policy, struct error *err);
/*
 * Moves segments that are whole into the spool. Returns the count. One that is too large, or has no
 * room, is lost: recorder_collect() says so. A child that begins more than segments_max is ended.
 */
unsigned recorder_take_segments(struct recorder *recorder, const struct policy *policy,
				struct spool *spool, uint64_t now_ns);
/* True if the child has ended; then *ret_status is that of waitpid(). */
bool recorder_reap(struct recorder *recorder, int *ret_status);
/* Logs what the child wrote to its standard error, if the next look is due. */
void recorder_say(struct recorder *recorder, uint64_t serial, uint64_t now_ns);
/* Logs the rest of an ended child's messages; `cause` is set then. */
void recorder_say_rest(struct recorder *recorder, uint64_t serial);
/* Ends a child that is past its deadline. */
void recorder_urge(struct recorder *recorder, uint64_t now_ns);
/* Ends the child soon, without waiting for it. */
void recorder_end(struct recorder *recorder, uint64_t now_ns);
/* Removes what an ended child wrote. */
void recorder_discard(struct recorder *recorder);
/* Ends the child, and waits for it. */
void recorder_stop(struct recorder *recorder);
/*
 * Moves the results of a recording into the spool and empties the folder. Returns the count, or the
 * first error: others may have been moved. Segments have been moved before.
 */
int recorder_collect(struct recorder *recorder, const struct order *order,
		     const struct policy *policy, struct spool *spool, struct error *err);
