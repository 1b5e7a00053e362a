/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arguments of marks as DebugAnnotations. */
#pragma once

#include "formats/perfetto/message.h"

/* Appends the members of a dict, each as that field of a message; names go by number. */
void pf_annotations(struct buf *out, uint32_t field, struct text members, struct pf_interner *names,
		    struct buf *fresh);
void pf_annotation_text(struct buf *out, uint32_t field, struct text name, struct text value,
			struct pf_interner *names, struct buf *fresh);
