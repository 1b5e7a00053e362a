/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the text of an event's hist file: hist_trigger_show() of kernel/trace/trace_events_hist.c.
 * Keys may be texts that programs choose, with any content, newlines included. So an entry is what
 * the kernel's widths allow, and the totals at the end say whether all entries were found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "marks/value.h"

/* More than the kernel has: three of each. */
#define HIST_TEXT_FIELDS_MAX 4

enum hist_text_kind {
	HIST_TEXT_NUMBER, /* also a text, if the kernel shows no number */
	HIST_TEXT_SYMBOL, /* "[ffffffff81000000] _text" */
	HIST_TEXT_EXEC,	  /* "bash            [      1234]" */
	HIST_TEXT_CALL,	  /* "sys_read                      [  0]" */
	HIST_TEXT_LOG2,	  /* "~ 2^10" */
	HIST_TEXT_RANGE,  /* "~ 100-199" */
	HIST_TEXT_STACK,  /* a line for each function */
	HIST_TEXT_PLAIN,  /* values that are no numbers: hexadecimal, per cent, bars */
};

struct hist_text_field {
	struct text name, modifier;
	enum hist_text_kind kind;
};

/* One histogram of a file. All texts are parts of the file's. */
struct hist_text {
	struct text
		trigger; /* "hist:keys=next_comm:vals=hitcount:sort=hitcount:size=2048 [active]" */
	struct hist_text_field keys[HIST_TEXT_FIELDS_MAX], values[HIST_TEXT_FIELDS_MAX];
	size_t key_count, value_count; /* the first value is the hitcount */
	struct text entries;
	uint64_t hits, entry_count, dropped; /* the kernel's own counts */
};

/* Texts are without the blanks around them. */
struct hist_text_entry {
	struct text keys[HIST_TEXT_FIELDS_MAX], values[HIST_TEXT_FIELDS_MAX];
};

/* Takes the next histogram off *rest. 1; 0: there is none; -EBADMSG: it is damaged. */
int hist_text_next(struct text *rest, struct hist_text *ret);
/*
 * Takes the next entry off *at, which begins as h->entries. 1; 0: there is none; -EBADMSG: no entry
 * could be found there, and *at is behind the line.
 */
int hist_entry_next(const struct hist_text *h, struct text *at, struct hist_text_entry *ret);

/* A decimal number. False: it is none, or has more than 64 bits. */
bool hist_text_number(struct text t, uint64_t *ret);
/* The values that fall into a key of the kinds LOG2 and RANGE: from and to are among them. */
bool hist_text_range(const struct hist_text_field *f, struct text key, uint64_t *from,
		     uint64_t *to);
/* Appends a key as it is shown: without addresses; a stack in one line. */
void hist_text_put_key(const struct hist_text_field *f, struct text key, struct buf *out);
