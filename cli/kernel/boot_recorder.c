/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "boot_recorder.h"

#include <string.h>

#include "base/parse.h"
#include "base/plural.h"
#include "boot_loader.h"
#include "daemon/capture/boot_ring.h"
#include "daemon/service/boot_recorder.h"
#include "daemon/service/folder.h"
#include "daemon/service/spool.h"
#include "document.h"

#define PROC "/proc"
/* GRUB and the kernel take it without quotes; KASLR moves the memory less if it is aligned. */
#define ALIGNMENT "32M"

/* Everything that a command needs. */
struct recorder {
	struct config config; /* traced.conf */
	struct boot_recorder_config own;
	struct boot_recorder_state state;
	struct tracefs *tracefs; /* NULL: not opened */
	struct capture_env env;
	bool configured;
	struct error why_not;
};

static void recorder_deinit(struct recorder *r)
{
	config_deinit(&r->config);
	boot_recorder_config_deinit(&r->own);
	boot_recorder_state_deinit(&r->state);
	tracefs_free(r->tracefs);
	error_deinit(&r->why_not);
}
#define _cleanup_recorder_ _cleanup_(recorder_deinit)

static int recorder_load_state(struct recorder *r, struct error *err)
{
	if (config_load_usual(&r->config) < 0 ||
	    boot_recorder_state_load(&r->state, r->config.spool_dir, r->own.instance, PROC) < 0)
		return error_errno(err, -ENOMEM, "cannot read the boot recorder's state");
	return 0;
}

static int recorder_save_state(const struct recorder *r, struct error *err)
{
	return boot_recorder_state_save(&r->state, r->config.spool_dir, r->own.instance, PROC, err);
}

/* instance NULL: as configured. */
static int recorder_load(struct recorder *r, const char *instance, struct error *err)
{
	int e = boot_recorder_config_load(&r->own, BOOT_RECORDER_FILE, &r->why_not);

	if (e < 0 && e != -ENOENT)
		return error_move(err, &r->why_not);
	r->configured = e == 0;
	if (!instance)
		return recorder_load_state(r, err);
	if (boot_recorder_check_name("--instance", instance, err) < 0)
		return -EINVAL;
	free(r->own.instance);
	r->own.instance = strdup(instance);
	if (!r->own.instance)
		return error_errno(err, -ENOMEM, "%s", instance);
	return recorder_load_state(r, err);
}

static int recorder_check_root(const char *what, struct error *err)
{
	if (geteuid() == 0)
		return 0;
	error_set(err, -EPERM, "only root may use the boot recorder");
	return error_hint(err, "sudo tracectl %s", what);
}

static int boot_recorder_open(struct recorder *r, const char *what, struct error *err)
{
	int e = recorder_check_root(what, err);

	if (e == 0)
		e = tracefs_open(&r->tracefs, NULL, err);
	r->env = (struct capture_env){ .tracefs = r->tracefs,
				       .proc = PROC,
				       .state_dir = r->config.state_dir };
	return e;
}

typedef int recorder_save_fn(const struct capture_env *env, const char *instance,
			     const struct boot_recorder_state *state, const struct config *config,
			     char **ret, struct error *err);

static int recorder_save(struct recorder *r, recorder_save_fn *save, struct error *err)
{
	int e;

	free(r->state.saved);
	r->state.saved = NULL;
	e = save(&r->env, r->own.instance, &r->state, &r->config, &r->state.saved, err);
	if (e < 0 || !r->state.begun)
		return e;
	if (r->state.saved && strcmp(r->state.saved, r->state.begun) != 0)
		cli_warn("an earlier save was killed; the events that it took are in %s",
			 r->state.begun);
	free(r->state.begun);
	r->state.begun = NULL;
	return 0;
}

int boot_recorder_find(const char *instance, char **ret, struct error *err)
{
	_cleanup_recorder_ struct recorder r = { 0 };
	_cleanup_error_ struct error why = ERROR_INIT;
	struct boot_ring_state ring;
	int e = recorder_load(&r, instance, err);
	const bool kept = e == 0 && r.state.of_this_boot;

	if (e == 0)
		e = boot_recorder_open(&r, "extract --last-boot", err);
	if (e < 0)
		return e;
	if (!r.state.of_this_boot) {
		e = boot_ring_look(&r.env, r.own.instance, &ring, err);
		if (e == 0)
			e = recorder_save(&r, boot_recorder_save, err);
		r.state.armed = false;
		if (e == 0)
			e = recorder_save_state(&r, err);
		if (e < 0)
			return e;
	}
	if (!r.state.saved) {
		error_set(err, -ENODATA, "there is nothing from the last boot");
		return error_hint(err, "the ring was empty when this boot began to record; "
				       "'tracectl recover' lists earlier crashes");
	}
	if (kept && boot_recorder_renew(&r.env, &r.config, r.state.saved, &why) < 0)
		cli_warn("modules that were loaded late have no names: %s%s%s", why.message,
			 why.hint ? "; " : "", why.hint ?: "");
	*ret = TAKE_PTR(r.state.saved);
	return 0;
}

