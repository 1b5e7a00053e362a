/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Probes that a recording creates for itself. Their events are in a group of its own; they are
 * created before its instance and removed after it.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/plan/plan.h"

/* "traced_" and eight hexadecimal digits. */
#define PROBE_GROUP_PREFIX "traced_"
#define PROBE_GROUP_LEN 15
/* Prefix of the probes' event directories. */
#define PROBE_EVENTS "events/" PROBE_GROUP_PREFIX

struct probe_list {
	struct capture_event_spec *specs; /* owned, as are their globs: "GROUP:NAME" */
	size_t count;
};
void probe_list_deinit(struct probe_list *l);

/*
 * Checks definitions written as in the kernel's files (probe_kind.h), but without a group: "p:NAME
 * PLACE ARGUMENTS". A missing name is made from the place, and a missing "p" is added. -EINVAL
 * explains what is wrong; -ENOENT: an eprobe's event is not in fs.
 */
int probes_check(const struct capture_request *request, struct tracefs *fs, struct error *err);
/* Adds a step for each probe, and its event to ret. */
int probes_plan(struct plan *plan, const struct capture_request *request, const char *group,
		struct probe_list *ret, struct error *err);
/* True for files that define probes. */
bool probes_are_in(const char *file);
/* Explains why the kernel cannot insert a probe, which happens when its event is enabled. */
int probe_enable_explain(const struct plan_step *s, int code, struct error *err);
/* Explains why the kernel refused a step that defines a probe. */
int probes_explain(const struct plan_step *s, const struct tracefs *fs, int code,
		   struct error *err);
