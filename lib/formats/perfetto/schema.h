/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps each event of the recording to a Perfetto FtraceEvent, compiled once per event into a row of
 * field operations.
 *
 * An event whose name is a field of FtraceEvent (proto/perfetto/ftrace.proto) is typed: its fields
 * are matched by name with the message's. All others are generic, as are those of which a typed
 * message would lose something that readers only store: a submessage at field 65536 + n, described
 * in its bundle; or, for old readers, field 327 with the names in each event. A generic field that
 * the kernel prints as a symbol is a string.
 */
#pragma once

#include <stdbool.h>

#include "export/sink.h"
#include "print/event_table.h"
#include "print/symbols.h"

#define PF_GENERIC_BASE 65536	 /* FtraceEvent field of the first generic event */
#define PF_LEGACY_GENERIC 327	 /* field of all generic events in the legacy form */
#define PF_GENERIC_FIELDS_MAX 31 /* readers accept field numbers below 32 */

struct pf_op;

struct pf_event {
	const struct event *desc;
	uint32_t field;	 /* field number in FtraceEvent */
	uint8_t tag[8];	 /* encoded as on the wire */
	uint8_t tag_len; /* length of tag */
	bool has_made;	 /* has a field whose length is known only after formatting */
	bool generic;	 /* the bundle must contain its descriptor */
	bool aside;	 /* has a rest, or its format is not in the file yet */
	size_t bound;	 /* largest size of the part that is independent of the record's length */
	size_t bound_factor; /* plus this many times the record's length */
	struct pf_op *ops;   /* owned */
	size_t op_count;
	uint32_t quick_end;  /* all ops from PF_NUMBER on lie within records of this size */
	uint8_t *descriptor; /* owned; generic: a serialized DescriptorProto */
	size_t descriptor_len;
	/* Owned, or NULL: used for text that is no atrace mark. */
	struct pf_event *free_text;
	const struct field *born; /* of task_newtask: the new task's tid; NULL: another event */
	bool noticed;		  /* has free_text or born */
	uint8_t *lead;		  /* owned: wire bytes before each message, then those of the ops */
	size_t lead_len;
	/* Fields that the message lacks: see rest.h. */
	struct pf_op *rest; /* owned */
	size_t rest_count;
	size_t rest_bound, rest_factor; /* as `bound`, for the rest */
	bool announced;			/* its format is in the file, or in new_formats */
};

struct pf_schema;

struct pf_schema_env {
	const struct event_table *table; /* sealed; outlives the schema */
	unsigned word_size;		 /* of the recorded machine */
	bool big_endian;
	bool raw_addresses;  /* don't hash kernel addresses */
	bool legacy_generic; /* form for readers before v53 */
	bool generic_graph;  /* function_graph's events are generic: calls.h */
};

int pf_schema_new(struct pf_schema **ret, const struct pf_schema_env *env);
struct pf_schema *pf_schema_free(struct pf_schema *s);
DEFINE_CLEANUP_FUNC(struct pf_schema *, pf_schema_free);

/*
 * Appends one FtraceEvent as field 2 of a bundle. -EBADMSG: fields outside the record were left
 * out, the others written. -ENOMEM.
 */
int pf_event_write(struct pf_schema *s, const struct pf_event *e, const struct trace_event *ev,
		   struct buf *out);

/* Begins another file: symbols and formats must be written again. */
void pf_schema_restart(struct pf_schema *s);
