/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/doctor.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/io.h"
#include "base/meminfo.h"
#include "base/parse.h"
#include "base/place.h"
#include "base/vec.h"
#include "daemon/capture/boot_ring.h"
#include "daemon/capture/capture.h"
#include "daemon/capture/plan/latency.h"
#include "daemon/capture/plan/probe_kind.h"
#include "daemon/capture/plan/request.h"
#include "daemon/capture/tracefs/feature.h"
#include "daemon/capture/tracefs/setting.h"

struct examination {
	const struct doctor_env *env;
	struct tracefs *fs; /* NULL: tracefs cannot be used */
	struct doctor_report *report;
	int daemon;  /* 0: it listens, and this user may connect to it; or -errno */
	bool failed; /* out of memory */
};

void doctor_report_deinit(struct doctor_report *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->findings[i].text);
		free(r->findings[i].mend);
	}
	free(r->findings);
	*r = (struct doctor_report){ 0 };
}

int doctor_add(struct doctor_report *r, const char *check, enum doctor_verdict verdict,
	       const char *mend, const char *fmt, ...)
{
	struct doctor_finding *f;
	va_list ap;
	int n;

	if (vec_reserve_exact(r->findings, r->count, 1) < 0)
		return -ENOMEM;
	f = &r->findings[r->count];
	*f = (struct doctor_finding){ .check = check, .verdict = verdict };
	va_start(ap, fmt);
	n = vasprintf(&f->text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	f->mend = mend ? strdup(mend) : NULL;
	r->count++;
	return mend && !f->mend ? -ENOMEM : 0;
}

#define found(x, ...) ((x)->failed |= doctor_add((x)->report, __VA_ARGS__) < 0)

static void doctor_add_lacking(struct examination *x, const char *check,
			       enum doctor_verdict verdict, enum feature_kind kind,
			       const char *feature, const char *text)
{
	_cleanup_buf_ struct buf mend = BUF_INIT;

	feature_put_mend(kind, feature, &mend);
	found(x, check, verdict, buf_string(&mend), "%s", text);
}

/* Returns the file's text without its last newline, to be freed; NULL: unreadable. */
static char *doctor_read(const char *root, const char *path)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char full[512];
	char *s;

	if ((size_t)snprintf(full, sizeof(full), "%s/%s", root, path) >= sizeof(full) ||
	    tracefs_read(AT_FDCWD, full, &text) < 0 || !buf_string(&text))
		return NULL;
	s = text.data;
	text = BUF_INIT;
	return s;
}

static char *doctor_read_tracefs(const struct examination *x, const char *path)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *s;

	if (tracefs_read(tracefs_root(x->fs), path, &text) < 0 || !buf_string(&text))
		return NULL;
	s = text.data;
	text = BUF_INIT;
	return s;
}

static void doctor_add_denied(struct examination *x, const char *mend, const char *text)
{
	if (x->daemon == 0)
		found(x, "permission", DOCTOR_OK, NULL, "user %u records through the daemon",
		      geteuid());
	else
		found(x, "permission", DOCTOR_BAD, mend, "%s", text);
}

#define MOUNT "mount -t tracefs nodev /sys/kernel/tracing"

static void doctor_check_tracefs(struct examination *x)
{
	_cleanup_free_ char *mounts = doctor_read(x->env->proc, "self/mounts");
	_cleanup_free_ char *filesystems = doctor_read(x->env->proc, "filesystems");
	_cleanup_error_ struct error err = ERROR_INIT;
	bool known = !filesystems || strstr(filesystems, "\ttracefs"), mounted, usual;

	mounted = mounts && strstr(mounts, " tracefs ");
	usual = mounted && strstr(mounts, " /sys/kernel/tracing tracefs ");
	if (!known) {
		doctor_add_lacking(x, "tracefs", DOCTOR_BAD, FEATURE_PART, "tracefs",
				   "this kernel has no tracefs");
		return;
	}
	if (tracefs_open(&x->fs, x->env->tracefs, &err) < 0) {
		const char *mend = err.hint ?: MOUNT;
		const char *text = err.message ?: "tracefs cannot be opened";

		if (err.code == EACCES || err.code == EPERM)
			doctor_add_denied(x, mend, text);
		else
			found(x, "tracefs", DOCTOR_BAD, mend, "%s", text);
		return;
	}
	if (usual || x->env->tracefs)
		found(x, "tracefs", DOCTOR_OK, NULL, "at %s", tracefs_path(x->fs));
	else if (mounted)
		found(x, "tracefs", DOCTOR_NOTE, MOUNT,
		      "only at %s, which newer kernels no longer provide", tracefs_path(x->fs));
	else
		found(x, "tracefs", DOCTOR_NOTE, MOUNT,
		      "not mounted; traced mounts it for itself, other tools will not see it");
}

