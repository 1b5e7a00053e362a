/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events as libtraceevent prints them, for comparison with ours. Where it is known to differ from
 * the kernel, it gets a format that says the same in its own terms: see by_library.c.
 */
#pragma once

#include "print/constants.h"
#include "print/event_table.h"

struct by_library;

int by_library_new(struct by_library **ret);
struct by_library *by_library_free(struct by_library *l);
DEFINE_CLEANUP_FUNC(struct by_library *, by_library_free);

/* text: a format file. constants: values of its names. False: it can't be parsed. */
bool by_library_add(struct by_library *l, const char *system, const char *text, size_t len,
		    const struct constants *constants);
/*
 * Appends what rec's event prints, without its name. It checks no length: everything that the
 * record's fields and locations refer to must be present. False: there is no such event.
 */
bool by_library_print(struct by_library *l, uint16_t id, const struct record *rec, struct buf *out);

/*
 * Its helpers lose the sign of fields: they print "0xffffffff" for -1, the kernel 16 digits.
 * Removes such numbers from a text, which ends with a NUL.
 */
void without_signs(struct buf *b);

/* How extreme a record's values are. libtraceevent agrees more often for small ones. */
enum wildness {
	WILD_ZERO,
	WILD_SMALL, /* below 16 */
	WILD_BIT,   /* one bit */
	WILD_EDGE,  /* limits of widths and signs */
	WILD_ONES,
	WILD_ANY,
	WILD_KINDS,
};

/* Draws a number, from a fuzzer's input or at random. */
typedef uint64_t (*draw_t)(void *userdata);

/*
 * Makes a record of ev as a kernel might write it: strings are terminated, dynamic data follows the
 * fields. data: of RECORD_MAX bytes. Returns its length.
 */
#define RECORD_MAX 16384
uint32_t make_record(const struct event *ev, enum wildness wild, draw_t draw, void *userdata,
		     uint8_t *data);
