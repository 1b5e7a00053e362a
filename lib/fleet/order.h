/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An order, as its author wrote it: a section [order] of an INI file. All words in it are checked
 * for their characters, but not whether this board may follow it: judge.h.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "settings/string_list.h"

/* The largest file with an order, its signature included. */
#define ORDER_MAX (16 << 10)
/* share of an order for all boards: 100 per cent, in millionths of a per cent. */
#define ORDER_SHARE_ALL UINT64_C(100000000)

/* When a segment ends and the next begins, as `record --rotate`. Zeros: one recording. */
struct order_segments {
	uint64_t ns, bytes; /* 0: no limit of that kind */
};
#define ORDER_SEGMENT_NS_MIN UINT64_C(1000000000)
#define ORDER_SEGMENT_BYTES_MIN (UINT64_C(64) << 10)

struct order {
	uint64_t serial; /* above 0 */
	char *fleet;
	char *group;			/* NULL: all groups */
	uint64_t not_before;		/* seconds since 1970; 0: none */
	uint64_t expires;		/* seconds since 1970 */
	uint64_t share;			/* millionths of a per cent */
	char *salt;			/* NULL: the serial */
	struct string_list labels;	/* NAME=GLOB; all must match */
	uint64_t window_ns;		/* the start is delayed at random within it */
	uint64_t duration_ns;		/* of the recording; with `until` at most */
	char *until;			/* as `wait --on`; or NULL */
	char *until_event;		/* SYSTEM:EVENT; NULL: it is no condition of one event */
	char *profile;			/* or NULL */
	struct string_list events;	/* SYSTEM:EVENT; empty if there is a profile */
	char *filter;			/* of the one event; or NULL */
	char *sql, *as;			/* an event that SQL makes, and its name; or NULL */
	char *hist;			/* as `record --hist`; or NULL */
	char *hist_event;		/* what it counts: SYSTEM:EVENT, or the name `as` */
	struct string_list reports;	/* names */
	bool capture;			/* the recording itself is wanted, too */
	struct order_segments segments; /* the capture comes in parts that open alone */
	unsigned cpu_permille;		/* of the recorder, of one CPU; 0: no limit */
	uint64_t bytes_max;		/* of all results together; 0: no limit */
	struct string_list presigned;	/* the query of the results' URLs, as NAME=VALUE */
	char *format;			/* of segments; NULL: ORDER_FORMAT */
};

#define ORDER_FORMAT "pftrace"
static inline bool order_has_segments(const struct order *o)
{
	return o->segments.ns || o->segments.bytes;
}

/* An order's text, key by key: the section, then each key with its value. */
void order_begin(struct buf *text);
/* value NULL: leaves the key out. -EINVAL: the key can't have it; err does not name the key. */
int order_put(struct buf *text, const char *key, const char *value, struct error *err);
/* A text that may need several lines: line breaks become blanks. */
int order_put_text(struct buf *text, const char *key, const char *value, struct error *err);
/* Words of a list; each has a line. None: leaves the key out. */
int order_put_words(struct buf *text, const char *key, const char *const *words, size_t count,
		    struct error *err);

/*
 * Parses a message whose signature is good. -EINVAL: err says what is wrong, and shows none of its
 * bytes that are not printable.
 */
int order_parse(struct order *ret, const char *text, size_t len, struct error *err);
void order_deinit(struct order *order);
#define _cleanup_order_ _cleanup_(order_deinit)
