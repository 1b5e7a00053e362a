/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/daemon.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/service/exporter.h"
#include "daemon/service/manager.h"
#include "daemon/service/marking.h"
#include "daemon/service/notify.h"
#include "daemon/service/pid_file.h"

#define LOOP_NICE (-5)
#define TRIM_THRESHOLD (128 * 1024)

enum {
	EXIT_USAGE = 2,
};

struct arguments {
	struct manager_options manager;
	int fd; /* value of --fd, or -EBADF */
	bool standalone;
};

static const char help_text[] =
	"traced [OPTION...]\n"
	"\n"
	"Records the kernel's trace events for tracectl. Runs in the foreground.\n"
	"\n"
	"  --config FILE      read FILE and FILE.d/*.conf (" CONFIG_FILE ")\n"
	"  --socket PATH      listen on PATH\n"
	"  --spool-dir PATH   keep recordings there until they are written out\n"
	"  --state-dir PATH   keep the journals of kernel settings there\n"
	"  --tracefs PATH     tracefs is at PATH, instead of where it is found\n"
	"  --exporter PATH    a service at the socket PATH decodes, instead of children\n"
	"  --metrics FILE     write counts for Prometheus to FILE\n"
	"  --log-level LEVEL  debug, info, notice, warning or error\n"
	"  --standalone       there is no service manager: keep a pid file beside the journals\n"
	"  --private --fd N   serve the one client on socket N, then end\n"
	"  --version\n"
	"  --help\n"
	"\n"
	"traced(8), traced.conf(5), tracectl(1)\n";

static int daemon_parse_fd(const char *text, int *ret)
{
	char *end;
	long fd;

	errno = 0;
	fd = strtol(text, &end, 10);
	if (errno || end == text || *end || fd < 3 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0)
		return -EBADF;
	*ret = (int)fd;
	return 0;
}

static int daemon_usage(const char *text)
{
	fprintf(stderr, "traced: %s\nTry 'traced --help'.\n", text);
	return EXIT_USAGE;
}

