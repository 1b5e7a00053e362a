/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/origin.h"
#include "agent/program.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/log.h"
#include "base/visible.h"
#include "fleet/result_name.h"
#include "fleet/rows.h"

#define FOLDER "recording"
#define REPORTS "reports.json"
#define ROWS "reports.ndjson.zst"
#define CAPTURE "capture.traced"
#define MESSAGES "messages"
/* Bytes of messages that are logged at once; what is before them is left out. */
#define MESSAGES_MAX 4096
/* Between two looks for messages. */
#define SAY_NS (5 * NSEC_PER_SEC)
/* For setup, export and reports. */
#define GRACE_NS (600 * NSEC_PER_SEC)
#define URGE_NS (10 * NSEC_PER_SEC)
/* Between two looks for segments. */
#define LOOK_NS NSEC_PER_SEC
/* Part of result_max at which a segment ends: its head and its end come on top. */
#define SEGMENT_PART(bytes) ((bytes) / 2)

void recorder_discard(struct recorder *r)
{
	DIR *dir = folder_at(r->dirfd, ".");
	struct dirent *e;

	if (!dir)
		return;
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(r->dirfd, e->d_name, 0);
	closedir(dir);
}

/* "17.0001.pftrace" is a whole segment of order 17. 0: another name. */
static uint64_t recorder_segment_serial(const char *name)
{
	char *end;
	uint64_t serial;

	if (name[0] < '1' || name[0] > '9')
		return 0;
	errno = 0;
	serial = strtoull(name, &end, 10);
	return !errno && *end == '.' && result_segment_parse(end + 1) ? serial : 0;
}

/* Gives the whole segment that comes first, or "". True if there is any, perhaps not whole yet. */
static bool recorder_find_segment(const struct recorder *r, char ret[NAME_MAX + 1])
{
	DIR *dir = folder_at(r->dirfd, ".");
	struct dirent *e;
	bool any = false;

	ret[0] = '\0';
	if (!dir)
		return false;
	while ((e = readdir(dir))) {
		/* No other name here begins with a digit. */
		any |= e->d_name[0] >= '0' && e->d_name[0] <= '9';
		if (recorder_segment_serial(e->d_name) &&
		    (!ret[0] || strverscmp(e->d_name, ret) < 0))
			strcpy(ret, e->d_name);
	}
	closedir(dir);
	return any;
}

