/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes arguments of marks as DebugAnnotations. */
#pragma once

#include "formats/perfetto/message.h"

/*
 * Appends the members of an object, each as that field of a message. Names are interned; new ones
 * go to `fresh`.
 */
void pf_annotations(struct buf *out, uint32_t field, struct text members, struct pf_interner *names,
		    struct buf *fresh);
void pf_annotation_text(struct buf *out, uint32_t field, struct text name, struct text value,
			struct pf_interner *names, struct buf *fresh);
