/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/origin.h"
#include "agent/program.h"
#include "base/buf.h"
#include "base/io.h"
#include "fleet/rows.h"

#define FOLDER "recording"
#define REPORTS "reports.json"
#define ROWS "reports.ndjson.zst"
#define CAPTURE "capture.traced"
/* For setup, export and reports. */
#define GRACE_NS (600 * NSEC_PER_SEC)
#define URGE_NS (10 * NSEC_PER_SEC)

void recorder_discard(struct recorder *r)
{
	int fd = openat(r->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		close_fd(fd);
		return;
	}
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(r->dirfd, e->d_name, 0);
	closedir(dir);
}

int recorder_open(struct recorder *r, int state_fd, struct error *err)
{
	if (mkdirat(state_fd, FOLDER, 0700) < 0 && errno != EEXIST)
		return error_errno(err, -errno, FOLDER);
	r->dirfd = openat(state_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (r->dirfd < 0)
		return error_errno(err, -errno, FOLDER);
	recorder_discard(r);
	return 0;
}

void recorder_close(struct recorder *r)
{
	r->dirfd = close_fd(r->dirfd);
}

static int recorder_join(const struct string_list *words, char **ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	for (size_t i = 0; i < words->count; i++)
		buf_printf(&text, "%s%s", i ? "," : "", words->items[i]);
	if (!buf_string(&text))
		return -ENOMEM;
	*ret = TAKE_PTR(text.data);
	return 0;
}

static size_t recorder_put_program(struct recorder_arguments *a, size_t n,
				   const struct policy *policy, const char *command)
{
	a->argv[n++] = policy->tracectl;
	if (policy->socket) {
		a->argv[n++] = "--socket";
		a->argv[n++] = policy->socket;
	}
	a->argv[n++] = command;
	a->argv[n++] = "--quiet";
	return n;
}

int recorder_arguments_init(struct recorder_arguments *a, const struct order *o,
			    const struct policy *policy, struct error *err)
{
	size_t n = 0;
	int r;

	*a = (struct recorder_arguments){ 0 };
	snprintf(a->duration, sizeof(a->duration), "%" PRIu64 "ns", o->duration_ns);
	n = recorder_put_program(a, n, policy, "record");
	if (o->until) {
		a->argv[n++] = "--ring";
	} else {
		a->argv[n++] = "-t";
		a->argv[n++] = a->duration;
	}
	if (o->profile) {
		a->argv[n++] = "--profile";
		a->argv[n++] = o->profile;
	}
	for (size_t i = 0; i < o->events.count; i++) {
		a->argv[n++] = "-e";
		a->argv[n++] = o->events.items[i];
	}
	if (o->filter) {
		a->argv[n++] = "-f";
		a->argv[n++] = o->filter;
	}
	if (o->sql) {
		a->argv[n++] = "--sql";
		a->argv[n++] = o->sql;
		a->argv[n++] = "--as";
		a->argv[n++] = o->as;
	}
	if (o->hist) {
		a->argv[n++] = "--hist";
		a->argv[n++] = o->hist;
	}
	if (o->reports.count) {
		r = recorder_join(&o->reports, &a->reports);
		if (r < 0)
			return error_errno(err, r, "the reports");
		a->argv[n++] = "--report";
		a->argv[n++] = a->reports;
		a->argv[n++] = "--json";
	}
	if (o->capture) {
		a->argv[n++] = "-o";
		a->argv[n++] = CAPTURE;
	}
	if (o->until) {
		a->argv[n++] = "--";
		n = recorder_put_program(a, n, policy, "wait");
		a->argv[n++] = "--on";
		a->argv[n++] = o->until;
		a->argv[n++] = "-t";
		a->argv[n++] = a->duration;
	}
	return 0;
}

void recorder_arguments_deinit(struct recorder_arguments *a)
{
	free(a->reports);
	a->reports = NULL;
}

/* The child. It leads a group, to which `wait` belongs. */
_Noreturn static void recorder_exec(const struct agent_program *program, uint64_t size_max)
{
	/* This bounds the reports. A capture is written by the daemon's exporter, within spool_max.
	 */
	const struct rlimit size = { .rlim_cur = size_max, .rlim_max = size_max };

	if (setpgid(0, 0) < 0 || setrlimit(RLIMIT_FSIZE, &size) < 0)
		_exit(127);
	agent_program_exec(program);
}

int recorder_start(struct recorder *r, const struct order *o, const struct policy *policy,
		   struct error *err)
{
	_cleanup_(recorder_arguments_deinit) struct recorder_arguments arguments = { 0 };
	_cleanup_close_ int null_fd = -EBADF, out_fd = -EBADF;
	_cleanup_free_ char *temp = NULL;
	const char *environment[] = { "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", NULL, NULL };
	struct agent_program program;
	int e;

	recorder_discard(r);
	e = recorder_arguments_init(&arguments, o, policy, err);
	if (e < 0)
		return e;
	if (asprintf(&temp, "TMPDIR=%s/" FOLDER, policy->state_dir) < 0)
		return error_errno(err, -ENOMEM, FOLDER);
	environment[2] = temp;
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	out_fd = openat(r->dirfd, REPORTS, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0600);
	if (null_fd < 0 || out_fd < 0)
		return error_errno(err, -errno, REPORTS);
	program = (struct agent_program){ .argv = arguments.argv,
					  .environment = environment,
					  .dirfd = r->dirfd,
					  .in = null_fd,
					  .out = out_fd,
					  .parent = getpid() };
	r->pid = fork();
	if (r->pid < 0) {
		r->pid = 0;
		return error_errno(err, -errno, "fork");
	}
	if (!r->pid)
		recorder_exec(&program, policy->result_max);
	r->urges = 0;
	r->started_s = now_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	r->deadline_ns = now_ns(CLOCK_BOOTTIME) + o->duration_ns + GRACE_NS;
	return 0;
}

bool recorder_reap(struct recorder *r, int *ret_status)
{
	siginfo_t info = { 0 };

	if (!r->pid || waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    !info.si_pid)
		return false;
	/* `wait` may have outlived it. Its group's number is not free before waitpid(). */
	kill(-r->pid, SIGKILL);
	waitpid(r->pid, ret_status, 0);
	r->pid = 0;
	return true;
}

void recorder_urge(struct recorder *r, uint64_t now)
{
	if (!r->pid || now < r->deadline_ns)
		return;
	kill(r->pid, r->urges++ ? SIGKILL : SIGTERM);
	r->deadline_ns = now + URGE_NS;
}

void recorder_end(struct recorder *r, uint64_t now)
{
	r->deadline_ns = MIN(r->deadline_ns, now);
}

void recorder_stop(struct recorder *r)
{
	uint64_t until = now_ns(CLOCK_BOOTTIME) + URGE_NS;
	int status;

	if (r->pid)
		kill(r->pid, SIGTERM);
	while (r->pid && !recorder_reap(r, &status)) {
		if (now_ns(CLOCK_BOOTTIME) > until)
			kill(r->pid, SIGKILL);
		usleep(20000);
	}
}

/* Says in the reports whose they are. tracectl ends them so; anything else stays as it is. */
static int recorder_add_origin(struct recorder *r, const struct order *o,
			       const struct policy *policy, struct error *err)
{
	_cleanup_close_ int fd = openat(r->dirfd, REPORTS, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_buf_ struct buf origin = BUF_INIT;
	char end[2];
	off_t at;
	int e;

	if (fd < 0)
		return error_errno(err, -errno, REPORTS);
	at = lseek(fd, -(off_t)sizeof(end), SEEK_END);
	if (at < 0 || read_full(fd, end, sizeof(end)) != sizeof(end) || end[0] != '}')
		return error_set(err, -ENODATA, REPORTS " is not whole");
	origin_put(policy, o, r->started_s, &origin);
	buf_append(&origin, end, sizeof(end));
	e = buf_error(&origin);
	if (e == 0)
		e = lseek(fd, at, SEEK_SET) < 0 ? -errno : write_full(fd, origin.data, origin.len);
	return e < 0 ? error_errno(err, e, REPORTS) : 0;
}

/* The store gets the reports as rows. */
static int recorder_pack(struct recorder *r, struct error *err)
{
	_cleanup_close_ int from = openat(r->dirfd, REPORTS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_close_ int to =
		openat(r->dirfd, ROWS, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int e;

	if (from < 0 || to < 0)
		return error_errno(err, -errno, ROWS);
	e = rows_pack(from, to, err);
	return e < 0 ? error_prefix(err, REPORTS) : 0;
}

static int recorder_collect_file(struct recorder *r, const char *name, const char *suffix,
				 uint64_t serial, const struct policy *policy, struct spool *spool,
				 struct error *err)
{
	struct stat st;

	if (fstatat(r->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return error_errno(err, -errno, "%s", name);
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return error_set(err, -ENODATA, "%s is empty", name);
	if ((uint64_t)st.st_size > policy->result_max)
		return error_set(err, -EFBIG, "%s is larger than result_max", name);
	return spool_add(spool, r->dirfd, name, serial, suffix, policy->spool_max, err);
}

int recorder_collect(struct recorder *r, const struct order *o, const struct policy *policy,
		     struct spool *spool, struct error *err)
{
	_cleanup_error_ struct error second = ERROR_INIT;
	int reports = 0, capture = 0;

	if (o->reports.count)
		reports = recorder_add_origin(r, o, policy, err);
	if (o->reports.count && reports == 0)
		reports = recorder_pack(r, err);
	if (o->reports.count && reports == 0)
		reports =
			recorder_collect_file(r, ROWS, "ndjson.zst", o->serial, policy, spool, err);
	if (o->capture)
		capture = recorder_collect_file(r, CAPTURE, "traced", o->serial, policy, spool,
						reports < 0 ? &second : err);
	recorder_discard(r);
	if (reports < 0 || capture < 0)
		return MIN(reports, 0) ?: capture;
	return (o->reports.count > 0) + o->capture;
}
