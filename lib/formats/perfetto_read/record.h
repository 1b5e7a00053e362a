/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One event's record, made of its message and of what stands beside that in the bundle: the
 * operations of formats/perfetto/op.h backwards. What neither holds is 0.
 */
#pragma once

#include "formats/perfetto/op.h"
#include "formats/perfetto_read/addresses.h"

/* An offset in a record has 16 bits. */
#define RECORD_MAX (64U << 10)

struct record_maker {
	const struct pf_schema *schema; /* borrowed, as the following */
	const struct event_table *events;
	const struct addresses *addresses;
	bool big_endian;
	bool legacy_generic;
	const struct pf_event *e; /* of the record that is being made */
	uint8_t *data;		  /* owned; RECORD_MAX bytes */
	uint16_t *
		fixed; /* owned; by event: bytes of the part whose places are fixed; 0: not known */
	/* Borrowed; NULL: there is none. What an event becomes of which only the text was kept. */
	const struct event *print;
	const struct field *print_ip, *print_buf;
	uint32_t len, fixed_len;
	const struct pf_op *repeated; /* whose elements come one by one, */
	uint32_t repeated_at, repeated_count;
	const char *printed; /* the text of PF_PRINTED; borrowed; NULL: none */
	size_t printed_len;
	uint64_t ip; /* of such an event */
};

int record_maker_init(struct record_maker *m, const struct pf_schema *schema,
		      const struct event_table *events, const struct addresses *addresses);
void record_maker_deinit(struct record_maker *m);

/* In this order: begin, what the message tells, the rest, end. Then m->data has m->len bytes. */
void record_begin(struct record_maker *m, const struct pf_event *e, int32_t pid);
/* As the compact form tells it, which has no message. Outside of the record: nothing. */
void record_put_number(struct record_maker *m, uint32_t offset, uint32_t size, uint64_t value);
void record_put_bytes(struct record_maker *m, uint32_t offset, const void *data, uint32_t len);
/* text: as free_text's message. false: it makes no sense. */
bool record_read_message(struct record_maker *m, struct wire_reader message, bool text);
/* From there on, as pf_rest_write wrote it. false: rest->bad is set. */
bool record_read_rest(struct record_maker *m, struct wire_reader *rest);
/* flags: as pf_flags has them. */
void record_end(struct record_maker *m, uint16_t flags);
