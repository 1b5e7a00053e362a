/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The only code that touches tracefs. The root is injected: the kernel's own, wherever it is
 * mounted, or a directory that looks like one. Everything below is opened relative to a directory
 * descriptor.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

struct tracefs;

/*
 * root NULL: finds the mounted tracefs (/sys/kernel/tracing, then /proc/self/mounts, which may
 * have it under debugfs). If none is mounted and the caller may, makes a detached mount (fsopen,
 * Linux 5.2) that nobody else sees and that ends with the process. -ENODEV: the kernel has no
 * tracefs; -EACCES, -EPERM: not permitted. The hint says how to fix it.
 */
int tracefs_open(struct tracefs **ret, const char *root, struct error *err);
/* Returns the same tracefs for another thread. Only the cached event list is not shared. */
int tracefs_dup(struct tracefs **ret, const struct tracefs *fs);
struct tracefs *tracefs_free(struct tracefs *fs);
DEFINE_CLEANUP_FUNC(struct tracefs *, tracefs_free);
/* The root's path, for messages. */
const char *tracefs_path(const struct tracefs *fs);
/* The device of its files, as in stat(2). 0: unknown. */
dev_t tracefs_device(const struct tracefs *fs);

/*
 * The kernel's events as "system:event", sorted. Borrowed until a later call finds that the list
 * has changed (modules come and go).
 */
int tracefs_events(struct tracefs *fs, const char *const **ret, size_t *ret_count,
		   struct error *err);

enum tracefs_list { TRACEFS_CLOCKS, TRACEFS_TRACERS, TRACEFS_OPTIONS };
/* Appends the kernel's clocks, tracers or trace options, separated by spaces. 0 or -errno. */
int tracefs_list(const struct tracefs *fs, enum tracefs_list what, struct buf *out);
/* Appends the text of the format file of event "system:name". 0 or -errno. */
int tracefs_format(const struct tracefs *fs, const char *event, struct buf *out);

/* Private to this room. */

/* Sets "cannot read FILE: ..." and why even root may be refused. Returns code. */
int tracefs_unreadable(struct error *err, int code, const char *file);

/* The top level's directory descriptor; borrowed. */
int tracefs_root(const struct tracefs *fs);
/* event: "system/name". */
bool tracefs_has_event(const struct tracefs *fs, const char *event);
/* Returns a descriptor of an instance's directory (NULL: the top level), or -errno. */
int tracefs_open_instance(const struct tracefs *fs, const char *instance);
int tracefs_make_instance(const struct tracefs *fs, const char *instance);
/*
 * Makes the rings small, in slices up to until_ns (CLOCK_MONOTONIC): removal frees all their memory
 * at once. True: there is more to free.
 */
bool tracefs_shrink_instance(const struct tracefs *fs, const char *instance, uint64_t until_ns);
/* -EBUSY: somebody has one of its files open; -ENOENT: no such instance. */
int tracefs_try_remove_instance(const struct tracefs *fs, const char *instance);
/* The same, but waits up to a second for readers that are just closing. */
int tracefs_remove_instance(const struct tracefs *fs, const char *instance);
/* Lists all instances; free strings and array with tracefs_free_names. */
int tracefs_list_instances(const struct tracefs *fs, char ***ret, size_t *ret_count);
void tracefs_free_names(char **names, size_t count);

/* Opens a file below dirfd, close-on-exec. Returns the descriptor or -errno. */
int tracefs_open_file(int dirfd, int flags, const char *fmt, ...) _printf_(3, 4);
/*
 * Replaces the file's content. 0 or -errno. Files that take words (set_ftrace_filter) accept one
 * per write(2) and return how far they got. They check a word only if a newline follows it, and
 * silently ignore a wrong one without.
 */
int tracefs_write(int dirfd, const char *file, const char *value);
/* Like tracefs_write, but keeps the file's content. */
int tracefs_append(int dirfd, const char *file, const char *value);
/* Appends the file's content, without its last newline. 0 or -errno. */
int tracefs_read(int dirfd, const char *file, struct buf *out);
int tracefs_read_u64(int dirfd, const char *file, uint64_t *ret);
/*
 * Sets the size of each CPU's buffer, in slices: the kernel holds a lock for each, which all users
 * of tracefs need. 1: until_ns (CLOCK_MONOTONIC) is over, and the size is not reached.
 */
int tracefs_resize_buffers(int dirfd, uint64_t kb, uint64_t until_ns);
/*
 * Returns the last message of the instance's error_log, the one with the caret, verbatim; to be
 * freed; NULL if there is none.
 */
char *tracefs_last_error(const struct tracefs *fs, const char *instance);
