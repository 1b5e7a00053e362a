/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who runs on the machine, by procfs; read in slices, so that the rings need not wait. */
#pragma once

#include <dirent.h>
#include <stdbool.h>

#include "stream/writer.h"

/* What earlier scans wrote: a scan that has it writes only what is new or has changed. */
struct task_memory {
	struct task_seen *slots; /* a hash table by tid; owned */
	size_t size, used;	 /* size: a power of two, or 0 */
	uint32_t scan;		 /* number of the last one */
};
void task_memory_deinit(struct task_memory *m);

struct task_scan {
	int proc; /* the procfs folder */
	DIR *processes;
	unsigned tasks;		    /* written so far */
	struct task_memory *memory; /* borrowed, or NULL: all are written */
};
#define TASK_SCAN_INIT ((struct task_scan){ .proc = -EBADF })

int task_scan_start(struct task_scan *s, const char *proc, struct task_memory *memory);
/* Writes a TASKS chunk of some more processes. 1: there are more; 0: done; or -errno. */
int task_scan_step(struct task_scan *s, struct stream_writer *w);
void task_scan_end(struct task_scan *s);

/* What one line of a stat file tells. */
struct task_stat {
	int32_t tid, ppid;
	char comm[64];
	bool kthread;
	uint64_t start_ns; /* since boot */
};
/* -EBADMSG: no such line. hz: USER_HZ. */
int task_stat_parse(struct task_stat *ret, const char *line, size_t len, long hz);

/* The kernel's saved_cmdlines (lines "PID NAME") as a TASKS chunk of origin 1. */
int tasks_write_saved(const char *text, struct stream_writer *w);
