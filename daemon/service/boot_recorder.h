/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder of crashes: its configuration, what it knows of this boot and the last one, and the
 * recordings that it keeps of crashed boots. Everything runs in the caller's process, before any
 * daemon.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/service/config.h"

#define BOOT_RECORDER_FILE TRACED_SYSCONFDIR "/traced/boot-recorder.conf"
#define BOOT_RECORDER_INSTANCE "traced_boot"
#define BOOT_RECORDER_NAME_MAX 64
/* Recordings of crashed boots that stay in the spool. */
#define BOOT_RECORDER_KEEP 3

struct boot_recorder_config {
	char *instance;		   /* letters, digits, '_', '-', '.' */
	uint64_t size;		   /* bytes of all CPUs */
	struct string_list events; /* globs */
	char *tracer;		   /* NULL: none */
};
void boot_recorder_config_deinit(struct boot_recorder_config *c);
#define _cleanup_boot_recorder_config_ _cleanup_(boot_recorder_config_deinit)

/*
 * -ENOENT: no such file; then the default instance is set. -EINVAL: faulty; the error names file
 * and line.
 */
int boot_recorder_config_load(struct boot_recorder_config *ret, const char *path,
			      struct error *err);
/* Appends the file's text. Its values must be valid. 0 or -ENOMEM. */
int boot_recorder_config_print(const struct boot_recorder_config *c, struct buf *out);
/* `key`, which begins the messages of these, is the value's name. */
/* -EINVAL: the kernel would not take the name in trace_instance=. */
int boot_recorder_check_name(const char *key, const char *name, struct error *err);
/* -EINVAL: not a size of a ring. */
int boot_recorder_check_size(const char *key, uint64_t bytes, struct error *err);
/*
 * -EINVAL: no less than this machine's memory. Appends to *warning if it is much of it. Neither
 * where PROC/meminfo doesn't say.
 */
int boot_recorder_check_memory(const char *key, uint64_t bytes, const char *proc,
			       struct buf *warning, struct error *err);
/* -EINVAL: not a glob of events' names. */
int boot_recorder_check_event(const char *key, const char *glob, struct error *err);

/* The state file of an instance, in the spool's folder. Strings are owned; NULL: unknown. */
struct boot_recorder_state {
	bool of_this_boot;
	bool armed;   /* in that boot */
	char *kernel; /* text of /proc/version then: the kernel that fills the ring */
	char *saved;  /* the recording of the boot before it; NULL: there was nothing */
	char *begun;  /* the recording of a save in this boot that was killed, if it has events;
			 NULL: none. After such a save of_this_boot is false. */
};
void boot_recorder_state_deinit(struct boot_recorder_state *s);
#define _cleanup_boot_recorder_state_ _cleanup_(boot_recorder_state_deinit)
/* A missing or damaged file says nothing. 0 or -ENOMEM. */
int boot_recorder_state_load(struct boot_recorder_state *ret, const char *spool_dir,
			     const char *instance, const char *proc);
/* Replaces the file, as of this boot and its kernel. */
int boot_recorder_state_save(const struct boot_recorder_state *s, const char *spool_dir,
			     const char *instance, const char *proc, struct error *err);

/*
 * Replaces the file of the last boot's events, saved in this boot, by one with the symbols of the
 * modules that are loaded now. On failure the file stays as it was. -ENOSPC: fewer than the
 * configuration's min_free bytes would stay free.
 */
int boot_recorder_renew(const struct capture_env *env, const struct config *config,
			const char *path, struct error *err);
/*
 * Moves the last boot's events into a file of the spool, and removes the oldest of such files.
 * state: as loaded. Before it takes events it saves a state that names the file, so a save that is
 * killed is found. If a killed save left none in the ring, the result is that one's file. Returns
 * the path, to be freed, in *ret. -ENODATA: there are none. -ENOEXEC: another kernel filled the
 * ring, whose events this one cannot describe.
 */
int boot_recorder_save(const struct capture_env *env, const char *instance,
		       const struct boot_recorder_state *state, const struct config *config,
		       char **ret, struct error *err);
/*
 * The same before the ring is used again. 0: it may be: its events are kept, or it had none, then
 * *ret is NULL. Otherwise they are in the ring alone. First removes what a killed
 * boot_recorder_renew() left.
 */
int boot_recorder_keep(const struct capture_env *env, const char *instance,
		       const struct boot_recorder_state *state, const struct config *config,
		       char **ret, struct error *err);