static void doctor_check_permission(struct examination *x)
{
	int fd = tracefs_open_file(tracefs_root(x->fs), O_WRONLY, "trace_marker");
	char text[64];

	close_fd(fd);
	snprintf(text, sizeof(text), "user %u may read tracefs but not write to it", geteuid());
	if (fd == -EACCES || fd == -EPERM)
		doctor_add_denied(x, "run it as root, or through the daemon", text);
	else
		found(x, "permission", DOCTOR_OK, NULL, "user %u may use tracefs", geteuid());
}

static bool doctor_has_file(const struct examination *x, const char *file)
{
	return faccessat(tracefs_root(x->fs), file, F_OK, 0) == 0;
}

static void doctor_add_no_functions(struct examination *x, const char *mode)
{
	char text[128];

	snprintf(text, sizeof(text), "this kernel has no function tracer (lockdown: %s)", mode);
	doctor_add_lacking(x, "lockdown", DOCTOR_NOTE, FEATURE_PART, "functions", text);
}

static void doctor_check_lockdown(struct examination *x)
{
	_cleanup_free_ char *text = doctor_read(x->env->sys, "kernel/security/lockdown");
	const char *mode = text ? setting_chosen(text) : "mode unknown: securityfs is not mounted";
	int fd = -ENOENT;

	if (strcmp(mode, "confidentiality") == 0) {
		found(x, "lockdown", DOCTOR_BAD,
		      "boot without lockdown=confidentiality (Secure Boot may set it)",
		      "the kernel is locked down (confidentiality): tracefs is refused");
		return;
	}
	if (x->fs)
		fd = tracefs_open_file(tracefs_root(x->fs), O_RDONLY, "available_filter_functions");
	if (fd >= 0)
		close(fd);
	if (fd == -EPERM && doctor_has_file(x, "kprobe_events"))
		found(x, "lockdown", DOCTOR_NOTE,
		      "events work; for functions and kprobes boot without lockdown",
		      "the kernel refuses function tracing and kprobes (lockdown: %s)", mode);
	else if (fd == -EPERM)
		found(x, "lockdown", DOCTOR_NOTE,
		      "events work; for functions boot without lockdown",
		      "the kernel refuses function tracing, and has no kprobes (lockdown: %s)",
		      mode);
	else if (fd == -ENOENT && x->fs)
		doctor_add_no_functions(x, mode);
	else if (fd >= 0)
		found(x, "lockdown", DOCTOR_OK, NULL, "%s", text ? mode : "nothing is refused");
	else
		found(x, "lockdown", DOCTOR_NOTE, x->daemon ? "run it as root" : NULL,
		      "this user cannot see what lockdown refuses");
}

/* A kernel has some things of a kind, and lacks others. */
struct doctor_parts {
	struct buf has, lacks;
};

static void doctor_put_part(struct doctor_parts *p, bool there, enum feature_kind kind,
			    const char *name, const char *plural)
{
	if (there)
		buf_printf(&p->has, "%s%s%s", p->has.len ? ", " : "", name, plural);
	else
		buf_printf(&p->lacks, "; no %s%s (%s)", name, plural, feature_needs(kind, name));
}

