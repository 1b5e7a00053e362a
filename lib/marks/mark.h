/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One mark that an application made: what the Trace Event Format can say of an
 * event, whatever it came from. Marks of all sources reach the sinks as one
 * sequence: what describes others first (frames, names), then all that has a
 * time, in its order, then samples.
 */
#pragma once

#include <stdint.h>

#include "marks/value.h"

/* The format's own letters. */
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
	/* What the format has beside its events: */
	PHASE_FRAME = 1,	 /* a member of stackFrames: id, name, cat; sf is its parent */
	PHASE_GLOBAL_SAMPLE = 2, /* an element of samples: args holds cpu and weight */
};
/* The letters, for a check of what a source says. */
#define MARK_PHASES "BEXiCbnestfPNODMVvRc()="

enum mark_id_kind { ID_NONE, ID_PLAIN, ID_LOCAL, ID_GLOBAL };

enum mark_has {
	HAS_DUR = 1 << 0,
	HAS_TTS = 1 << 1,
	HAS_TDUR = 1 << 2,
	HAS_TICOUNT = 1 << 3,
	HAS_TIDELTA = 1 << 4,
	HAS_BIND_ENCLOSING = 1 << 5, /* "bp":"e" of a flow's end */
};

/* The parts of a mark that are text, or values in a row. */
enum mark_part {
	PART_NAME,
	PART_CAT,
	PART_ID,    /* a number is spelled 0x1f */
	PART_SCOPE, /* of the id */
	PART_CNAME,
	PART_SF,    /* ids of frames: begin */
	PART_ESF,   /* end */
	PART_ARGS,  /* members of a dict */
	PART_EXTRA, /* members that the format does not know, to be passed on */
	PART_PARTS,
};

struct mark {
	uint8_t phase; /* enum mark_phase */
	uint8_t id_kind;
	uint8_t has;	 /* enum mark_has */
	char instant;	 /* of PHASE_INSTANT: 't', 'p' or 'g' */
	uint32_t source; /* whose ids of frames these are */
	int32_t pid, tid;
	uint64_t ts;	    /* ns, in the trace clock */
	uint64_t dur;	    /* ns; where has says so, as the following */
	uint64_t tts, tdur; /* ns of the thread's CPU time */
	uint64_t ticount, tidelta;
	struct text part[PART_PARTS]; /* borrowed */
};
