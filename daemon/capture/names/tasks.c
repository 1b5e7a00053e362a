/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/tasks.h"

#include <fcntl.h>

#include "base/io.h"
#include "base/secret_hash.h"
#include "base/vec.h"
#include "daemon/capture/names/inquiry.h"
#include "daemon/capture/tracefs/tracefs.h"
#include "proto/capture.pb-c.h"

#define SLICE_TASKS 128	     /* a slice ends with the process that reaches this number */
#define CHUNK_TASKS_MAX 1024 /* larger processes are split: chunks have a size limit */
#define CMDLINE_MAX 4096     /* bytes kept of a command line */
#define PF_KTHREAD 0x00200000

/* The fields of a stat file that are used. */
struct task_stat {
	int32_t tid, ppid;
	char comm[64];
	bool kthread;
	unsigned threads;  /* of its process; 0: it has ended */
	uint64_t start_ns; /* since boot */
};

/* A task as last written. The digest covers start time, name and process. */
struct task_seen {
	int32_t tid; /* 0: free */
	uint32_t scan;
	uint64_t digest;
};

#define TID_HASH(tid) hash_u32((uint32_t)(tid))
DEFINE_TABLE(task_slots, struct task_seen, int32_t, slot->tid, TID_HASH(slot->tid),
	     slot->tid == key);

void task_memory_deinit(struct task_memory *m)
{
	free(m->tasks.slots);
	*m = (struct task_memory){ 0 };
}

/* Makes room for one more task; forgets tasks that neither this scan nor the previous one met. */
static int task_memory_make_room(struct task_memory *m)
{
	struct task_slots *t = &m->tasks;

	if (t->count * 2 < t->size)
		return 0;
	for (uint32_t i = 0; i < t->size;)
		if (t->slots[i].tid && m->scan - t->slots[i].scan > 1)
			task_slots_remove(t, &t->slots[i]);
		else
			i++;
	return task_slots_reserve(t, t->count * 2);
}

/* FNV-1a. A forced collision is harmless: it only hides the attacker's own new name. */
static uint64_t task_digest(const struct task_stat *st, int32_t tgid)
{
	uint64_t parts[2] = { st->start_ns, (uint32_t)tgid }, d = UINT64_C(0xcbf29ce484222325);

	for (const char *p = st->comm; *p; p++)
		d = (d ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < sizeof(parts); i++)
		d = (d ^ ((const unsigned char *)parts)[i]) * UINT64_C(0x100000001b3);
	return d;
}

/* Returns true if the memory holds this very task. Stores it if not. */
static bool task_memory_remember(struct task_memory *m, const struct task_stat *st, int32_t tgid)
{
	struct task_seen *slot;
	uint64_t digest = task_digest(st, tgid);
	bool same;

	/* Out of memory: the task is only written once more. */
	if (!m || task_memory_make_room(m) < 0)
		return false;
	slot = task_slots_place(&m->tasks, TID_HASH(st->tid), st->tid);
	if (!slot)
		return false;
	same = slot->tid && slot->digest == digest;
	m->tasks.count += !slot->tid;
	*slot = (struct task_seen){ .tid = st->tid, .scan = m->scan, .digest = digest };
	return same;
}

int task_scan_start(struct task_scan *s, const char *proc, struct task_memory *memory)
{
	*s = TASK_SCAN_INIT;
	s->memory = memory;
	if (memory)
		memory->scan++;
	s->proc = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->proc < 0)
		return -errno;
	s->processes = opendir(proc);
	if (!s->processes) {
		int r = -errno;

		task_scan_end(s);
		return r;
	}
	return 0;
}

void task_scan_end(struct task_scan *s)
{
	if (s->processes)
		closedir(s->processes);
	close_fd(s->proc);
	*s = TASK_SCAN_INIT;
}

