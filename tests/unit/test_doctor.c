/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The doctor, and the opening of tracefs, on folders that look like sick machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/capture/doctor.h"
#include "daemon/capture/tracefs/tracefs.h"
#include "fake_root.h"

struct fixture {
	struct fake_root root;
	char proc[128], sys[128], socket[128];
	struct doctor_env env;
	struct doctor_report report;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	snprintf(f->proc, sizeof(f->proc), "%s/proc", f->root.path);
	snprintf(f->sys, sizeof(f->sys), "%s/sys", f->root.path);
	snprintf(f->socket, sizeof(f->socket), "%s/socket", f->root.path);
	f->env = (struct doctor_env){
		.tracefs = f->root.path, .proc = f->proc, .sys = f->sys, .socket = f->socket
	};
	fake_dir(&f->root, "instances");
	fake_file(&f->root, "events/enable", "0\n");
	fake_file(&f->root, "trace_marker", "");
	fake_file(&f->root, "trace_clock", "[local] global mono boot\n");
	fake_file(&f->root, "current_tracer", "nop\n");
	fake_file(&f->root, "tracing_on", "1\n");
	fake_file(&f->root, "available_filter_functions", "schedule\n");
	fake_file(&f->root, "available_tracers", "function_graph function nop\n");
	fake_file(&f->root, "proc/filesystems", "nodev\tproc\nnodev\ttracefs\n");
	fake_file(&f->root, "proc/self/mounts", "nodev /sys/kernel/tracing tracefs rw 0 0\n");
	fake_file(&f->root, "proc/meminfo", "MemAvailable:   99000000 kB\n");
	fake_file(&f->root, "proc/sys/kernel/kptr_restrict", "1\n");
	fake_file(&f->root, "proc/sys/kernel/osrelease", "6.1.0-9-amd64\n");
	fake_file(&f->root, "sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	doctor_report_deinit(&f->report);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

/* The worst finding of that name; there must be one. */
static const struct doctor_finding *find(struct fixture *f, const char *check)
{
	const struct doctor_finding *worst = NULL;

	doctor_report_deinit(&f->report);
	assert_int_equal(doctor_examine(&f->env, &f->report), 0);
	for (size_t i = 0; i < f->report.count; i++) {
		const struct doctor_finding *d = &f->report.findings[i];

		/* A bad finding says what to do. */
		if (d->verdict >= DOCTOR_WARN)
			assert_non_null(d->mend);
		if (strcmp(d->check, check) == 0 && (!worst || d->verdict > worst->verdict))
			worst = d;
	}
	assert_non_null(worst);
	return worst;
}

static void healthy_machine(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(find(f, "tracefs")->verdict, DOCTOR_OK);
	for (size_t i = 0; i < f->report.count; i++) {
		/* Only the daemon is missing. */
		bool daemon = strcmp(f->report.findings[i].check, "daemon") == 0;

		assert_int_equal(f->report.findings[i].verdict, daemon ? DOCTOR_NOTE : DOCTOR_OK);
	}
}

static void kernel_without_tracefs(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "proc/filesystems", "nodev\tproc\n");
	assert_int_equal(find(f, "tracefs")->verdict, DOCTOR_BAD);
	assert_string_equal(find(f, "tracefs")->mend,
			    "boot a kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING");
}

static void nothing_at_the_root(void **state)
{
	struct fixture *f = *state;

	f->env.tracefs = f->sys;
	assert_int_equal(find(f, "tracefs")->verdict, DOCTOR_BAD);
	assert_non_null(strstr(find(f, "tracefs")->mend, "mount -t tracefs"));
}

static void an_old_kernel(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "proc/sys/kernel/osrelease", "4.14.336\n");
	assert_int_equal(find(f, "kernel")->verdict, DOCTOR_BAD);
	assert_string_equal(find(f, "kernel")->text,
			    "this is Linux 4.14.336: traced needs 4.19 at least");
	fake_file(&f->root, "proc/sys/kernel/osrelease", "4.19.0\n");
	doctor_report_deinit(&f->report);
	assert_int_equal(doctor_examine(&f->env, &f->report), 0);
	for (size_t i = 0; i < f->report.count; i++)
		assert_string_not_equal(f->report.findings[i].check, "kernel");
}

