/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The events of a FtraceEventBundle, in the order in which the kernel wrote them. */
#pragma once

#include "formats/perfetto/bundle.h"
#include "formats/perfetto_read/pages.h"
#include "formats/perfetto_read/record.h"

#define BUNDLE_CPUS 1024 /* as the trace's own readers take them */

/* What a field number of FtraceEvent stands for. */
struct bundle_event {
	uint32_t field;
	bool text; /* of its free_text */
	const struct pf_event *e;
};

struct bundles {
	struct record_maker maker;
	struct pf_sched_layout layout;
	struct bundle_event *events; /* owned; by field */
	size_t event_count;
	struct pf_running *running; /* owned; by CPU */
	struct pages pages;
	struct wire_field comms[PF_COMM_SLOTS]; /* of the bundle at hand */
	size_t comm_count;
	uint64_t left_out; /* events that make no sense, or have no format */
	uint64_t damaged;  /* bundles that lack part of what leads back to records */
};

/* For sorting: by field, and of those that all events share by name. */
int bundle_event_order(const struct bundle_event *a, const struct bundle_event *b);

void bundles_deinit(struct bundles *b);
/* Writes the bundle's events. 0, or -errno of the writer; -EBADMSG: it is of no CPU. */
int bundles_add(struct bundles *b, const struct wire_field *message);
