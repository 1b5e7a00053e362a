/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The account of events, per CPU. The events that the kernel wrote must equal those in the file
 * plus the known losses:
 *
 * 	written = events + lost_overrun + lost_other + unread + left_out
 *
 * `written` comes from the kernel: entries + overrun + commit_overrun + dropped + read of the last
 * Stats, minus what the first Stats counted as gone. Without Stats (the stream was cut early), or
 * if the kernel reset its counts in between, it is the sum of the right side.
 */
#pragma once

#include "base/parse.h"
#include "trace/index.h"
#include "trace/merge.h"

struct ledger_row {
	unsigned cpu;
	uint64_t written;      /* by the kernel's counts */
	uint64_t events;       /* in the file */
	uint64_t lost_overrun; /* overwritten before they were read */
	uint64_t lost_other;   /* commit overrun, dropped, damaged sub-buffers */
	uint64_t gaps;	       /* places with missing events */
	uint64_t unread;       /* left in the kernel's buffer */
	uint64_t left_out;     /* of a part of a recording: what is not in it, lost or not */
	uint64_t samples_lost; /* records of --sample, which are no events; not in the sum above */
	uint64_t last_ts;      /* of the last event; 0: none */
};

/* The account of one CPU while it is being made. */
struct ledger_cpu {
	struct ledger_row row;
	uint64_t announced; /* losses that sub-buffers reported with a count */
	uint64_t passed;    /* the same, but outside of the part */
	bool unannounced;   /* some losses had no count, or a part of the stream is damaged */
	bool damaged;
	bool emptied; /* the kernel reset its counts: written is the sum of the right side */
	struct ledger_cut {
		uint64_t events, announced, gaps;
	} cut; /* the part of row in earlier output files */
};

/* The output is a part of the recording: losses that are placed outside are left out. */
struct ledger_part {
	bool is_part;
	bool ends;		    /* before the recording's end, or at it */
	const struct cpu_set *cpus; /* borrowed; NULL: all */
};

struct ledger {
	struct ledger_part part;
	struct ledger_cpu *cpus; /* owned; by CPU number */
	size_t count;
};

/* Adds rows for all CPUs that have chunks or counts. Returns 0 or -ENOMEM. */
int ledger_extend(struct ledger *l, const struct stream_index *index);
void ledger_deinit(struct ledger *l);
struct ledger_cpu *ledger_search(struct ledger *l, uint32_t cpu);

static inline struct ledger_cpu *ledger_find(struct ledger *l, uint32_t cpu)
{
	/* CPU numbers mostly have no holes. */
	if (likely(cpu < l->count && l->cpus[cpu].row.cpu == cpu))
		return &l->cpus[cpu];
	return ledger_search(l, cpu);
}

/* Counts a loss that the merge found. */
void ledger_loss(struct ledger *l, const struct merge_item *item);
/* The same for a loss outside of the part. */
void ledger_pass(struct ledger *l, const struct merge_item *item);

/*
 * Adds the kernel's counts after the last event. loss() is called for losses known only from those
 * counts, and returns 0 or -errno. A sum that does not match adds a warning to the index.
 */
typedef int (*ledger_loss_func)(void *userdata, uint32_t cpu, uint64_t last_ts, uint64_t count,
				struct error *err);
int ledger_close(struct ledger *l, struct stream_index *index, ledger_loss_func loss,
		 void *userdata, struct error *err);

/* Before an output file is closed: fills l->count rows with the account of that file alone. */
void ledger_cut(struct ledger *l, struct ledger_row *rows);
/* The same for the last file, after ledger_close(). */
void ledger_rest(const struct ledger *l, struct ledger_row *rows);

/* True if a CPU's ring had overwritten events, or they were read, before the recording began. */
bool ledger_begins_late(const struct trace_info *info, uint32_t cpu);

/* Sums over all CPUs, known before events are read: for the head of the text format. */
struct ledger_totals {
	uint64_t in_buffer, written;
	bool known;
};
void ledger_totals_get(struct ledger_totals *ret, const struct trace_info *info);
