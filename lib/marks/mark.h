/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A mark made by an application, with the contents of a Trace Event Format event, whatever its
 * source. All sources are merged into one sequence for the sinks: first frames and metadata, then
 * marks with a time in time order, then samples.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "marks/value.h"
#include "trace/shares.h"

/* Letters of the Trace Event Format. */
enum mark_phase {
	PHASE_BEGIN = 'B',
	PHASE_END = 'E',
	PHASE_COMPLETE = 'X',
	PHASE_INSTANT = 'i',
	PHASE_COUNTER = 'C',
	PHASE_ASYNC_BEGIN = 'b',
	PHASE_ASYNC_INSTANT = 'n',
	PHASE_ASYNC_END = 'e',
	PHASE_FLOW_START = 's',
	PHASE_FLOW_STEP = 't',
	PHASE_FLOW_END = 'f',
	PHASE_SAMPLE = 'P',
	PHASE_OBJECT_NEW = 'N',
	PHASE_OBJECT_SNAPSHOT = 'O',
	PHASE_OBJECT_DELETE = 'D',
	PHASE_METADATA = 'M',
	PHASE_MEMORY_GLOBAL = 'V',
	PHASE_MEMORY_PROCESS = 'v',
	PHASE_MARK = 'R',
	PHASE_CLOCK_SYNC = 'c',
	PHASE_CONTEXT_ENTER = '(',
	PHASE_CONTEXT_LEAVE = ')',
	PHASE_LINK = '=',
	/* Elements of the format that are not events: */
	PHASE_FRAME = 1,	 /* member of stackFrames: id, name, cat; sf is its parent */
	PHASE_GLOBAL_SAMPLE = 2, /* element of samples; args holds cpu and weight */
	/* No application's: one reading of a file, see marks/poll.h. */
	PHASE_POLLED = 3,
};
/* All valid phase letters. */
#define MARK_PHASES "BEXiCbnestfPNODMVvRc()="
/* The warning of formats whose counters have numbers only. */
#define MARKS_NUMBERLESS                                                                           \
	"value of a counter is left out: it is no finite number",                                  \
		"values of counters are left out: they are no finite numbers"
/* The phase of a letter: a deprecated one has a successor. 0: the format does not know it. */
static inline uint8_t mark_phase_of(char letter)
{
	switch (letter) {
	case 'I':
		return PHASE_INSTANT;
	case 'S':
		return PHASE_ASYNC_BEGIN;
	case 'T':
	case 'p':
		return PHASE_ASYNC_INSTANT;
	case 'F':
		return PHASE_ASYNC_END;
	default:
		return letter && strchr(MARK_PHASES, letter) ? (uint8_t)letter : 0;
	}
}

enum mark_id_kind { ID_NONE, ID_PLAIN, ID_LOCAL, ID_GLOBAL };

enum mark_has {
	HAS_DUR = 1 << 0,
	HAS_TTS = 1 << 1,
	HAS_TDUR = 1 << 2,
	HAS_TICOUNT = 1 << 3,
	HAS_TIDELTA = 1 << 4,
	HAS_BIND_ENCLOSING = 1 << 5, /* "bp":"e" of a flow end */
	HAS_OWN_FRAMES = 1 << 6,     /* the recording's own frame ids, not a file's */
	HAS_SHARED_ID = 1 << 7,	     /* its id is the same on all machines */
};

/* Parts of a mark that are text or packed values. */
enum mark_part {
	PART_NAME,
	PART_CAT,
	PART_ID,    /* 0x1f where the source gave a number */
	PART_SCOPE, /* scope of the id */
	PART_CNAME,
	PART_SF,    /* frame ids at the begin */
	PART_ESF,   /* frame ids at the end */
	PART_ARGS,  /* members of an object */
	PART_EXTRA, /* unknown members, passed on unchanged */
	PART_PARTS,
};

/* The place of a frame's code, for frames of the recording's own. */
struct frame_code {
	bool kernel;
	uint64_t offset; /* in the file, or the address in memory without one; 0 in the kernel */
	struct text path, build_id; /* borrowed; empty: unknown */
};

struct mark {
	uint8_t phase; /* enum mark_phase */
	uint8_t id_kind;
	uint8_t has;	 /* enum mark_has */
	char instant;	 /* for PHASE_INSTANT: 't', 'p' or 'g' */
	char was;	 /* the deprecated letter that the phase replaced, or 0 */
	uint32_t source; /* source whose frame ids these are, without HAS_OWN_FRAMES */
	int32_t pid, tid;
	uint32_t uid;	    /* of the program, with HAS_OWN_FRAMES */
	uint64_t ts;	    /* ns, in the trace clock */
	uint64_t dur;	    /* ns; valid if `has` says so, like those below */
	uint64_t tts, tdur; /* CPU time of the thread, in ns */
	uint64_t ticount, tidelta;
	struct text part[PART_PARTS];  /* borrowed */
	const struct poll *poll;       /* for PHASE_POLLED; borrowed */
	const struct frame_code *code; /* for PHASE_FRAME: borrowed, or NULL */
	/* For PHASE_GLOBAL_SAMPLE: as in PERF_RECORD_MISC_CPUMODE_MASK; 0: unknown. */
	uint8_t cpu_mode;
	struct text begun; /* for PHASE_END: the name of the slice that it ends; borrowed */
};

static inline struct share_owner mark_owner_of(const struct mark *m)
{
	return (struct share_owner){ m->has & HAS_OWN_FRAMES ? m->uid
							     : SHARE_OWNER_FILE + m->source,
				     m->pid };
}