/* Keeps the last boot's events before the ring is used again. */
static int arm_keep(struct recorder *r, struct error *err)
{
	int e = recorder_save(r, boot_recorder_keep, err);

	if (r->state.saved)
		cli_warn("the last boot's events are kept: %s", r->state.saved);
	return e;
}

static struct boot_ring ring_of(const struct boot_recorder_config *c)
{
	return (struct boot_ring){
		.instance = c->instance,
		.events = { (const char *const *)c->events.items, c->events.count },
		.tracer = c->tracer,
	};
}

static int run_arm(const struct options *o)
{
	_cleanup_recorder_ struct recorder r = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf missing = BUF_INIT;
	struct boot_ring ring;
	int e = recorder_load(&r, o->instance, &err);

	if (e == 0 && !r.configured)
		e = error_move(&err, &r.why_not);
	if (e == 0)
		e = boot_recorder_open(&r, "boot-recorder arm", &err);
	if (e < 0)
		return cli_fail(&err);
	if (r.state.of_this_boot && r.state.armed) {
		puts("the boot recorder is armed already");
		return CLI_WHOLE;
	}
	if (!r.state.of_this_boot && arm_keep(&r, &err) < 0)
		return cli_fail(&err);
	ring = ring_of(&r.own);
	/* From here on the ring is of this boot, whatever happens next. */
	r.state.armed = false;
	if (recorder_save_state(&r, &err) < 0 || boot_ring_arm(&r.env, &ring, &missing, &err) < 0)
		return cli_fail(&err);
	r.state.armed = true;
	if (recorder_save_state(&r, &err) < 0)
		return cli_fail(&err);
	if (missing.len)
		cli_warn("no event matches%s", buf_string(&missing) ?: "");
	return CLI_WHOLE;
}

/* A machine that stops in order leaves nothing for the next boot. */
static int run_disarm(const struct options *o)
{
	_cleanup_recorder_ struct recorder r = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	if (recorder_load(&r, o->instance, &err) < 0 ||
	    boot_recorder_open(&r, "boot-recorder disarm", &err) < 0 ||
	    boot_ring_disarm(&r.env, r.own.instance, &err) < 0)
		return cli_fail(&err);
	r.state.armed = false;
	if (r.state.of_this_boot && recorder_save_state(&r, &err) < 0)
		return cli_fail(&err);
	return CLI_WHOLE;
}

static int enable_choose(const struct options *o, struct boot_recorder_config *c, struct error *err)
{
	static const char usual[] = "sched irq";

	if ((o->instance && boot_recorder_check_name("--instance", o->instance, err) < 0) ||
	    (o->tracer && boot_recorder_check_name("--tracer", o->tracer, err) < 0))
		return -EINVAL;
	c->instance = strdup(o->instance ?: BOOT_RECORDER_INSTANCE);
	c->tracer = o->tracer ? strdup(o->tracer) : NULL;
	if (!c->instance || (o->tracer && !c->tracer))
		return error_errno(err, -ENOMEM, "cannot configure");
	c->size = (o->size ?: UINT64_C(32) << 20) & ~UINT64_C(0xffff);
	for (size_t i = 0; i < o->event_count; i++)
		if (string_list_add_words(&c->events, o->events[i].glob) < 0)
			return error_errno(err, -ENOMEM, "cannot configure");
	if (!o->event_count && !o->tracer && string_list_add_words(&c->events, usual) < 0)
		return error_errno(err, -ENOMEM, "cannot configure");
	for (size_t i = 0; i < c->events.count; i++)
		if (boot_recorder_check_event("-e", c->events.items[i], err) < 0)
			return -EINVAL;
	return boot_recorder_check_size("--size", c->size, err);
}