/* Consumes p. */
static void doctor_add_parts(struct examination *x, const char *check, const char *begin,
			     struct doctor_parts *p)
{
	if (buf_string(&p->has) && buf_string(&p->lacks))
		found(x, check, DOCTOR_OK, NULL, "%s%s%s%s", begin,
		      *begin && p->has.len ? ", " : "", *begin || p->has.len ? p->has.data : "none",
		      p->lacks.data);
	else
		x->failed = true;
	buf_deinit(&p->has);
	buf_deinit(&p->lacks);
}

static void doctor_check_kernel(struct examination *x)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (kernel_check(x->env->proc, &err) < 0)
		found(x, "kernel", DOCTOR_BAD, err.hint, "%s", err.message);
}

/* Checks the function tracer (-p), where lockdown permits it. */
static void doctor_check_functions(struct examination *x)
{
	_cleanup_free_ char *tracers = doctor_read_tracefs(x, "available_tracers");
	bool graph = tracers && strstr(tracers, "function_graph");
	int fd = tracefs_open_file(tracefs_root(x->fs), O_RDONLY, "available_filter_functions");

	if (fd < 0)
		return;
	close(fd);
	if (graph)
		found(x, "functions", DOCTOR_OK, NULL, "function and function_graph");
	else
		doctor_add_lacking(x, "functions", DOCTOR_NOTE, FEATURE_TRACER, "function_graph",
				   "no function_graph tracer; -p function works");
}

/* Values of calls that function_graph can record (-O). */
static void doctor_check_calls(struct examination *x)
{
	static const char *const names[] = { "funcgraph-retval", "funcgraph-args",
					     "funcgraph-retaddr" };
	struct doctor_parts parts = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[64];

		snprintf(path, sizeof(path), "options/%s", names[i]);
		doctor_put_part(&parts, doctor_has_file(x, path), FEATURE_OPTION, names[i], "");
	}
	doctor_add_parts(x, "calls", "", &parts);
}

/* The kinds of probes (--kprobe and the like), and whether their arguments may have names. */
static void doctor_check_probes(struct examination *x)
{
	struct doctor_parts parts = { 0 };
	char path[256];

	for (size_t i = 0; i < PROBE_KINDS; i++) {
		const struct probe_kind *kind = &probe_kinds[i];

		doctor_put_part(&parts, probe_kind_exists(x->fs, x->env->proc, kind), FEATURE_PROBE,
				kind->name, "s");
	}
	snprintf(path, sizeof(path), "%s/kernel/btf/vmlinux", x->env->sys);
	if (access(path, F_OK) < 0)
		buf_printf(&parts.lacks, "; no names of arguments (%s)",
			   feature_needs(FEATURE_PART, "types"));
	doctor_add_parts(x, "probes", "", &parts);
}

/* The kernel's triggers (--trigger). An event's file lists them while it has none. */
static void doctor_check_triggers(struct examination *x)
{
	_cleanup_free_ char *text = doctor_read_tracefs(x, "events/sched/sched_switch/trigger");
	const char *list = text ? strstr(text, "\n# ") : NULL;

	if (!list)
		return;
	list += strlen("\n# ");
	if (strstr(list, "stacktrace"))
		found(x, "triggers", DOCTOR_OK, NULL, "%.*s", (int)strcspn(list, "\n"), list);
	else
		found(x, "triggers", DOCTOR_OK, NULL, "%.*s; no stacktrace (%s)",
		      (int)strcspn(list, "\n"), list, feature_needs(FEATURE_TRIGGER, "stacktrace"));
}

/* Whether poll() on a histogram waits until it has counted. Nobody counts this event. */
static bool doctor_tells_counts(const struct examination *x)
{
	_cleanup_close_ int fd = tracefs_open_file(tracefs_root(x->fs), O_RDONLY,
						   "events/sched/sched_process_hang/hist");
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) == 0;
}

