/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Probes that a recording makes for itself: events of a group that is its own, made
 * before its instance and gone after it.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"

/* "traced_" and eight hexadecimal digits. */
#define PROBE_GROUP_PREFIX "traced_"
#define PROBE_GROUP_LEN 15
/* Where their folders begin. */
#define PROBE_EVENTS "events/" PROBE_GROUP_PREFIX

struct probe_list {
	struct capture_event_spec *specs; /* owned, as are their globs: "GROUP:NAME" */
	size_t count;
};
void probe_list_deinit(struct probe_list *l);

/*
 * Definitions as in the kernel's kprobe_events and uprobe_events, without a group: "p:NAME
 * PLACE ARGUMENTS". Without a name it is made of the place's; a place alone is a "p".
 * -EINVAL says what is wrong with one.
 */
int probes_check(const struct capture_request *request, struct error *err);
/* Each in a step, and its event in ret. */
int probes_plan(struct plan *plan, const struct capture_request *request, const char *group,
		struct probe_list *ret, struct error *err);
/* Whether a file is one that they are written to. */
bool probes_are_in(const char *file);
/* Why the kernel can't put one into its place, which it does as the event is enabled. */
int probe_enable_explain(const struct plan_step *s, int code, struct error *err);
/* Why the kernel refuses such a step. */
int probes_explain(const struct plan_step *s, const struct tracefs *fs, int code,
		   struct error *err);
