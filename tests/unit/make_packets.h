/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Packets that no exporter writes, given to the reader of marks one by one. */
#pragma once

#include "imported_marks.h"

/* The message in the buffer, as a packet has it. */
struct wire_field field_of(const struct buf *b);
/* A packet that holds such a message. */
void add_track(struct import *i, const struct buf *descriptor);
void add_interned(struct import *i, const struct buf *data);
void add_event(struct import *i, uint64_t ts, const struct buf *event);

/* stack: of its interned data; 0: none. */
void add_sample(struct import *i, uint64_t ts, int32_t tid, uint64_t stack);
/* A thread's track, of that number. */
void add_thread(struct import *i, int32_t tid);
/* A track that has nothing but a name. parent 0: none. */
void add_named(struct import *i, uint64_t uuid, uint64_t parent, const char *name);

/* TrackEvent.Type */
enum { BEGIN = 1, END = 2, INSTANT = 3, COUNTER = 4 };
/* Into b, which is empty then; to be ended by add_event. name NULL: none. */
void begin_event(struct buf *b, unsigned type, uint64_t track, const char *name);
/* One that has no more than these. */
void add_simple(struct import *i, uint64_t ts, unsigned type, uint64_t track, const char *name);

/* The n-th event that was written. */
json_t *event_at(const struct import *i, size_t n);