/* Each event has a file "hist" where the kernel has histograms (CONFIG_HIST_TRIGGERS). */
static void doctor_check_histograms(struct examination *x)
{
	if (!doctor_has_file(x, "events/sched/sched_switch"))
		return;
	if (!doctor_has_file(x, "events/sched/sched_switch/hist"))
		doctor_add_lacking(x, "histograms", DOCTOR_NOTE, FEATURE_PART, "histograms",
				   "this kernel has no histograms of events");
	else if (!doctor_has_file(x, "synthetic_events"))
		doctor_add_lacking(x, "histograms", DOCTOR_NOTE, FEATURE_PART, "synthetic events",
				   "histograms of events; no synthetic events");
	else
		found(x, "histograms", DOCTOR_OK, NULL, "histograms and synthetic events%s%s",
		      doctor_tells_counts(x)
			      ? ""
			      : "; also reads those that did not count (Linux 6.14 says which did)",
		      HAVE_LIBTRACEFS ? "" : "; this build has no libtracefs, so no --sql");
}

/* How programs' marks reach other tracers, and a recording has what programs write to the kernel.
 */
static void doctor_check_marks(struct examination *x)
{
	static const struct {
		const char *file, *name;
		enum feature_kind kind;
	} ways[] = {
		{ "user_events_data", "user_events", FEATURE_PART },
		{ "options/copy_trace_marker", "copy_trace_marker", FEATURE_OPTION },
	};
	struct doctor_parts parts = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		doctor_put_part(&parts, doctor_has_file(x, ways[i].file), ways[i].kind,
				ways[i].name, "");
	doctor_add_parts(x, "marks", "libtraced", &parts);
}

/* The kernel's tracers of latencies (-p). */
static void doctor_check_latencies(struct examination *x)
{
	static const char *const names[] = { "timerlat", "osnoise", "hwlat" };
	_cleanup_free_ char *tracers = doctor_read_tracefs(x, "available_tracers");
	_cleanup_buf_ struct buf has = BUF_INIT, lacks = BUF_INIT;
	char *save = NULL;
	unsigned found_mask = 0;

	if (!tracers)
		return;
	for (char *p = strtok_r(tracers, " \n", &save); p; p = strtok_r(NULL, " \n", &save))
		for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
			if (strcmp(p, names[i]) == 0)
				found_mask |= 1U << i;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		if (found_mask & 1U << i)
			buf_printf(&has, "%s%s", has.len ? ", " : "", names[i]);
		else
			buf_printf(&lacks, "%s%s", lacks.len ? ", " : "",
				   feature_needs(FEATURE_TRACER, names[i]));
	}
	if (lacks.len)
		buf_printf(&lacks, " would add %s", has.len ? "the others" : "them");
	found(x, "latencies", DOCTOR_OK, NULL, "tracers of latencies: %s%s%s",
	      has.len ? buf_string(&has) ?: "?" : "none", lacks.len ? "; " : "",
	      lacks.len ? buf_string(&lacks) ?: "?" : "");
}

static void doctor_check_symbols(struct examination *x)
{
	_cleanup_free_ char *text = doctor_read(x->env->proc, "sys/kernel/kptr_restrict");
	long level = text ? strtol(text, NULL, 10) : 0;

	if (level >= 2)
		found(x, "symbols", DOCTOR_WARN, "sysctl kernel.kptr_restrict=1",
		      "kernel.kptr_restrict is %ld: addresses will have no names", level);
	else
		found(x, "symbols", DOCTOR_OK, NULL, "kernel.kptr_restrict is %ld", level);
}

static void doctor_check_toplevel(struct examination *x)
{
	_cleanup_free_ char *tracer = doctor_read_tracefs(x, "current_tracer");
	_cleanup_free_ char *on = doctor_read_tracefs(x, "tracing_on");
	_cleanup_free_ char *enabled = doctor_read_tracefs(x, "events/enable");
	bool busy = tracer && strcmp(tracer, "nop") != 0;
	bool events = on && *on == '1' && enabled && strcmp(enabled, "0") != 0;

	if (busy)
		found(x, "top level", DOCTOR_NOTE,
		      "it slows the machine; turn it off: echo nop > current_tracer",
		      "the top-level tracer '%s' is on: somebody else traces", tracer);
	if (events)
		found(x, "top level", DOCTOR_NOTE,
		      "recordings do not disturb each other; 'tracectl extract' reads that buffer",
		      "the top-level buffer has events enabled: somebody else traces");
	if (!busy && !events)
		found(x, "top level", DOCTOR_OK, NULL, "nobody uses the top-level tracer");
}