static void histograms(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "events/sched/sched_switch/format", "");
	assert_int_equal(find(f, "histograms")->verdict, DOCTOR_NOTE);
	assert_non_null(strstr(find(f, "histograms")->mend, "CONFIG_HIST_TRIGGERS"));
	fake_file(&f->root, "events/sched/sched_switch/hist", "");
	assert_int_equal(find(f, "histograms")->verdict, DOCTOR_NOTE);
	assert_non_null(strstr(find(f, "histograms")->mend, "CONFIG_SYNTH_EVENTS"));
	fake_file(&f->root, "synthetic_events", "");
	assert_int_equal(find(f, "histograms")->verdict, DOCTOR_OK);
	assert_int_equal(!strstr(find(f, "histograms")->text, "no libtracefs, so no --sql"),
			 HAVE_LIBTRACEFS);
	/* A plain file is always readable, as hist files are before Linux 6.14. */
	fake_file(&f->root, "events/sched/sched_process_hang/hist", "");
	assert_non_null(
		strstr(find(f, "histograms")->text, "those that did not count (Linux 6.14"));
}

static void functions(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "available_tracers", "function nop\n");
	assert_int_equal(find(f, "functions")->verdict, DOCTOR_NOTE);
	assert_string_equal(find(f, "functions")->mend,
			    "boot a kernel with CONFIG_FUNCTION_GRAPH_TRACER");
	fake_file(&f->root, "available_tracers", "blk function_graph function nop\n");
	assert_string_equal(find(f, "functions")->text, "function and function_graph");
}

static void probes(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(find(f, "probes")->text,
			    "none; no kprobes (CONFIG_KPROBE_EVENTS); no uprobes "
			    "(CONFIG_UPROBE_EVENTS); no fprobes (CONFIG_FPROBE_EVENTS, Linux 6.5); "
			    "no tprobes (CONFIG_FPROBE_EVENTS, Linux 6.5); no eprobes "
			    "(CONFIG_EPROBE_EVENTS, Linux 5.15); no names of arguments "
			    "(CONFIG_DEBUG_INFO_BTF)");
	fake_file(&f->root, "sys/kernel/btf/vmlinux", "");
	fake_file(&f->root, "kprobe_events", "");
	fake_file(&f->root, "uprobe_events", "");
	fake_file(&f->root, "dynamic_events", "");
	fake_file(&f->root, "README",
		  "\t           f[:[<group>/][<event>]] <func-name>[%return] [<args>]\n"
		  "\t           t[:[<group>/][<event>]] <tracepoint> [<args>]\n"
		  "\t           e[:[<group>/][<event>]] <attached-group>.<attached-event>\n");
	/* README names eprobes in a kernel without them, too. */
	assert_string_equal(find(f, "probes")->text,
			    "kprobes, uprobes, fprobes, tprobes; no eprobes "
			    "(CONFIG_EPROBE_EVENTS, Linux 5.15)");
	fake_file(&f->root, "proc/kallsyms", "ffffffff81000000 t eprobe_dyn_event_create\n");
	assert_string_equal(find(f, "probes")->text, "kprobes, uprobes, fprobes, tprobes, eprobes");
}

static void calls(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(find(f, "calls")->text,
			    "none; no funcgraph-retval (CONFIG_FUNCTION_GRAPH_RETVAL, Linux 6.5); "
			    "no funcgraph-args (CONFIG_FUNCTION_TRACE_ARGS, Linux 6.15); no "
			    "funcgraph-retaddr (CONFIG_FUNCTION_GRAPH_RETADDR, Linux 6.13)");
	fake_file(&f->root, "options/funcgraph-retval", "0\n");
	fake_file(&f->root, "options/funcgraph-args", "0\n");
	assert_string_equal(find(f, "calls")->text,
			    "funcgraph-retval, funcgraph-args; no funcgraph-retaddr "
			    "(CONFIG_FUNCTION_GRAPH_RETADDR, Linux 6.13)");
}

static void a_ring_that_outlives_a_crash(void **state)
{
	struct fixture *f = *state;

	assert_non_null(strstr(find(f, "boot recorder")->text, "needs Linux 6.12"));
	fake_file(&f->root, "proc/sys/kernel/osrelease", "6.12.0\n");
	assert_non_null(strstr(find(f, "boot recorder")->text, "'tracectl boot-recorder enable'"));
	fake_file(&f->root, "proc/cmdline", "quiet trace_instance=mine^traceoff@traced\n");
	assert_int_equal(find(f, "boot recorder")->verdict, DOCTOR_WARN);
	assert_non_null(strstr(find(f, "boot recorder")->text, "'mine'"));
}

