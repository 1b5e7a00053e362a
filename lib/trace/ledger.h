/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The account of events, for each CPU: what the kernel says that it wrote must
 * be what the file has and what is known to be lost.
 *
 *	written = events + lost_overrun + lost_other + unread
 *
 * written is the kernel's: entries + overrun + commit_overrun + dropped + read of
 * the last Stats, less what the start's Stats tell was gone by then. Without Stats
 * (a stream that was cut early) it is the sum of the right side, and as well where the kernel's
 * counts began anew in between.
 */
#pragma once

#include "trace/index.h"
#include "trace/merge.h"

struct ledger_row {
	unsigned cpu;
	uint64_t written;      /* by the kernel, by its own count */
	uint64_t events;       /* in the file */
	uint64_t lost_overrun; /* overwritten before they were read */
	uint64_t lost_other;   /* commit overrun, dropped, damaged sub-buffers */
	uint64_t gaps;	       /* places where events are missing */
	uint64_t unread;       /* left in the kernel's buffer */
};

/* One CPU's account while it is made. */
struct ledger_cpu {
	struct ledger_row row;
	uint64_t announced; /* losses that sub-buffers told, with their number */
	bool unannounced;   /* some told no number, or a part of the stream is damaged */
	bool damaged;
	bool emptied; /* the kernel's counts began anew, so that written is the right side's sum */
	uint64_t last_ts; /* of the last event; 0: none */
	struct ledger_cut {
		uint64_t events, announced, gaps;
	} cut; /* what earlier files have of row */
};

struct ledger {
	struct ledger_cpu *cpus; /* owned; by number */
	size_t count;
};

/* Rows for all CPUs that have chunks or counts by now. Returns 0 or -ENOMEM. */
int ledger_extend(struct ledger *l, const struct stream_index *index);
void ledger_deinit(struct ledger *l);
struct ledger_cpu *ledger_search(struct ledger *l, uint32_t cpu);

static inline struct ledger_cpu *ledger_find(struct ledger *l, uint32_t cpu)
{
	/* CPUs mostly are numbered without holes. */
	if (likely(cpu < l->count && l->cpus[cpu].row.cpu == cpu))
		return &l->cpus[cpu];
	return ledger_search(l, cpu);
}

/* A gap, as the merge found it. */
void ledger_loss(struct ledger *l, const struct merge_item *item);

/*
 * Adds the kernel's counts once all events were seen. A loss that only those counts tell of goes
 * to loss(), which returns 0 or -errno. A sum that does not add up becomes a warning of the index.
 */
typedef int (*ledger_loss_func)(void *userdata, uint32_t cpu, uint64_t last_ts, uint64_t count,
				struct error *err);
int ledger_close(struct ledger *l, struct stream_index *index, ledger_loss_func loss,
		 void *userdata, struct error *err);

/* A file ends here: rows is the account of it alone, before it is closed; l->count of them. */
void ledger_cut(struct ledger *l, struct ledger_row *rows);
/* The same of the last one, after ledger_close. */
void ledger_rest(const struct ledger *l, struct ledger_row *rows);

/* Of all CPUs together, before the events are read: for the head of the text. */
struct ledger_totals {
	uint64_t in_buffer, written;
	bool known;
};
void ledger_totals_get(struct ledger_totals *ret, const struct trace_info *info);
