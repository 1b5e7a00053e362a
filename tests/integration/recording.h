/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests on the running kernel: a recording of our own, and the content of its stream. */
#pragma once

#include "daemon/capture/capture.h"
#include "proto/capture.pb-c.h"
#include "trace/page.h"
#include "traced/stream.h"

/* Ends the program with 77 if tracefs can't be used. */
struct tracefs *open_tracefs_or_skip(void);

struct recording {
	struct capture_env env;
	char dir[64]; /* holds the state folder and the stream */
	char state[80];
	int fd; /* of the stream */
};

void recording_init(struct recording *r, struct tracefs *fs);
void recording_deinit(struct recording *r);

/* Dispatches until that time. */
void run_until(struct capture *c, uint64_t boot_ns);
void run_for(struct capture *c, uint64_t ns);

/* Rings can be mapped since 6.10. */
bool kernel_maps_rings(void);

/* Counts the names in tracefs/instances that begin with prefix. */
unsigned count_instances(struct tracefs *fs, const char *prefix);

#define DECODED_CPUS 64

struct decoded_cpu {
	uint64_t events, missed; /* losses that sub-buffers announce */
	uint64_t uncounted;	 /* sub-buffers that announce a loss of unknown size */
	uint64_t subbufs, last_ts;
	Traced__Capture__CpuStats stats; /* the last ones */
};

struct decoded {
	struct decoded_cpu cpus[2][DECODED_CPUS]; /* by buffer */
	Traced__Capture__Header *header;
	struct page_layout layout;
	unsigned formats, tasks, kallsyms, excerpts, clocks, notes, ends;
	uint64_t whole; /* bytes up to the end of the last whole chunk */
	bool cut;
	struct {
		char name[96]; /* "system:event" */
		uint16_t id;
	} names[4096];
	unsigned name_count;
};

typedef void (*record_func)(void *userdata, enum subbufs_buffer buffer, unsigned cpu,
			    const struct record *record);

/* Reads a whole stream, and calls func, if any, for each record outside of skipped bytes. */
struct decoded *decode(int fd, record_func func, void *userdata);
void decoded_free(struct decoded *d);
/* -1: not in the stream. */
int decoded_event_id(const struct decoded *d, const char *name);
