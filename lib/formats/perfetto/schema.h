/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How each event of the recording is written as a Perfetto FtraceEvent:
 * compiled once per event into a row of field operations.
 *
 * An event whose name is a field of FtraceEvent (proto/perfetto/ftrace.proto)
 * is typed: its fields are matched by name with that message's. Every other
 * event is generic: a submessage at field 65536 + n that a descriptor in its
 * bundle explains; or, for old readers, one at field 327 that names its fields
 * in each event. What the kernel prints as a symbol is a string there.
 */
#pragma once

#include <stdbool.h>

#include "export/sink.h"
#include "print/event_table.h"
#include "print/symbols.h"

#define PF_GENERIC_BASE 65536	 /* FtraceEvent field of the first generic event */
#define PF_LEGACY_GENERIC 327	 /* and of all of them in the old form */
#define PF_GENERIC_FIELDS_MAX 31 /* the reader takes field numbers below 32 */

struct pf_op;

struct pf_event {
	const struct event *desc;
	uint32_t field;	     /* of FtraceEvent */
	uint8_t tag[8];	     /* the same as the wire has it, */
	uint8_t tag_len;     /* so long */
	bool has_made;	     /* a field whose length is known only once it is made */
	bool generic;	     /* its bundle has to bring its descriptor */
	bool aside;	     /* it has a rest, or its format is still to be told */
	size_t bound;	     /* bytes that the fixed part can take at most */
	size_t bound_factor; /* and how often the record's length on top */
	struct pf_op *ops;   /* owned */
	size_t op_count;
	uint32_t quick_end;  /* in records that are so long all ops of PF_NUMBER and on have their
				bytes */
	uint8_t *descriptor; /* owned; generic: a serialized DescriptorProto */
	size_t descriptor_len;
	/* Owned, or NULL: what an event becomes that is no mark in atrace's form. */
	struct pf_event *free_text;
	uint8_t *lead; /* owned: wire bytes that each message begins with, then those of the ops */
	size_t lead_len;
	/* What the message does not hold: for rest.h. */
	struct pf_op *rest; /* owned */
	size_t rest_count;
	size_t rest_bound, rest_factor; /* as bound */
	bool told;			/* its format is in the file, or in new_formats */
};

struct pf_schema;

struct pf_schema_env {
	const struct event_table *table; /* sealed; outlives the schema */
	unsigned word_size;		 /* of the recorded machine */
	bool big_endian;
	bool raw_addresses;  /* kernel addresses as they are, not hashed */
	bool legacy_generic; /* the form for readers before v53 */
	/* NULL, or by event: it is generic whatever messages there are, as it was in another build.
	 */
	const bool *generic;
	bool no_quick; /* the quick ways are not taken: to compare them with the others */
};

int pf_schema_new(struct pf_schema **ret, const struct pf_schema_env *env);
struct pf_schema *pf_schema_free(struct pf_schema *s);
DEFINE_CLEANUP_FUNC(struct pf_schema *, pf_schema_free);

/*
 * Appends one FtraceEvent as field 2 of a bundle. Fields that lie outside of
 * the record are left out: -EBADMSG, the rest is written. -ENOMEM.
 */
int pf_event_write(struct pf_schema *s, const struct pf_event *e, const struct trace_event *ev,
		   struct buf *out);

/* What follows is of another file: symbols have to be interned, formats to be told anew. */
void pf_schema_restart(struct pf_schema *s);
