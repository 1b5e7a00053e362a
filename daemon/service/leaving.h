/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exporters that are to end. One that waits for a server of FUSE or NFS ends when that likes, even
 * after SIGKILL. Until then its user is charged with the process, and with the removed spool that
 * it has open.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct leaving;
struct loop;

int leaving_new(struct leaving **ret, struct loop *loop);
/* Forgets those that are left. Returns NULL. */
struct leaving *leaving_free(struct leaving *l);
/*
 * end_fd: child_end() of the exporter; taken. -EBADF: does nothing. spool_fd: what it reads; stays
 * the caller's. Without memory it is not charged.
 */
void leaving_add(struct leaving *l, uid_t account, int end_fd, int spool_fd);
/* How many there are of this user; *ret_users: of all users but root. */
unsigned leaving_count(const struct leaving *l, uid_t account, unsigned *ret_users);
/* Bytes of the user's spools that have no name any more. */
uint64_t leaving_bytes(const struct leaving *l, uid_t account);
