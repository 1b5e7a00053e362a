/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists the machine's tasks from procfs, in slices, so that the rings are not kept waiting. */
#pragma once

#include <dirent.h>
#include <stdbool.h>

#include "base/table.h"
#include "stream/writer.h"

DECLARE_TABLE(task_slots, struct task_seen);

/* Tasks written by earlier scans. A scan with a memory writes only new or changed tasks. */
struct task_memory {
	struct task_slots tasks;
	uint32_t scan; /* number of the latest scan */
};
void task_memory_deinit(struct task_memory *m);

struct task_scan {
	int proc; /* the procfs folder */
	DIR *processes;
	unsigned tasks;		    /* written so far */
	size_t unread;		    /* command lines that processes held up; stays after the end */
	struct task_memory *memory; /* borrowed; NULL: write all tasks */
};
#define TASK_SCAN_INIT ((struct task_scan){ .proc = -EBADF })

int task_scan_start(struct task_scan *s, const char *proc, struct task_memory *memory);
/* Writes a TASKS chunk of the next processes. 1: more to do; 0: done; or -errno. */
int task_scan_step(struct task_scan *s, struct stream_writer *w);
void task_scan_end(struct task_scan *s);

/* The user who runs the process with this folder in procfs. Leaves *ret_uid if it has ended. */
void task_read_uid(int process, uint32_t *ret_uid);

/* Writes the kernel's saved_cmdlines (lines "PID NAME") as a TASKS chunk of origin 1. */
int tasks_write_saved(const char *text, struct stream_writer *w);