static void marks(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(find(f, "marks")->text,
			    "libtraced; no user_events (CONFIG_USER_EVENTS, Linux 6.4); no "
			    "copy_trace_marker (Linux 6.16)");
	fake_file(&f->root, "options/copy_trace_marker", "0\n");
	assert_string_equal(find(f, "marks")->text,
			    "libtraced, copy_trace_marker; no user_events (CONFIG_USER_EVENTS, "
			    "Linux 6.4)");
	fake_file(&f->root, "user_events_data", "");
	assert_string_equal(find(f, "marks")->text, "libtraced, user_events, copy_trace_marker");
}

static void triggers(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "events/sched/sched_switch/trigger",
		  "# Available triggers:\n# traceon traceoff stacktrace\n");
	assert_string_equal(find(f, "triggers")->text, "traceon traceoff stacktrace");
	fake_file(&f->root, "events/sched/sched_switch/trigger",
		  "# Available triggers:\n# traceon traceoff\n");
	assert_string_equal(find(f, "triggers")->text,
			    "traceon traceoff; no stacktrace (CONFIG_STACKTRACE)");
}

static void lockdown(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	assert_int_equal(find(f, "lockdown")->verdict, DOCTOR_BAD);
	fake_file(&f->root, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	assert_int_equal(find(f, "lockdown")->verdict, DOCTOR_OK);
	assert_string_equal(find(f, "lockdown")->text, "integrity");
	unlink(fake_path(&f->root, "available_filter_functions"));
	assert_int_equal(find(f, "lockdown")->verdict, DOCTOR_NOTE);
	assert_string_equal(find(f, "lockdown")->mend,
			    "boot a kernel with CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE");
}

static void hidden_symbols(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "proc/sys/kernel/kptr_restrict", "2\n");
	assert_int_equal(find(f, "symbols")->verdict, DOCTOR_WARN);
}

static void somebody_else_traces(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "current_tracer", "function\n");
	assert_int_equal(find(f, "top level")->verdict, DOCTOR_NOTE);
	assert_non_null(strstr(find(f, "top level")->text, "'function'"));
	fake_file(&f->root, "current_tracer", "nop\n");
	fake_file(&f->root, "events/enable", "X\n");
	assert_int_equal(find(f, "top level")->verdict, DOCTOR_NOTE);
	fake_file(&f->root, "tracing_on", "0\n");
	assert_int_equal(find(f, "top level")->verdict, DOCTOR_OK);
}

static void instances(void **state)
{
	struct fixture *f = *state;

	fake_dir(&f->root, "proc/42");
	fake_dir(&f->root, "instances/traced-42-alive");
	assert_int_equal(find(f, "instances")->verdict, DOCTOR_OK);
	fake_dir(&f->root, "instances/perfetto");
	assert_int_equal(find(f, "instances")->verdict, DOCTOR_NOTE);
	fake_dir(&f->root, "instances/traced-43-dead");
	assert_int_equal(find(f, "instances")->verdict, DOCTOR_WARN);
	assert_non_null(strstr(find(f, "instances")->text, "traced-43-dead"));
}

static void little_memory_and_no_clock(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   8000 kB\n");
	fake_file(&f->root, "trace_clock", "[local] global\n");
	assert_int_equal(find(f, "memory")->verdict, DOCTOR_WARN);
	assert_int_equal(find(f, "clock")->verdict, DOCTOR_WARN);
}

static void dead_socket(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "socket", "");
	assert_int_equal(find(f, "daemon")->verdict, DOCTOR_WARN);
}

/* A socket that everybody may connect to. */
static int listen_at(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_true(strlen(path) < sizeof(addr.sun_path));
	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(chmod(path, 0777), 0);
	return fd;
}

/* A user without rights in tracefs records through the daemon. */
static void a_member_of_the_group(void **state)
{
	struct fixture *f = *state;
	uid_t own = geteuid();
	char locked[128];
	int fd;

	snprintf(locked, sizeof(locked), "%s/locked", f->root.path);
	fake_file(&f->root, "locked/events/enable", "0\n");
	assert_int_equal(chmod(locked, 0), 0);
	assert_int_equal(chmod(f->root.path, 0755), 0);
	f->env.tracefs = locked;
	if (!own)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(find(f, "permission")->verdict, DOCTOR_BAD);
	assert_int_equal(seteuid(own), 0);
	fd = listen_at(f->socket);
	if (!own)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(find(f, "permission")->verdict, DOCTOR_OK);
	assert_non_null(strstr(find(f, "permission")->text, "through the daemon"));
	assert_int_equal(find(f, "daemon")->verdict, DOCTOR_OK);
	assert_null(find(f, "lockdown")->mend);
	assert_int_equal(seteuid(own), 0);
	assert_int_equal(chmod(locked, 0755), 0);
	close(fd);
}