/* left: how many bytes the order's results may still have. */
static int recorder_collect_file(struct recorder *r, const char *name, const char *suffix,
				 uint64_t serial, const struct policy *policy, struct spool *spool,
				 uint64_t *left, struct error *err)
{
	struct stat st;
	int e;

	if (fstatat(r->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return error_errno(err, -errno, "%s", name);
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return error_set(err, -ENODATA, "%s is empty", name);
	if ((uint64_t)st.st_size > policy->result_max)
		return error_set(err, -EFBIG, "%s is larger than result_max", name);
	if ((uint64_t)st.st_size > *left)
		return error_set(err, -EFBIG, "%s exceeds the order's bytes_max", name);
	e = spool_add(spool, r->dirfd, name, serial, suffix, policy->spool_max, err);
	*left -= e < 0 ? 0 : (uint64_t)st.st_size;
	return e;
}

unsigned recorder_take_segments(struct recorder *r, const struct policy *policy,
				struct spool *spool, uint64_t now)
{
	char name[NAME_MAX + 1];
	unsigned moved = 0;
	bool any;

	while ((any = recorder_find_segment(r, name)) && name[0] &&
	       r->segments < policy->segments_max) {
		_cleanup_error_ struct error err = ERROR_INIT;
		uint64_t left = UINT64_MAX;
		int e = recorder_collect_file(r, name, strchr(name, '.') + 1,
					      recorder_segment_serial(name), policy, spool, &left,
					      &err);

		moved += e == 0;
		r->segments++;
		if (e == 0)
			continue;
		log_warning("a segment is lost: %s", err.message ?: "out of memory");
		unlinkat(r->dirfd, name, 0);
		if (!r->failure.message)
			error_move(&r->failure, &err);
	}
	if (any && r->segments == policy->segments_max && !r->is_full) {
		r->is_full = true;
		if (r->pid)
			kill(r->pid, SIGTERM);
	}
	r->look_ns = r->pid && !r->is_full ? now + LOOK_NS : UINT64_MAX;
	return moved;
}

/* The child has its standard output, a locked file, for as long as it writes. */
static void recorder_wait_for_orphan(const struct recorder *r)
{
	_cleanup_close_ int fd = openat(r->dirfd, REPORTS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint64_t until = now_ns(CLOCK_BOOTTIME) + URGE_NS;

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK &&
	       now_ns(CLOCK_BOOTTIME) < until)
		usleep(20000);
}

int recorder_open(struct recorder *r, int state_fd, struct error *err)
{
	if (mkdirat(state_fd, FOLDER, 0700) < 0 && errno != EEXIST)
		return error_errno(err, -errno, FOLDER);
	r->dirfd = openat(state_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (r->dirfd < 0)
		return error_errno(err, -errno, FOLDER);
	return 0;
}

uint64_t recorder_find_left(const struct recorder *r)
{
	char name[NAME_MAX + 1];

	recorder_wait_for_orphan(r);
	recorder_find_segment(r, name);
	return recorder_segment_serial(name);
}

void recorder_close(struct recorder *r)
{
	error_deinit(&r->failure);
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

/* tracectl refuses a size without a unit, so the size is in KiB. */
static size_t recorder_put_segments(struct recorder_arguments *a, size_t n, const struct order *o,
				    const struct policy *policy)
{
	uint64_t bytes = SEGMENT_PART(policy->result_max);

	if (o->segments.bytes)
		bytes = MIN(bytes, o->segments.bytes);
	snprintf(a->rotate_bytes, sizeof(a->rotate_bytes), "%" PRIu64 "K",
		 MAX(bytes, ORDER_SEGMENT_BYTES_MIN) >> 10);
	snprintf(a->output, sizeof(a->output), "%" PRIu64 ".%s", o->serial,
		 o->format ?: ORDER_FORMAT);
	a->argv[n++] = "--rotate";
	a->argv[n++] = a->rotate_bytes;
	if (o->segments.ns) {
		snprintf(a->rotate_ns, sizeof(a->rotate_ns), "%" PRIu64 "ns", o->segments.ns);
		a->argv[n++] = "--rotate";
		a->argv[n++] = a->rotate_ns;
	}
	a->argv[n++] = "-o";
	a->argv[n++] = a->output;
	return n;
}

/* An order's limit is within the policy's. A flight recorder has none: nothing reads its ring. */
static size_t recorder_put_cpu(struct recorder_arguments *a, size_t n, const struct order *o,
			       const struct policy *policy)
{
	const unsigned permille = o->cpu_permille ?: policy->cpu_permille;

	if (!permille || o->until)
		return n;
	snprintf(a->cpu, sizeof(a->cpu), "%u.%u%%", permille / 10, permille % 10);
	a->argv[n++] = "--max-cpu";
	a->argv[n++] = a->cpu;
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
	n = recorder_put_cpu(a, n, o, policy);
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
	if (order_has_segments(o)) {
		n = recorder_put_segments(a, n, o, policy);
	} else if (o->capture) {
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
	/*
	 * This bounds the reports, and segments: one that is larger than result_max is lost, but
	 * the next ones come. A capture is written by the daemon's exporter, within spool_max.
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
	_cleanup_close_ int null_fd = -EBADF, out_fd = -EBADF, messages_fd = -EBADF;
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
	if (null_fd < 0 || out_fd < 0 || flock(out_fd, LOCK_EX | LOCK_NB) < 0)
		return error_errno(err, -errno, REPORTS);
	/* `wait` has it, too. */
	messages_fd = openat(r->dirfd, MESSAGES,
			     O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (messages_fd < 0)
		return error_errno(err, -errno, MESSAGES);
	program = (struct agent_program){ .argv = arguments.argv,
					  .environment = environment,
					  .dirfd = r->dirfd,
					  .in = null_fd,
					  .out = out_fd,
					  .err = messages_fd,
					  .parent = getpid() };
	r->pid = fork();
	if (r->pid < 0) {
		r->pid = 0;
		return error_errno(err, -errno, "fork");
	}
	if (!r->pid)
		recorder_exec(&program,
			      order_has_segments(o) ? 2 * policy->result_max : policy->result_max);
	r->urges = 0;
	r->said = 0;
	r->say_ns = 0;
	r->cause[0] = '\0';
	r->segments = 0;
	r->is_full = false;
	r->look_ns = order_has_segments(o) ? 0 : UINT64_MAX;
	error_deinit(&r->failure);
	r->failure = ERROR_INIT;
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

static void recorder_log_line(struct recorder *r, uint64_t serial, const char *line)
{
	static const char lead[] = "tracectl: ";
	_cleanup_buf_ struct buf shown = BUF_INIT;

	if (!*line)
		return;
	buf_visible(&shown, line, VISIBLE_MAX);
	log_warning("order %" PRIu64 ": %s", serial, buf_string(&shown) ?: "out of memory");
	if (strncmp(line, lead, strlen(lead)) != 0)
		return;
	/* `record` says last that `wait` failed. `wait` said why. */
	if (r->cause[0] && strstr(line, " ended with exit status "))
		return;
	snprintf(r->cause, sizeof(r->cause), "%s", line + strlen(lead));
}

/* Logs the lines that are new. all: the last one, too, if it has no end. */
static void recorder_log_lines(struct recorder *r, uint64_t serial, bool all)
{
	_cleanup_close_ int fd = openat(r->dirfd, MESSAGES, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[MESSAGES_MAX + 1], *rest = text, *line;
	struct stat st;
	uint64_t from;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	from = MAX(r->said, (uint64_t)MAX(st.st_size - MESSAGES_MAX, (off_t)0));
	n = pread_full(fd, text, MESSAGES_MAX, (off_t)from);
	text[MAX(n, (ssize_t)0)] = '\0';
	/* The first line may be cut. */
	if (from > r->said)
		(void)strsep(&rest, "\n");
	while (rest && (all || strchr(rest, '\n'))) {
		line = strsep(&rest, "\n");
		recorder_log_line(r, serial, line);
	}
	r->said = from + (uint64_t)(rest ? rest - text : MAX(n, (ssize_t)0));
}

void recorder_say(struct recorder *r, uint64_t serial, uint64_t now)
{
	if (!r->pid || now < r->say_ns)
		return;
	recorder_log_lines(r, serial, false);
	r->say_ns = now + SAY_NS;
}

void recorder_say_rest(struct recorder *r, uint64_t serial)
{
	recorder_log_lines(r, serial, true);
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
	r->look_ns = UINT64_MAX;
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

int recorder_collect(struct recorder *r, const struct order *o, const struct policy *policy,
		     struct spool *spool, struct error *err)
{
	_cleanup_error_ struct error second = ERROR_INIT;
	uint64_t left = o->bytes_max ?: UINT64_MAX;
	int reports = 0, capture = 0;

	if (o->reports.count)
		reports = recorder_add_origin(r, o, policy, err);
	if (o->reports.count && reports == 0)
		reports = recorder_pack(r, err);
	if (o->reports.count && reports == 0)
		reports = recorder_collect_file(r, ROWS, "ndjson.zst", o->serial, policy, spool,
						&left, err);
	if (order_has_segments(o)) {
		capture = r->failure.message ? error_move(err, &r->failure)
			  : !r->segments     ? error_set(err, -ENODATA, "there are no segments")
					     : 0;
	} else if (o->capture) {
		capture = recorder_collect_file(r, CAPTURE, "traced", o->serial, policy, spool,
						&left, reports < 0 ? &second : err);
	}
	recorder_discard(r);
	if (reports < 0 || capture < 0)
		return MIN(reports, 0) ?: capture;
	return (o->reports.count > 0) + (order_has_segments(o) ? (int)r->segments : o->capture);
}