static int enable_write(const char *text, const char *words, struct error *err)
{
	_cleanup_buf_ struct buf next = BUF_INIT;
	int r = recorder_check_root("boot-recorder enable --write", err), added = 0;

	if (r == 0)
		r = make_dir(TRACED_SYSCONFDIR "/traced", 0755, err);
	if (r == 0)
		r = added = boot_loader_add("", words, &next, err);
	if (r >= 0)
		r = boot_loader_replace(BOOT_RECORDER_FILE, text, err);
	if (r == 0)
		printf("written: %s%s. Next:\n%s"
		       "  systemctl enable " TRACED_PROGRAM "-boot-recorder.service\n  reboot\n",
		       BOOT_RECORDER_FILE, added ? " and the kernel's command line" : "",
		       buf_string(&next) ?: "");
	return r;
}

/* Names of modules that come later, or of another kernel, may be meant: this only warns. */
static void enable_warn(const struct boot_recorder_config *c)
{
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	const struct boot_ring ring = ring_of(c);
	_cleanup_buf_ struct buf missing = BUF_INIT;

	if (tracefs_open(&fs, NULL, NULL) < 0 ||
	    boot_ring_find_missing(&(struct capture_env){ .tracefs = fs }, &ring, &missing, NULL) <
		    0)
		return;
	if (missing.len)
		cli_warn("no event or tracer of this kernel matches:%s",
			 buf_string(&missing) ?: "");
}

static int run_enable(const struct options *o)
{
	_cleanup_boot_recorder_config_ struct boot_recorder_config c = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT, words = BUF_INIT, out = BUF_INIT;
	_cleanup_buf_ struct buf warning = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;

	if (enable_choose(o, &c, &err) < 0 ||
	    boot_recorder_check_memory("--size", c.size, PROC, &warning, &err) < 0)
		return cli_usage(&err);
	if (warning.len)
		cli_warn("%s", buf_string(&warning) ?: "");
	enable_warn(&c);
	buf_printf(&words,
		   "reserve_mem=%lluK:" ALIGNMENT ":traced trace_instance=%s^traceoff@traced",
		   (unsigned long long)(c.size / 1024), c.instance);
	if (boot_recorder_config_print(&c, &text) < 0 || !buf_string(&text) ||
	    !buf_string(&words)) {
		error_errno(&err, -ENOMEM, "cannot configure");
		return cli_fail(&err);
	}
	if (o->write)
		return enable_write(text.data, words.data, &err) < 0 ? cli_fail(&err) : CLI_WHOLE;
	boot_loader_explain(words.data, &out);
	printf("The kernel's command line (Linux 6.12 or newer, x86-64 or arm64):\n  %s\n%s"
	       "\n%s, for " TRACED_PROGRAM "-boot-recorder.service:\n%s",
	       words.data, buf_string(&out) ?: "", BOOT_RECORDER_FILE, text.data);
	return CLI_WHOLE;
}

/* Works without a ring, and with a faulty configuration: that goes, too. */
static int run_disable(const struct options *o)
{
	_cleanup_recorder_ struct recorder r = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT, why = ERROR_INIT;
	_cleanup_buf_ struct buf next = BUF_INIT;

	if (recorder_check_root("boot-recorder disable", &err) < 0 ||
	    boot_loader_remove("", &next, &err) < 0)
		return cli_fail(&err);
	if (recorder_load(&r, o->instance, &why) < 0 ||
	    boot_recorder_open(&r, "boot-recorder disable", &why) < 0)
		cli_warn("the ring stays as it is: %s", why.message);
	else
		boot_ring_disarm(&r.env, r.own.instance, NULL);
	if (unlink(BOOT_RECORDER_FILE) < 0 && errno != ENOENT) {
		error_errno(&err, -errno, "cannot remove " BOOT_RECORDER_FILE);
		return cli_fail(&err);
	}
	printf("the boot recorder is off%s%s", next.len ? ". Next:\n" : "\n",
	       next.len ? buf_string(&next) ?: "" : "");
	return CLI_WHOLE;
}