/* Fields of a stat line by proc(5), from the one after the name. */
enum { STAT_STATE, STAT_PPID, STAT_FLAGS = 6, STAT_THREADS = 17, STAT_START = 19, STAT_FIELDS };

/* sscanf() would take longer than the kernel does to write the line. */
static bool task_stat_split(const char *rest, const char *end, unsigned long long *ret)
{
	for (unsigned i = 0; i < STAT_FIELDS; i++) {
		const char *blank = rest < end ? memchr(rest, ' ', (size_t)(end - rest)) : NULL;

		if (!blank || blank + 1 == end)
			return false;
		rest = blank + 1;
		if (i != STAT_PPID && i != STAT_FLAGS && i != STAT_THREADS && i != STAT_START)
			continue;
		if (*rest < '0' || *rest > '9')
			return false;
		ret[i] = 0;
		while (rest < end && *rest >= '0' && *rest <= '9')
			ret[i] = ret[i] * 10 + (unsigned)(*rest++ - '0');
	}
	return true;
}

/* -EBADMSG: not a stat line. hz: USER_HZ. */
static int task_stat_parse(struct task_stat *ret, const char *line, size_t len, long hz)
{
	const char *open = memchr(line, '(', len), *close = memrchr(line, ')', len);
	unsigned long long field[STAT_FIELDS];
	struct task_stat t = { 0 };
	size_t n;

	if (!open || !close || close < open || hz <= 0)
		return -EBADMSG;
	n = MIN((size_t)(close - open - 1), sizeof(t.comm) - 1);
	memcpy(t.comm, open + 1, n);
	t.tid = (int32_t)strtol(line, NULL, 10);
	if (t.tid <= 0 || !task_stat_split(close + 1, line + len, field))
		return -EBADMSG;
	t.ppid = (int32_t)field[STAT_PPID];
	t.threads = (unsigned)field[STAT_THREADS];
	t.kthread = field[STAT_FLAGS] & PF_KTHREAD;
	t.start_ns = field[STAT_START] * (NSEC_PER_SEC / (uint64_t)hz);
	*ret = t;
	return 0;
}

/* One slice's message, built in place: protobuf-c needs arrays of pointers. */
struct task_slice {
	Traced__Capture__Task *tasks;
	size_t count, cap;
	bool failed;
	struct task_memory *memory;
	struct stream_writer *writer;
	unsigned origin, written;
	uint64_t boot_ns; /* taken before the first task is read: later renames have later time
			     stamps */
	int error;	  /* of the last write */
	/* Command lines that are to be read, and the indices of their tasks. */
	struct inquiry *lines;
	size_t line_tasks[INQUIRY_MAX], line_count;
	size_t unread; /* command lines that their processes held up */
};
static_assert(SLICE_TASKS <= INQUIRY_MAX, "a slice has room for each process");

static Traced__Capture__Task *task_slice_add(struct task_slice *s)
{
	Traced__Capture__Task *task = vec_add(s->tasks, s->count, s->cap);

	if (!task) {
		s->failed = true;
		return NULL;
	}
	*task = (Traced__Capture__Task)TRACED__CAPTURE__TASK__INIT;
	return task;
}

static void task_slice_set_bytes(struct task_slice *s, ProtobufCBinaryData *to, const void *data,
				 size_t len)
{
	to->data = malloc(len + 1);
	if (!to->data) {
		s->failed = true;
		return;
	}
	memcpy(to->data, data, len);
	to->len = len;
}

static void task_slice_clear(struct task_slice *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->tasks[i].comm.data);
		free(s->tasks[i].cmdline.data);
	}
	s->count = 0;
	s->boot_ns = now_ns(CLOCK_BOOTTIME);
}

/*
 * Reads the begin of a file of procfs, which gives all that fits at once. Returns the number of
 * bytes, or -1: the task has ended.
 */
static ssize_t task_read_file(int dir, const char *path, char *to, size_t size)
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : read(fd, to, size);
}

