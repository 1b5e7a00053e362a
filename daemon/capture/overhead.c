/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/overhead.h"

#include "base/io.h"
#include "daemon/capture/recording.h"

#define LOOK_NS NSEC_PER_SEC
#define BEYOND_MAX 3

int overhead_init(struct overhead *o, const struct capture_overhead *asked)
{
	*o = (struct overhead){ .permille = asked->cpu_permille };
	o->shed = calloc(asked->shed.count + 1, sizeof(*o->shed));
	if (!o->shed)
		return -ENOMEM;
	for (size_t i = 0; i < asked->shed.count; i++) {
		o->shed[i].glob = strdup(asked->shed.items[i]);
		if (!o->shed[i].glob)
			return -ENOMEM;
		o->shed_count++;
	}
	return 0;
}

void overhead_deinit(struct overhead *o)
{
	for (size_t i = 0; i < o->shed_count; i++) {
		free(o->shed[i].glob);
		buf_deinit(&o->shed[i].events);
	}
	free(o->shed);
	*o = (struct overhead){ 0 };
}

void overhead_begin_anew(struct overhead *o)
{
	o->since_ns = 0;
}

enum overhead_step overhead_judge(struct overhead *o, uint64_t now_ns, uint64_t spent_ns)
{
	uint64_t passed = now_ns - o->since_ns, spent = spent_ns - o->spent_ns;
	bool first = !o->since_ns;

	if (!first && passed < LOOK_NS)
		return OVERHEAD_NONE;
	o->since_ns = now_ns;
	o->spent_ns = spent_ns;
	if (first)
		return OVERHEAD_NONE;
	o->share = (unsigned)(spent * 1000 / passed);
	if (o->share <= o->permille) {
		o->beyond = 0;
		return OVERHEAD_NONE;
	}
	if (o->widened < OVERHEAD_WIDEN_MAX) {
		o->widened++;
		return OVERHEAD_WIDEN;
	}
	if (o->shed_next < o->shed_count) {
		o->shed_next++;
		return OVERHEAD_SHED;
	}
	o->beyond = o->share > 2 * o->permille ? o->beyond + 1 : 0;
	return o->beyond >= BEYOND_MAX ? OVERHEAD_END : OVERHEAD_NONE;
}

/* Reports a step twice: a mark at its time, and a warning at the end of the trace. */
static void tell(struct capture *c, bool missing, const char *what)
{
	const struct overhead *o = &c->overhead;
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_printf(&text, "%s: recording used %u.%u %% of a CPU, the limit is %u.%u %%", what,
		   o->share / 10, o->share % 10, o->permille / 10, o->permille % 10);
	if (!buf_string(&text))
		return;
	if (missing)
		capture_warn_missing(c, "%s", text.data);
	else
		capture_warn(c, "%s", text.data);
	capture_mark(c, text.data, NULL);
}

/* Reads the rings less often: they may get fuller and older first. */
static void widen(struct capture *c)
{
	static const char *const percents[OVERHEAD_WIDEN_MAX] = { "50", "75" };
	const char *percent = percents[c->overhead.widened - 1];
	_cleanup_buf_ struct buf what = BUF_INIT;

	c->tick_ns = MIN(c->tick_ns * 2, LOOK_NS);
	/* Linux 5.0+. */
	tracefs_write(c->rings[BUFFER_MAIN].dir, "buffer_percent", percent);
	buf_printf(&what, "the rings are read only when they are %s %% full, or after %llu ms",
		   percent, (unsigned long long)(c->tick_ns / NSEC_PER_MSEC));
	tell(c, false, buf_string(&what) ?: "the rings are read later");
}

static int turn_off(struct capture *c, const char *name)
{
	const char *colon = strchr(name, ':');
	char path[512];

	snprintf(path, sizeof(path), "events/%.*s/%s/enable", (int)(colon - name), name, colon + 1);
	return tracefs_write(c->rings[BUFFER_MAIN].dir, path, "0");
}

static void shed(struct capture *c, const struct overhead_class *class)
{
	const char *end = class->events.data + class->events.len;
	_cleanup_buf_ struct buf what = BUF_INIT;
	unsigned count = 0, failed = 0;

	for (const char *name = class->events.data; name < end; name += strlen(name) + 1) {
		count++;
		failed += turn_off(c, name) < 0;
	}
	buf_printf(
		&what, "from %llu ms on there are no events of %s",
		(unsigned long long)((now_ns(CLOCK_BOOTTIME) - c->start_boot_ns) / NSEC_PER_MSEC),
		class->glob);
	if (failed)
		buf_printf(&what, " (except %u of %u that could not be turned off)", failed, count);
	tell(c, true, buf_string(&what) ?: class->glob);
}

int overhead_find(struct overhead *o, const struct event_matches *matches, struct error *err)
{
	for (size_t i = 0; i < o->shed_count; i++) {
		struct overhead_class *class = &o->shed[i];

		for (size_t n = 0; n < matches->count; n++)
			if (event_glob_matches(class->glob, matches->items[n].name))
				buf_append(&class->events, matches->items[n].name,
					   strlen(matches->items[n].name) + 1);
		if (buf_error(&class->events) < 0)
			return error_set(err, -ENOMEM, "out of memory");
		if (class->events.len)
			continue;
		error_set(err, -ENOENT, "cannot shed \"%s\": it is not recorded", class->glob);
		return error_hint(err, "--shed takes events that -e names, or a part of them");
	}
	return 0;
}

int overhead_keep(struct capture *c, uint64_t now, struct error *err)
{
	struct overhead *o = &c->overhead;

	/* Names and symbols are read only once or twice: their cost is not the recording's rate. */
	if (!o->permille || !c->names_done)
		return 0;
	switch (overhead_judge(o, now, c->cpu_ns)) {
	case OVERHEAD_WIDEN:
		widen(c);
		return 0;
	case OVERHEAD_SHED:
		shed(c, &o->shed[o->shed_next - 1]);
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