static int run_status(const struct options *o)
{
	_cleanup_recorder_ struct recorder r = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT, why = ERROR_INIT;
	_cleanup_buf_ struct buf size = BUF_INIT, out = BUF_INIT;
	struct document j = DOCUMENT_INIT(&out);
	struct boot_ring_state state = { 0 };
	bool armed;
	int e;

	if (recorder_load(&r, o->instance, &err) < 0 ||
	    boot_recorder_open(&r, "boot-recorder status", &err) < 0)
		return cli_fail(&err);
	e = boot_ring_look(&r.env, r.own.instance, &state, &why);
	armed = e == 0 && state.on && r.state.of_this_boot && r.state.armed;
	if (o->json) {
		document_open(&j, NULL, '{');
		document_bool(&j, "configured", r.configured);
		document_string(&j, "instance", r.own.instance);
		document_bool(&j, "ring", e == 0);
		document_bool(&j, "armed", armed);
		document_uint(&j, "bytes", state.bytes);
		document_uint(&j, "events", state.events);
		document_string(&j, "last_boot",
				r.state.of_this_boot && r.state.saved ? r.state.saved : "");
		document_close(&j, '}');
		return document_print(&j) < 0 ? CLI_FAILED : CLI_WHOLE;
	}
	format_bytes(state.bytes, &size);
	printf("configured: %s\n", r.configured ? "yes" : "no");
	if (e < 0)
		cli_line(stdout, "ring:       none: %s", why.message);
	else
		printf("ring:       %s, %s, %llu event%s, %s\n", r.own.instance,
		       buf_string(&size) ?: "?", (unsigned long long)state.events,
		       plural_s(state.events),
		       armed	  ? "armed"
		       : state.on ? "on"
				  : "off");
	cli_line(stdout, "last boot:  %s",
		 r.state.of_this_boot ? r.state.saved ?: "nothing" : "not looked at yet");
	return CLI_WHOLE;
}

static const char *const words[] = { "enable", "disable", "status", "arm", "disarm", NULL };
static const struct action {
	int (*run)(const struct options *o);
	struct option_set options;
} actions[] = {
	{ run_enable, OPTION_SET(OPTION(SIZE), OPTION(EVENT), OPTION(TRACER), OPTION(INSTANCE),
				 OPTION(WRITE)) },
	{ run_disable, OPTION_SET(OPTION(INSTANCE)) },
	{ run_status, OPTION_SET(OPTION(INSTANCE), OPTION(JSON)) },
	{ run_arm, OPTION_SET(OPTION(INSTANCE)) },
	{ run_disarm, OPTION_SET(OPTION(INSTANCE)) },
};
_Static_assert(ARRAY_SIZE(words) == ARRAY_SIZE(actions) + 1, "a word for each action");

static int action_check(const struct action *a, const struct options *o, struct error *err)
{
	for (size_t i = 0; i < o->typed_count; i++) {
		const int id = o->typed[i].id;

		if (a->options.has[id] || id == OPT_SOCKET)
			continue;
		error_set(err, -EINVAL, "boot-recorder %s takes no --%s", o->args[0],
			  option_specs[id].name);
		if (actions[0].options.has[id])
			return error_hint(err, "'boot-recorder enable' takes it");
		return error_hint(err, "'boot-recorder status' takes it");
	}
	return 0;
}

static int boot_recorder_run(const struct options *o)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (strcmp(o->args[0], words[i]) != 0)
			continue;
		return action_check(&actions[i], o, &err) < 0 ? cli_usage(&err) : actions[i].run(o);
	}
	error_set(&err, -EINVAL, "boot-recorder: '%.100s' is no action", o->args[0]);
	error_hint(&err, "enable, disable, status, arm or disarm");
	return cli_usage(&err);
}

static const struct option_text boot_recorder_texts[] = {
	{ OPT_EVENT, "an event, a system or a glob to record; may be repeated" },
	{ OPT_INSTANCE, "name of the instance that the kernel makes (traced_boot)" },
	{ 0 },
};

const struct command command_boot_recorder = {
	.name = "boot-recorder",
	.synopsis = "enable|disable|status|arm|disarm",
	.summary = "record each boot until it crashes; extract --last-boot has the trace",
	.text = "Needs Linux 6.12, and memory that a warm start leaves as it was. enable prints "
		"the\n"
		"kernel's command line for the boot loader and the configuration; --write writes\n"
		"them. disable takes them away. arm, for traced-boot-recorder.service, keeps what\n"
		"the last boot recorded, and records this one; disarm, at an orderly stop, "
		"empties\n"
		"the ring.",
	.texts = boot_recorder_texts,
	.options = OPTION_SET(OPTION(SIZE), OPTION(EVENT), OPTION(TRACER), OPTION(INSTANCE),
			      OPTION(WRITE), OPTION(JSON)),
	.own = OPTION_SET(OPTION(SIZE), OPTION(WRITE)),
	.args_min = 1,
	.args_max = 1,
	.words = words,
	.run = boot_recorder_run,
};
