/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/feature.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>

#include "base/io.h"

/* The first match counts. */
static const struct {
	enum feature_kind kind;
	const char *name; /* a glob */
	const char *needs;
} features[] = {
	{ FEATURE_PART, "tracefs", "CONFIG_FTRACE and CONFIG_EVENT_TRACING" },
	{ FEATURE_PART, "functions", "CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE" },
	{ FEATURE_PART, "histograms", "CONFIG_HIST_TRIGGERS" },
	{ FEATURE_PART, "synthetic events", "CONFIG_SYNTH_EVENTS" },
	{ FEATURE_PART, "user_events", "CONFIG_USER_EVENTS, Linux 6.4" },
	{ FEATURE_PART, "samples", "CONFIG_PERF_EVENTS" },
	{ FEATURE_PART, "types", "CONFIG_DEBUG_INFO_BTF" },
	{ FEATURE_PART, "mapped rings", "Linux 6.10" },
	{ FEATURE_TRACER, "function", "CONFIG_FUNCTION_TRACER" },
	{ FEATURE_TRACER, "function_graph", "CONFIG_FUNCTION_GRAPH_TRACER" },
	{ FEATURE_TRACER, "timerlat", "CONFIG_TIMERLAT_TRACER" },
	{ FEATURE_TRACER, "osnoise", "CONFIG_OSNOISE_TRACER" },
	{ FEATURE_TRACER, "hwlat", "CONFIG_HWLAT_TRACER" },
	{ FEATURE_OPTION, "copy_trace_marker", "Linux 6.16" },
	{ FEATURE_OPTION, "stacktrace", "CONFIG_STACKTRACE" },
	{ FEATURE_OPTION, "func_stack_trace", "CONFIG_FUNCTION_TRACER and CONFIG_STACKTRACE" },
	{ FEATURE_OPTION, "function-trace", "CONFIG_FUNCTION_TRACER" },
	{ FEATURE_OPTION, "function-fork", "CONFIG_FUNCTION_TRACER" },
	{ FEATURE_OPTION, "func-args", "CONFIG_FUNCTION_TRACE_ARGS, Linux 6.15" },
	{ FEATURE_OPTION, "funcgraph-args", "CONFIG_FUNCTION_TRACE_ARGS, Linux 6.15" },
	{ FEATURE_OPTION, "funcgraph-retval", "CONFIG_FUNCTION_GRAPH_RETVAL, Linux 6.5" },
	{ FEATURE_OPTION, "funcgraph-retval-hex", "CONFIG_FUNCTION_GRAPH_RETVAL, Linux 6.5" },
	{ FEATURE_OPTION, "funcgraph-retaddr", "CONFIG_FUNCTION_GRAPH_RETADDR, Linux 6.13" },
	{ FEATURE_OPTION, "funcgraph-*", "CONFIG_FUNCTION_GRAPH_TRACER" },
	{ FEATURE_TRIGGER, "stacktrace", "CONFIG_STACKTRACE" },
	{ FEATURE_PROBE, "kprobe", "CONFIG_KPROBE_EVENTS" },
	{ FEATURE_PROBE, "uprobe", "CONFIG_UPROBE_EVENTS" },
	{ FEATURE_PROBE, "fprobe", "CONFIG_FPROBE_EVENTS, Linux 6.5" },
	{ FEATURE_PROBE, "tprobe", "CONFIG_FPROBE_EVENTS, Linux 6.5" },
	{ FEATURE_PROBE, "eprobe", "CONFIG_EPROBE_EVENTS, Linux 5.15" },
	{ FEATURE_EVENTS, "syscalls", "CONFIG_FTRACE_SYSCALLS" },
	{ FEATURE_EVENTS, "osnoise", "CONFIG_OSNOISE_TRACER" },
	{ FEATURE_EVENTS, "preemptirq", "CONFIG_IRQSOFF_TRACER or CONFIG_PREEMPT_TRACER" },
};

unsigned feature_kernel(const char *proc, struct buf *text)
{
	unsigned major, minor;
	char path[256];

	snprintf(path, sizeof(path), "%s/sys/kernel/osrelease", proc);
	if (read_file_at(AT_FDCWD, path, 4096, text) < 0 || !buf_string(text) ||
	    sscanf(text->data, "%u.%u", &major, &minor) != 2)
		return 0;
	return FEATURE_KERNEL(major, minor);
}

const char *feature_needs(enum feature_kind kind, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (features[i].kind == kind && fnmatch(features[i].name, name, 0) == 0)
			return features[i].needs;
	return NULL;
}

size_t feature_names(enum feature_kind kind, const char **names, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(features) && count < size; i++)
		if (features[i].kind == kind)
			names[count++] = features[i].name;
	return count;
}

void feature_put_mend(enum feature_kind kind, const char *name, struct buf *out)
{
	const char *needs = feature_needs(kind, name);

	if (!needs)
		return;
	if (strncmp(needs, "Linux", strlen("Linux")) == 0)
		buf_printf(out, "boot %s or newer", needs);
	else
		buf_printf(out, "boot a kernel with %s", needs);
}

int feature_hint(struct error *err, enum feature_kind kind, const char *name, const char *more)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	feature_put_mend(kind, name, &text);
	if (more)
		buf_printf(&text, "%s%s", text.len ? "; " : "", more);
	return error_hint(err, "%s", buf_string(&text) ?: "");
}