/* Without the zeros at its end. */
struct cmdline {
	size_t len;
	char text[];
};

static void *cmdline_read(int process, bool all _unused_)
{
	struct cmdline *c;
	char text[CMDLINE_MAX];
	ssize_t n = task_read_file(process, "cmdline", text, sizeof(text));

	while (n > 0 && text[n - 1] == '\0')
		n--;
	c = n > 0 ? malloc(sizeof(*c) + (size_t)n) : NULL;
	if (!c)
		return NULL;
	c->len = (size_t)n;
	memcpy(c->text, text, c->len);
	return c;
}

static const struct inquiry_kind cmdlines = { cmdline_read, free };

static void task_slice_read_cmdlines(struct task_slice *s)
{
	if (!s->lines)
		return;
	inquiry_begin(s->lines);
	inquiry_wait(s->lines, UINT64_MAX);
	for (size_t i = 0; i < s->line_count; i++) {
		_cleanup_free_ struct cmdline *c = inquiry_take(s->lines, i);

		if (c)
			task_slice_set_bytes(s, &s->tasks[s->line_tasks[i]].cmdline, c->text,
					     c->len);
	}
	s->unread += inquiry_unanswered(s->lines);
	s->lines = inquiry_free(s->lines);
	s->line_count = 0;
}

static void task_slice_deinit(struct task_slice *s)
{
	inquiry_free(s->lines);
	task_slice_clear(s);
	free(s->tasks);
}

static int task_slice_write(struct task_slice *s)
{
	Traced__Capture__Tasks msg = TRACED__CAPTURE__TASKS__INIT;
	_cleanup_free_ Traced__Capture__Task **list = NULL;

	if (s->error)
		return s->error;
	if (s->failed)
		return -ENOMEM;
	if (!s->count)
		return 0;
	task_slice_read_cmdlines(s);
	list = calloc(s->count, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		list[i] = &s->tasks[i];
	msg.tasks = list;
	msg.n_tasks = s->count;
	msg.boot_ns = s->boot_ns;
	msg.origin = s->origin;
	s->written += (unsigned)s->count;
	s->error = stream_write_message(s->writer, CHUNK_TASKS, &msg.base);
	task_slice_clear(s);
	return s->error;
}

void task_read_uid(int process, uint32_t *ret_uid)
{
	char text[1024]; /* the line is the ninth; before it only the name may be long */
	ssize_t n = task_read_file(process, "status", text, sizeof(text) - 1);
	const char *p;

	if (n <= 0)
		return;
	text[n] = '\0';
	p = strstr(text, "\nUid:");
	if (p)
		*ret_uid = (uint32_t)strtoul(p + 5, NULL, 10);
}

/* It is read with the slice's others. Takes process, the folder of the task that was added last. */
static void task_slice_want_cmdline(struct task_slice *s, int process, uid_t uid)
{
	if (!s->lines)
		s->lines = inquiry_new(&cmdlines, false);
	if (s->lines && inquiry_add(s->lines, process, uid) == 0)
		s->line_tasks[s->line_count++] = s->count - 1;
	else
		close_fd(process);
}

/* Reads the stat file in the folder dir. False: the task has ended, or the file is damaged. */
static bool task_read_stat(int fd, const char *dir, struct task_stat *ret)
{
	char text[1024], path[300]; /* the longest line has 52 numbers and a name of 64 bytes */
	ssize_t n;

	if ((size_t)snprintf(path, sizeof(path), "%s/stat", dir) >= sizeof(path))
		return false;
	n = task_read_file(fd, path, text, sizeof(text));
	return n > 0 && task_stat_parse(ret, text, (size_t)n, sysconf(_SC_CLK_TCK)) == 0;
}

/* Returns NULL if the task is known already, or memory is short. */
static Traced__Capture__Task *task_slice_add_task(struct task_slice *s, const struct task_stat *st,
						  int32_t tgid, uint32_t uid)
{
	Traced__Capture__Task *task;

	if (task_memory_remember(s->memory, st, tgid))
		return NULL;
	task = task_slice_add(s);
	if (!task)
		return NULL;
	task->tid = st->tid;
	task->tgid = tgid;
	task->ppid = st->ppid;
	task->uid = uid;
	task->start_ns = st->start_ns;
	task->kthread = st->kthread;
	task_slice_set_bytes(s, &task->comm, st->comm, strlen(st->comm));
	return task;
}

/* Adds the threads other than the first. Takes fd, the folder of all. */
static void task_slice_add_threads(struct task_slice *s, int fd, int32_t tgid, uint32_t uid)
{
	DIR *threads = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!threads) {
		close_fd(fd);
		return;
	}
	while ((e = readdir(threads))) {
		struct task_stat st;

		if (e->d_name[0] < '1' || e->d_name[0] > '9' || atoi(e->d_name) == tgid ||
		    !task_read_stat(dirfd(threads), e->d_name, &st))
			continue;
		task_slice_add_task(s, &st, tgid, uid);
		if (s->count >= CHUNK_TASKS_MAX && task_slice_write(s) < 0)
			break;
	}
	closedir(threads);
}

