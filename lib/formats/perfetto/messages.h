/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names, numbers and types of FtraceEvent's messages and their fields, as a table that
 * proto/perfetto/message_table.py makes of the .proto files.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum pf_field_type {
	PF_TYPE_NUMBER,
	PF_TYPE_UINT32,
	PF_TYPE_STRING,
	PF_TYPE_BYTES,
	PF_REPEATED_FIELD = 0x80, /* added to a type */
};

/* Names are offsets in pf_message_names. */
struct pf_message_field {
	uint16_t name;
	uint8_t number, type;
};

struct pf_message {
	uint16_t name;	 /* of the event */
	uint16_t number; /* of the message in FtraceEvent */
	uint16_t field;	 /* index of the first field */
	uint16_t field_count;
};

extern const char pf_message_names[];
extern const struct pf_message pf_messages[]; /* sorted by name */
extern const uint16_t pf_message_count;
extern const struct pf_message_field pf_message_fields[];

/*
 * The message of a kernel's event, or NULL. Messages of vendors' events are named SYSTEM_EVENT:
 * some drivers have events of one name, with different fields. A synthetic event may have any name,
 * so it has a message of such a name only.
 */
const struct pf_message *pf_message_find(const char *system, const char *event);
const struct pf_message_field *pf_message_find_field(const struct pf_message *m, const char *name);