/* The words that 'tracectl boot-recorder enable' adds: "trace_instance=NAME^traceoff@traced". */
static char *doctor_find_boot_instance(const struct examination *x)
{
	static const char begin[] = "trace_instance=", end[] = "^traceoff@traced";
	_cleanup_free_ char *text = doctor_read(x->env->proc, "cmdline");
	char *save = NULL;

	for (char *p = text ? strtok_r(text, " \n", &save) : NULL; p;
	     p = strtok_r(NULL, " \n", &save)) {
		size_t len = strlen(p);

		if (len > strlen(begin) + strlen(end) && strncmp(p, begin, strlen(begin)) == 0 &&
		    strcmp(p + len - strlen(end), end) == 0)
			return strndup(p + strlen(begin), len - strlen(begin) - strlen(end));
	}
	return NULL;
}

static void doctor_check_instances(struct examination *x)
{
	_cleanup_free_ char *boot = doctor_find_boot_instance(x);
	_cleanup_buf_ struct buf foreign = BUF_INIT, stale = BUF_INIT;
	size_t count = 0;
	char **names = NULL;

	tracefs_list_instances(x->fs, &names, &count);
	for (size_t i = 0; i < count; i++) {
		pid_t pid = capture_instance_owner(names[i]);
		char path[512];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%d", x->env->proc, pid);
		if (!pid && boot && strcmp(names[i], boot) == 0)
			continue;
		if (!pid)
			buf_printf(&foreign, " %s", names[i]);
		else if (stat(path, &st) < 0)
			buf_printf(&stale, " %s", names[i]);
	}
	tracefs_free_names(names, count);
	if (stale.len)
		found(x, "instances", DOCTOR_WARN,
		      "traced removes them at its next start or recording",
		      "a crashed recording left instances:%s", buf_string(&stale) ?: "");
	if (foreign.len)
		found(x, "instances", DOCTOR_NOTE, NULL, "other tools have instances:%s",
		      buf_string(&foreign) ?: "");
	if (!stale.len && !foreign.len)
		found(x, "instances", DOCTOR_OK, NULL, "no other tool records");
}

static void doctor_check_boot_ring(struct examination *x)
{
	const struct capture_env env = { .tracefs = x->fs, .proc = x->env->proc };
	_cleanup_free_ char *instance = doctor_find_boot_instance(x);
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf size = BUF_INIT, release = BUF_INIT;
	const unsigned kernel = feature_kernel(x->env->proc, &release);
	struct boot_ring_state ring;

	if (!instance) {
		found(x, "boot recorder", DOCTOR_OK, NULL,
		      kernel >= FEATURE_KERNEL(6, 12)
			      ? "off; 'tracectl boot-recorder enable' has what to add"
			      : "none; a ring that outlives a crash needs Linux 6.12");
		return;
	}
	if (boot_ring_look(&env, instance, &ring, &err) < 0) {
		found(x, "boot recorder", DOCTOR_WARN,
		      "it needs Linux 6.12 with a persistent ring, on x86-64 or arm64, and free "
		      "memory for reserve_mem",
		      "%s", err.message);
		return;
	}
	format_bytes(ring.bytes, &size);
	if (ring.on)
		found(x, "boot recorder", DOCTOR_OK, NULL, "it records into '%s', %s", instance,
		      buf_string(&size) ?: "?");
	else
		found(x, "boot recorder", DOCTOR_WARN, "tracectl boot-recorder arm",
		      "the ring '%s' is there, but does not record", instance);
}