/* Reads one file of a kernel thread, three of most processes: most of them have one thread. */
static void task_slice_add_process(struct task_slice *s, int proc, const char *pid)
{
	_cleanup_close_ int process = -EBADF;
	int threads = -EBADF;
	Traced__Capture__Task *task;
	struct task_stat st;
	uint32_t uid = 0;

	if (!task_read_stat(proc, pid, &st))
		return;
	if (!st.kthread) {
		process = openat(proc, pid, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (process < 0)
			return;
		task_read_uid(process, &uid);
	}
	task = task_slice_add_task(s, &st, st.tid, uid);
	if (!st.kthread && st.threads != 1)
		threads = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task && !st.kthread)
		task_slice_want_cmdline(s, TAKE_FD(process), uid);
	if (threads >= 0)
		task_slice_add_threads(s, threads, st.tid, uid);
}

int task_scan_step(struct task_scan *s, struct stream_writer *w)
{
	_cleanup_(task_slice_deinit) struct task_slice slice = {
		.writer = w, .memory = s->memory, .boot_ns = now_ns(CLOCK_BOOTTIME)
	};
	unsigned visited = 0;
	struct dirent *e = NULL;
	size_t unread;
	int r;

	if (!s->processes)
		return 0;
	while (slice.count < SLICE_TASKS && visited < SLICE_TASKS && (e = readdir(s->processes)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9') {
			task_slice_add_process(&slice, s->proc, e->d_name);
			visited++;
		}
	r = task_slice_write(&slice);
	s->tasks += slice.written;
	unread = s->unread += slice.unread;
	if (r == 0 && e)
		return 1;
	task_scan_end(s);
	s->unread = unread;
	return r;
}

int tasks_write_saved(const char *text, struct stream_writer *w)
{
	_cleanup_(task_slice_deinit) struct task_slice slice = {
		.writer = w, .origin = 1, .boot_ns = now_ns(CLOCK_BOOTTIME)
	};
	int r;

	for (const char *p = text; p && *p; p = strchr(p, '\n')) {
		Traced__Capture__Task *task;
		char *end;
		long tid;

		p += *p == '\n';
		tid = strtol(p, &end, 10);
		if (end == p || *end != ' ' || tid <= 0 || tid > INT32_MAX)
			continue;
		task = task_slice_add(&slice);
		if (!task)
			break;
		task->tid = (int32_t)tid;
		task_slice_set_bytes(&slice, &task->comm, end + 1, strcspn(end + 1, "\n"));
		r = slice.count >= CHUNK_TASKS_MAX ? task_slice_write(&slice) : 0;
		if (r < 0)
			return r;
	}
	return task_slice_write(&slice);
}
