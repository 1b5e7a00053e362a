/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests on the running kernel: a recording of our own, and what its stream holds. */
#pragma once

#include "daemon/capture/capture.h"
#include "proto/capture.pb-c.h"
#include "trace/page.h"
#include "traced/stream.h"

/* Where tracefs can't be used, ends the program with 77. */
struct tracefs *open_tracefs_or_skip(void);

struct recording {
	struct capture_env env;
	char dir[64]; /* holds the state folder and the stream */
	char state[80];
	int fd; /* of the stream */
};

void recording_init(struct recording *r, struct tracefs *fs);
void recording_deinit(struct recording *r);

/* Dispatches until the time has come. */
void run_until(struct capture *c, uint64_t boot_ns);
void run_for(struct capture *c, uint64_t ns);

/* Rings can be mapped since 6.10. */
bool kernel_maps_rings(void);

/* Names in tracefs/instances that begin with prefix. */
unsigned count_instances(struct tracefs *fs, const char *prefix);

#define DECODED_CPUS 64

struct decoded_cpu {
	uint64_t events, missed; /* in the sub-buffers, announced by them */
	uint64_t uncounted;	 /* sub-buffers that announce a loss without its size */
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

/* Reads a whole stream; each record (outside of skipped bytes) is handed to func, if any. */
struct decoded *decode(int fd, record_func func, void *userdata);
void decoded_free(struct decoded *d);
/* -1: not in the stream. */
int decoded_event_id(const struct decoded *d, const char *name);
uint16_t record_id(const struct record *r);