static void tracefs_lists_events(void **state)
{
	struct fixture *f = *state;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	const char *const *names;
	size_t count;

	fake_file(&f->root, "available_events", "sched:b\nirq:x\nsched:a\n");
	assert_int_equal(tracefs_open(&fs, f->root.path, NULL), 0);
	assert_int_equal(tracefs_events(fs, &names, &count, NULL), 0);
	assert_int_equal(count, 3);
	assert_string_equal(names[0], "irq:x");
	assert_string_equal(names[2], "sched:b");
	assert_string_equal(tracefs_path(fs), f->root.path);
	/* A module adds an event. */
	fake_file(&f->root, "available_events", "sched:b\nirq:x\nsched:a\nnew:y\n");
	assert_int_equal(tracefs_events(fs, &names, &count, NULL), 0);
	assert_int_equal(count, 4);
	assert_string_equal(names[1], "new:y");
}

static void tracefs_reads_numbers_and_refuses_paths(void **state)
{
	struct fixture *f = *state;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	uint64_t v;

	assert_int_equal(tracefs_open(&fs, f->root.path, NULL), 0);
	fake_file(&f->root, "buffer_size_kb", "7 (expanded: 1408)\n");
	assert_int_equal(tracefs_read_u64(tracefs_root(fs), "buffer_size_kb", &v), 0);
	assert_int_equal(v, 7);
	fake_file(&f->root, "buffer_size_kb", "X\n");
	assert_int_equal(tracefs_read_u64(tracefs_root(fs), "buffer_size_kb", &v), -EINVAL);
	assert_int_equal(tracefs_open_instance(fs, "../events"), -ENOENT);
	assert_int_equal(tracefs_open_instance(fs, "."), -ENOENT);
	assert_int_equal(tracefs_remove_instance(fs, ".."), -EINVAL);
	assert_int_equal(tracefs_remove_instance(fs, "a/b"), -EINVAL);
	assert_int_equal(tracefs_remove_instance(fs, "none"), -ENOENT);
	assert_int_equal(tracefs_write(tracefs_root(fs), "not_there", "1"), -ENOENT);
}

static void tracefs_that_is_none_says_so(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct tracefs *fs = NULL;

	assert_int_equal(tracefs_open(&fs, f->proc, &err), -ENODEV);
	assert_non_null(err.hint);
	assert_null(fs);
	/* The result is the same for a caller that asks for no reason. */
	assert_int_equal(tracefs_open(&fs, f->proc, NULL), -ENODEV);
	assert_null(fs);
}

/* The ring that the kernel's command line asks for. */
static void boot_recorder(void **state)
{
	struct fixture *f = *state;

	fake_file(&f->root, "proc/cmdline",
		  "quiet trace_instance=other@x reserve_mem=16384K:32M:traced "
		  "trace_instance=my_ring^traceoff@traced\n");
	assert_int_equal(find(f, "boot recorder")->verdict, DOCTOR_WARN);
	assert_non_null(strstr(find(f, "boot recorder")->text, "'my_ring'"));
	fake_file(&f->root, "instances/my_ring/last_boot_info", "# Current\n");
	fake_file(&f->root, "instances/my_ring/buffer_total_size_kb", "16288\n");
	fake_file(&f->root, "instances/my_ring/tracing_on", "0\n");
	assert_int_equal(find(f, "boot recorder")->verdict, DOCTOR_WARN);
	fake_file(&f->root, "instances/my_ring/tracing_on", "1\n");
	assert_int_equal(find(f, "boot recorder")->verdict, DOCTOR_OK);
	/* It is no other tool's. */
	assert_int_equal(find(f, "instances")->verdict, DOCTOR_OK);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(healthy_machine),
		TEST(boot_recorder),
		TEST(kernel_without_tracefs),
		TEST(nothing_at_the_root),
		TEST(an_old_kernel),
		TEST(functions),
		TEST(histograms),
		TEST(lockdown),
		TEST(probes),
		TEST(triggers),
		TEST(calls),
		TEST(a_ring_that_outlives_a_crash),
		TEST(marks),
		TEST(hidden_symbols),
		TEST(somebody_else_traces),
		TEST(instances),
		TEST(little_memory_and_no_clock),
		TEST(dead_socket),
		TEST(a_member_of_the_group),
		TEST(tracefs_lists_events),
		TEST(tracefs_reads_numbers_and_refuses_paths),
		TEST(tracefs_that_is_none_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