static void doctor_check_memory(struct examination *x)
{
	_cleanup_buf_ struct buf need = BUF_INIT, have = BUF_INIT;
	uint64_t available = meminfo_available(x->env->proc), wanted;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!available)
		return;
	wanted = DEFAULT_BUFFER_BYTES * (uint64_t)MAX(cpus, 1L);
	format_bytes(wanted, &need);
	format_bytes(available, &have);
	if (wanted > available / 4)
		found(x, "memory", DOCTOR_WARN, "record with a smaller buffer (-b)",
		      "the default buffers need %s; %s are free", buf_string(&need) ?: "?",
		      buf_string(&have) ?: "?");
	else
		found(x, "memory", DOCTOR_OK, NULL, "the default buffers need %s; %s are free",
		      buf_string(&need) ?: "?", buf_string(&have) ?: "?");
}

static void doctor_check_clock(struct examination *x)
{
	_cleanup_free_ char *text = doctor_read_tracefs(x, "trace_clock");

	if (!text)
		return;
	if (strstr(text, DEFAULT_CLOCK))
		found(x, "clock", DOCTOR_OK, NULL, "'%s' is available", DEFAULT_CLOCK);
	else
		found(x, "clock", DOCTOR_WARN, "record with -C mono or -C global",
		      "this kernel has no trace clock '%s'", DEFAULT_CLOCK);
}

static void doctor_check_mmap(struct examination *x)
{
	_cleanup_free_ char *release = doctor_read(x->env->proc, "sys/kernel/osrelease");
	unsigned major, minor;

	if (!release || sscanf(release, "%u.%u", &major, &minor) != 2)
		return;
	if (major > 6 || (major == 6 && minor >= 10))
		found(x, "ring buffer", DOCTOR_OK, NULL, "Linux %s can map its ring buffers",
		      release);
	else
		found(x, "ring buffer", DOCTOR_OK, NULL,
		      "Linux %s reads rings by splice; mapping them needs 6.10", release);
}

/* 0: a daemon listens, and this user may connect to it; or -errno. */
static int doctor_reach_daemon(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -EBADF;

	if (!path || strlen(path) >= sizeof(addr.sun_path))
		return -ENOENT;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN: its queue of connections is full. */
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

static void doctor_check_daemon(struct examination *x)
{
	int r = x->daemon;

	if (r == 0)
		found(x, "daemon", DOCTOR_OK, NULL, "listens on %s", x->env->socket);
	else if (r == -EACCES)
		found(x, "daemon", DOCTOR_WARN, "run as root, or join the socket's group",
		      "this user may not connect to it on %s", x->env->socket);
	else if (r == -ENOENT)
		found(x, "daemon", DOCTOR_NOTE,
		      place_has_unit() ? "systemctl enable --now " TRACED_PROGRAM
					 ".socket; root can record "
					 "without it"
				       : "root can record without it; sessions that live on by "
					 "themselves need one",
		      "no daemon runs");
	else
		found(x, "daemon", DOCTOR_WARN,
		      place_has_unit() ? "systemctl restart " TRACED_PROGRAM ".socket"
				       : place_start_daemon(),
		      "nobody answers on %s: %s", x->env->socket, strerror(-r));
}

int doctor_examine(const struct doctor_env *env, struct doctor_report *ret)
{
	struct doctor_report report = { 0 };
	struct examination x = {
		.env = env,
		.report = &report,
		.daemon = doctor_reach_daemon(env->socket),
	};

	doctor_check_tracefs(&x);
	if (x.fs)
		doctor_check_permission(&x);
	doctor_check_kernel(&x);
	doctor_check_lockdown(&x);
	doctor_check_symbols(&x);
	if (x.fs) {
		doctor_check_functions(&x);
		doctor_check_calls(&x);
		doctor_check_histograms(&x);
		doctor_check_latencies(&x);
		doctor_check_probes(&x);
		doctor_check_triggers(&x);
		doctor_check_marks(&x);
		doctor_check_toplevel(&x);
		doctor_check_instances(&x);
		doctor_check_boot_ring(&x);
		doctor_check_clock(&x);
	}
	doctor_check_mmap(&x);
	doctor_check_memory(&x);
	doctor_check_daemon(&x);
	tracefs_free(x.fs);
	if (x.failed) {
		doctor_report_deinit(&report);
		return -ENOMEM;
	}
	*ret = report;
	return 0;
}
