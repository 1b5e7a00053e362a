/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Does what overhead_judge decides, and reports each step. */
#include "base/io.h"
#include "daemon/capture/recording.h"

/* Reports a step twice: a mark at its time, and a warning at the end of the trace. */
static void shed_report(struct capture *c, bool missing, const char *what)
{
	const struct overhead *o = &c->run.overhead;
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_printf(&text, "%s: recording used %u.%u %% of a CPU, the limit is %u.%u %%", what,
		   o->share / 10, o->share % 10, o->permille / 10, o->permille % 10);
	if (!buf_string(&text))
		return;
	if (missing)
		report_warn_missing(&c->report, "%s", text.data);
	else
		report_warn(&c->report, "%s", text.data);
	capture_mark(c, text.data, NULL);
}

/* Reads the rings less often: they may get fuller and older first. */
static void shed_widen(struct capture *c)
{
	static const char *const percents[OVERHEAD_WIDEN_MAX] = { "50", "75" };
	struct capture_run *run = &c->run;
	const char *percent = percents[run->overhead.widened - 1];
	_cleanup_buf_ struct buf what = BUF_INIT;

	run->tick_ns = MIN(run->tick_ns * 2, OVERHEAD_LOOK_NS);
	/* Linux 5.0+. */
	tracefs_write(run->rings[BUFFER_MAIN].dir, "buffer_percent", percent);
	buf_printf(&what, "the rings are read only when they are %s %% full, or after %llu ms",
		   percent, (unsigned long long)(run->tick_ns / NSEC_PER_MSEC));
	shed_report(c, false, buf_string(&what) ?: "the rings are read later");
}

static int shed_disable_event(int dir, const char *name)
{
	const char *colon = strchr(name, ':');
	char path[512];

	snprintf(path, sizeof(path), "events/%.*s/%s/enable", (int)(colon - name), name, colon + 1);
	return tracefs_write(dir, path, "0");
}

static void shed_class(struct capture *c, const struct overhead_class *class)
{
	const char *end = class->events.data + class->events.len;
	int dir = c->run.rings[BUFFER_MAIN].dir;
	_cleanup_buf_ struct buf what = BUF_INIT;
	unsigned count = 0, failed = 0;
	uint64_t passed;

	for (const char *name = class->events.data; name < end; name += strlen(name) + 1) {
		count++;
		failed += shed_disable_event(dir, name) < 0;
	}
	passed = now_ns(CLOCK_BOOTTIME) - c->run.start_boot_ns;
	buf_printf(&what, "from %llu ms on there are no events of %s",
		   (unsigned long long)(passed / NSEC_PER_MSEC), class->glob);
	if (failed)
		buf_printf(&what, " (except %u of %u that could not be turned off)", failed, count);
	shed_report(c, true, buf_string(&what) ?: class->glob);
}

int capture_keep_overhead(struct capture *c, uint64_t now, struct error *err)
{
	struct overhead *o = &c->run.overhead;

	/* Names and symbols are read only once or twice: their cost is not the recording's rate. */
	if (!o->permille || !c->run.names_done)
		return 0;
	switch (overhead_judge(o, now, c->run.cpu_ns)) {
	case OVERHEAD_WIDEN:
		shed_widen(c);
		return 0;
	case OVERHEAD_SHED:
		shed_class(c, &o->shed[o->shed_next - 1]);
		return 0;
	case OVERHEAD_END:
		error_set(err, -ETIME,
			  "recording used %u.%u %% of a CPU, more than twice the limit of %u.%u "
			  "%%, and nothing is left to shed",
			  o->share / 10, o->share % 10, o->permille / 10, o->permille % 10);
		return -ETIME;
	default:
		return 0;
	}
}
