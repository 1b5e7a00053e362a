/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events as libtraceevent prints them, to compare ours with. Where it is known not to do
 * what the kernel does it gets a format that says the same in its words: see by_library.c.
 */
#pragma once

#include "print/constants.h"
#include "print/event_table.h"

struct by_library;

int by_library_new(struct by_library **ret);
struct by_library *by_library_free(struct by_library *l);
DEFINE_CLEANUP_FUNC(struct by_library *, by_library_free);

/* text: of a format file. constants: what its names stand for. False: it can't be parsed. */
bool by_library_add(struct by_library *l, const char *system, const char *text, size_t len,
		    const struct constants *constants);
/*
 * Appends what rec's event prints, without its name. It looks at no length: all that the record's
 * fields and locations name has to be there. False: there is no such event.
 */
bool by_library_print(struct by_library *l, uint16_t id, const struct record *rec, struct buf *out);

/*
 * In its helpers it forgets the sign of fields: "0xffffffff" for -1, where the kernel has 16
 * digits. Takes them out of a text, which ends with a NUL.
 */
void without_signs(struct buf *b);

/* How wild the values of a record are; libtraceevent agrees for small ones more often. */
enum wildness {
	WILD_ZERO,
	WILD_SMALL, /* below 16 */
	WILD_BIT,   /* one bit */
	WILD_EDGE,  /* where widths and signs end */
	WILD_ONES,
	WILD_ANY,
	WILD_KINDS,
};

/* Draws a number; of a fuzzer's input, or at random. */
typedef uint64_t (*draw_t)(void *userdata);

/*
 * A record of ev as a kernel might have written it: strings end, what is dynamic lies behind the
 * fields. data: of RECORD_MAX bytes. Returns its length.
 */
#define RECORD_MAX 16384
uint32_t make_record(const struct event *ev, enum wildness wild, draw_t draw, void *userdata,
		     uint8_t *data);
