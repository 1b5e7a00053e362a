/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int message_compare_name(const void *name, const void *message)
{
	return strcmp(name, pf_message_names + ((const struct pf_message *)message)->name);
}

static const struct pf_message *message_find_name(const char *name)
{
	return bsearch(name, pf_messages, pf_message_count, sizeof(*pf_messages),
		       message_compare_name);
}

const struct pf_message *pf_message_find(const char *system, const char *event)
{
	const struct pf_message *m = NULL;
	char name[128];

	if ((size_t)snprintf(name, sizeof(name), "%s_%s", system, event) < sizeof(name))
		m = message_find_name(name);
	return m || !strcmp(system, "synthetic") ? m : message_find_name(event);
}

const struct pf_message_field *pf_message_find_field(const struct pf_message *m, const char *name)
{
	const struct pf_message_field *fields = pf_message_fields + m->field;

	for (size_t i = 0; i < m->field_count; i++)
		if (!strcmp(name, pf_message_names + fields[i].name))
			return &fields[i];
	return NULL;
}