/* Returns -1 to continue, otherwise an exit status. */
static int daemon_parse_arguments(int argc, char **argv, struct arguments *a)
{
	enum {
		CONFIG = 256,
		SOCKET,
		SPOOL,
		STATE,
		TRACEFS,
		EXPORTER,
		METRICS,
		LEVEL,
		PRIVATE,
		FD,
		STANDALONE,
		VERSION,
		HELP
	};
	static const struct option options[] = {
		{ "config", required_argument, NULL, CONFIG },
		{ "socket", required_argument, NULL, SOCKET },
		{ "spool-dir", required_argument, NULL, SPOOL },
		{ "state-dir", required_argument, NULL, STATE },
		{ "tracefs", required_argument, NULL, TRACEFS },
		{ "exporter", required_argument, NULL, EXPORTER },
		{ "metrics", required_argument, NULL, METRICS },
		{ "log-level", required_argument, NULL, LEVEL },
		{ "private", no_argument, NULL, PRIVATE },
		{ "fd", required_argument, NULL, FD },
		{ "standalone", no_argument, NULL, STANDALONE },
		{ "version", no_argument, NULL, VERSION },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct manager_options *m = &a->manager;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case CONFIG:
			m->config_file = optarg;
			break;
		case SOCKET:
			m->socket = optarg;
			break;
		case SPOOL:
			m->spool_dir = optarg;
			break;
		case STATE:
			m->state_dir = optarg;
			break;
		case TRACEFS:
			m->tracefs = optarg;
			break;
		case EXPORTER:
			m->exporter_service = optarg;
			break;
		case METRICS:
			m->metrics = optarg;
			break;
		case LEVEL:
			m->log_level = log_level_parse(optarg);
			if (m->log_level < 0)
				return daemon_usage(
					"--log-level takes debug, info, notice, warning or "
					"error");
			break;
		case PRIVATE:
			m->private = true;
			break;
		case FD:
			if (daemon_parse_fd(optarg, &a->fd) < 0)
				return daemon_usage("--fd takes the number of an open socket");
			break;
		case STANDALONE:
			a->standalone = true;
			break;
		case VERSION:
			puts("traced " TRACED_VERSION);
			return EXIT_SUCCESS;
		case HELP:
			fputs(help_text, stdout);
			return EXIT_SUCCESS;
		default:
			fputs("Try 'traced --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return daemon_usage("traced takes only options");
	if (m->private != (a->fd >= 0))
		return daemon_usage("--private and --fd need each other");
	if (m->private && a->standalone)
		return daemon_usage("--private and --standalone cannot be combined");
	return -1;
}

static void daemon_on_stop_signal(void *userdata)
{
	manager_stop(userdata);
}

static void daemon_on_hangup(void *userdata)
{
	manager_reload(userdata);
}

/* Each session needs several descriptors per CPU. */
static void daemon_raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int daemon_block_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int daemon_add_signals(struct manager *m, struct error *err)
{
	int r;

	r = loop_add_signal(m->loop, SIGTERM, daemon_on_stop_signal, m);
	if (r >= 0)
		r = loop_add_signal(m->loop, SIGINT, daemon_on_stop_signal, m);
	if (r >= 0)
		r = loop_add_signal(m->loop, SIGHUP, daemon_on_hangup, m);
	return r < 0 ? error_errno(err, r, "signals") : 0;
}

/* Returns the socket from the service manager, or -EBADF. */
static int daemon_activation_socket(struct error *err)
{
	int fd = notify_take_socket();

	if (fd == -EINVAL)
		return error_set(
			err, fd,
			"socket activation must pass exactly one listening unix stream socket");
	if (fd < 0 && fd != -ENOENT)
		return error_errno(err, fd, "socket activation");
	return fd < 0 ? -EBADF : fd;
}

static int daemon_open(struct manager *m, const struct arguments *a, struct error *err)
{
	int r, fd;

	if (a->manager.private) {
		marking_open(m);
		return manager_adopt(m, a->fd, err);
	}
	fd = daemon_activation_socket(err);
	if (fd < 0 && fd != -EBADF)
		return fd;
	r = manager_listen(m, fd, err);
	if (r < 0)
		return r;
	marking_open(m);
	r = loop_serve_watchdog(m->loop);
	if (r < 0)
		return error_errno(err, r, "watchdog");
	/* Write status and metrics first: clients that wait for READY may read them. */
	manager_changed(m);
	notify("READY=1");
	sparing_refresh(m);
	return 0;
}

static int daemon_serve(struct loop *loop, const struct arguments *a, struct error *err)
{
	_cleanup_(pid_file_deinit) struct pid_file pid_file = PID_FILE_INIT;
	_cleanup_(manager_freep) struct manager *m = NULL;
	int r;

	r = manager_new(&m, loop, &a->manager, err);
	if (r >= 0 && a->standalone)
		r = pid_file_take(&pid_file, m->config.state_dir, err);
	if (r < 0)
		return r;
	r = daemon_add_signals(m, err);
	if (r < 0)
		return r;
	manager_recover(m);
	r = daemon_open(m, a, err);
	if (r < 0)
		return r;
	if (!a->manager.private)
		log_info("traced " TRACED_VERSION " listens on %s", m->config.socket);
	r = loop_run(loop);
	return r < 0 ? error_errno(err, r, "event loop") : 0;
}

/*
 * Before other programs, but behind the threads that read the rings: requests without end must not
 * make these wait. Failure is harmless.
 */
static void daemon_raise_priority(void)
{
	setpriority(PRIO_PROCESS, 0, LOOP_NICE);
}

/*
 * Drops inherited variables of a service manager that started, say, the caller's shell: they are
 * not for this process.
 */
static void daemon_forget_service_manager(void)
{
	static const char *const names[] = { "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
					     "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES",
					     "INVOCATION_ID", "JOURNAL_STREAM" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

/*
 * A recording needs ten times its memory at first, for formats, symbols and tasks. By default,
 * glibc keeps that in an arena of each thread: it raises its thresholds as large blocks are freed,
 * and malloc_trim() leaves the end of an arena alone.
 */
static void daemon_give_memory_back(void)
{
#ifdef __GLIBC__
	mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD);
	mallopt(M_MMAP_THRESHOLD, TRIM_THRESHOLD);
#endif
}

static int daemon_run(const struct arguments *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_(loop_freep) struct loop *loop = NULL;
	int r;

	if (a->standalone)
		daemon_forget_service_manager();
	log_set_prefix(!a->manager.private && getenv("INVOCATION_ID"));
	/* The terminal belongs to tracectl, which reports more. */
	if (a->manager.private)
		log_keep_records();
	daemon_give_memory_back();
	daemon_raise_priority();
	daemon_raise_descriptor_limit();
	child_reserve_descriptors();
	r = daemon_block_signals();
	if (r >= 0)
		r = loop_new(&loop);
	if (r < 0)
		error_errno(&err, r, "event loop");
	else
		r = daemon_serve(loop, a, &err);
	if (r >= 0)
		return EXIT_SUCCESS;
	log_error("%s%s%s", err.message ?: "failed", err.hint ? "; " : "", err.hint ?: "");
	return EXIT_FAILURE;
}

int traced_main(int argc, char **argv)
{
	struct arguments a = { .manager.log_level = -1, .fd = -EBADF };
	int r;

	reserve_standard_fds();
	if (argc > 1 && strcmp(argv[1], EXPORTER_OPTION) == 0)
		return exporter_main();
	if (argc > 1 && strcmp(argv[1], EXPORTER_SERVICE_OPTION) == 0)
		return exporter_service_main();
	if (argc > 1 && strcmp(argv[1], EXTRACTOR_OPTION) == 0)
		return extractor_main(argc - 2, argv + 2);
	r = daemon_parse_arguments(argc, argv, &a);
	return r >= 0 ? r : daemon_run(&a);
}
