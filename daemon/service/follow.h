/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's end of an export that follows its recording. The daemon reports new data, and at
 * last the end. The exporter reports that it waits for more, and which bytes of the spool it does
 * not need any more; the daemon returns their space. The daemon waits for neither.
 */
#pragma once

#include <stdbool.h>

#include "daemon/service/loop.h"
#include "daemon/service/spool.h"

struct follow;

/*
 * spool is borrowed; NULL: it keeps all. waiting: called after each message of the exporter, and
 * after the space was returned. *ret_child_fd: the exporter's end.
 */
int follow_new(struct follow **ret, struct loop *loop, struct spool *spool,
	       void (*waiting)(void *userdata), void *userdata, int *ret_child_fd,
	       struct error *err);
struct follow *follow_free(struct follow *f);
DEFINE_CLEANUP_FUNC(struct follow *, follow_free);

/* Reports that the spool has grown. */
void follow_wake(struct follow *f);
/* True if the exporter has read all that was reported to it: only another FLUSH helps it. */
bool follow_starves(const struct follow *f);
/* CPU time that the exporter has taken, until it waited last. */
uint64_t follow_cpu_ns(const struct follow *f);
/* Reports that the spool is complete. */
void follow_end(struct follow *f);

/* The exporter's side, on its descriptor; implements struct export_follow's wait. */
int follow_wait(int fd, uint64_t from, uint64_t to);
