/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/polls/poll_files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "proto/capture.pb-c.h"

/* Bytes of one file; the end of a longer one is cut. */
#define FILE_MAX (256U << 10)
#define LABEL_MAX 64

struct polled_file {
	char *path; /* owned */
	char *label;
	uint32_t number;
	int fd; /* -EBADF: not open */
};

static int files_add(struct poll_files *f, uint32_t number, const char *label, const char *fmt, ...)
	_printf_(4, 5);

/* Adds a file, whether or not it can be opened now. */
static int files_add(struct poll_files *f, uint32_t number, const char *label, const char *fmt, ...)
{
	struct polled_file *file = vec_add_exact(f->files, f->count);
	va_list ap;
	int n;

	if (!file)
		return -ENOMEM;
	*file = (struct polled_file){ .number = number, .fd = -EBADF };
	va_start(ap, fmt);
	n = vasprintf(&file->path, fmt, ap);
	va_end(ap);
	if (n < 0) {
		file->path = NULL;
		return -ENOMEM;
	}
	file->label = strdup(label);
	return file->label ? 0 : -ENOMEM;
}

/* True for "cpu7" with the prefix "cpu". */
static bool files_number_of(const char *name, const char *prefix, uint32_t *ret)
{
	size_t len = strlen(prefix);
	unsigned long n;
	char *end;

	if (strncmp(name, prefix, len) != 0 || name[len] < '0' || name[len] > '9')
		return false;
	errno = 0;
	n = strtoul(name + len, &end, 10);
	*ret = (uint32_t)n;
	return !*end && !errno && n <= INT32_MAX;
}

static int files_by_number(const void *a, const void *b)
{
	const struct polled_file *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int files_add_zone(struct poll_files *f, uint32_t number, const char *dir)
{
	_cleanup_buf_ struct buf path = BUF_INIT, type = BUF_INIT;

	buf_printf(&path, "%s/thermal_zone%" PRIu32 "/type", dir, number);
	if (!buf_string(&path))
		return -ENOMEM;
	if (read_file_at(AT_FDCWD, path.data, LABEL_MAX, &type) < 0)
		buf_clear(&type);
	if (!buf_string(&type))
		return -ENOMEM;
	type.data[strcspn(type.data, "\n")] = '\0';
	return files_add(f, number, type.data, "%s/thermal_zone%" PRIu32 "/temp", dir, number);
}

/* Adds a file for each numbered folder. */
static int files_add_numbered(struct poll_files *f, const char *sys)
{
	bool thermal = f->source == POLL_THERMAL;
	_cleanup_buf_ struct buf dir = BUF_INIT;
	struct dirent *e;
	int r = 0;
	DIR *d;

	buf_printf(&dir, "%s/%s", sys, thermal ? "class/thermal" : "devices/system/cpu");
	if (!buf_string(&dir))
		return -ENOMEM;
	d = opendir(dir.data);
	while (d && r == 0 && (e = readdir(d))) {
		uint32_t number;

		if (!files_number_of(e->d_name, thermal ? "thermal_zone" : "cpu", &number))
			continue;
		r = thermal ? files_add_zone(f, number, dir.data)
			    : files_add(f, number, "", "%s/cpu%" PRIu32 "/cpufreq/scaling_cur_freq",
					dir.data, number);
	}
	if (d)
		closedir(d);
	if (f->count)
		qsort(f->files, f->count, sizeof(*f->files), files_by_number);
	/* There is always one, which the error names. */
	if (r == 0 && !f->count)
		r = files_add(f, 0, "", "%s%s", dir.data,
			      thermal ? "/thermal_zone0/temp" : "/cpu0/cpufreq/scaling_cur_freq");
	return r;
}

static int files_add_resources(struct poll_files *f, const char *proc)
{
	static const char *const resources[] = { "cpu", "memory", "io", "irq" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(resources); i++)
		r = files_add(f, 0, resources[i], "%s/pressure/%s", proc, resources[i]);
	return r;
}

static int files_list(struct poll_files *f, const struct poll_where *where)
{
	switch (f->source) {
	case POLL_CPUFREQ:
	case POLL_THERMAL:
		return files_add_numbered(f, where->sys);
	case POLL_PSI:
		return files_add_resources(f, where->proc);
	default:
		return files_add(f, 0, "", "%s/%s", where->proc, poll_source_name(f->source));
	}
}

/* The process of a task; the task itself if it has ended. */
static pid_t files_process_of(const char *proc, pid_t tid)
{
	static const char line[] = "\nTgid:\t";
	_cleanup_buf_ struct buf path = BUF_INIT, text = BUF_INIT;
	const char *at;

	buf_printf(&path, "%s/%d/status", proc, (int)tid);
	if (!buf_string(&path) || read_file_at(AT_FDCWD, path.data, FILE_MAX, &text) < 0 ||
	    !buf_string(&text))
		return tid;
	at = strstr(text.data, line);
	return at ? (pid_t)strtol(at + strlen(line), NULL, 10) : tid;
}

static bool files_have_process(const struct poll_files *f, pid_t pid)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->pids[i] == pid)
			return true;
	return false;
}

static int files_init_processes(struct poll_files *f, const struct poll_where *where)
{
	f->proc = strdup(where->proc);
	if (where->pid_count)
		f->pids = calloc(where->pid_count, sizeof(*f->pids));
	if (!f->proc || (where->pid_count && !f->pids))
		return -ENOMEM;
	for (size_t i = 0; i < where->pid_count; i++) {
		pid_t pid = files_process_of(where->proc, where->pids[i]);

		if (!files_have_process(f, pid))
			f->pids[f->count++] = pid;
	}
	return 0;
}

/* Appends the file's content, of a long file the first lines. */
static int file_read(int fd, struct buf *text)
{
	char *to = buf_reserve(text, FILE_MAX), *end;
	ssize_t n;

	if (!to)
		return -ENOMEM;
	n = pread_full(fd, to, FILE_MAX, 0);
	if (n < 0)
		return (int)n;
	if (n == FILE_MAX) {
		end = memrchr(to, '\n', (size_t)n);
		n = end ? end - to + 1 : 0;
	}
	text->len += (size_t)n;
	return 0;
}

/* A CPU that comes back, or a zone, has other files: they are opened again. */
static int polled_file_read(struct polled_file *file, struct buf *text)
{
	int r;

	if (file->fd < 0)
		file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0)
		return -errno;
	r = file_read(file->fd, text);
	if (r < 0 && r != -ENOMEM)
		file->fd = close_fd(file->fd);
	return r;
}

/* Pieces of a text become the files of one reading. */
struct reading {
	Traced__Capture__PolledFile *files; /* owned */
	Traced__Capture__PolledFile **list; /* owned */
	size_t *from;			    /* owned; offset of each file's text */
	size_t count;
	uint64_t began_ns;
};

static int reading_begin(struct reading *r, size_t room, struct buf *text)
{
	*r = (struct reading){
		.files = calloc(room + 1, sizeof(*r->files)),
		.list = calloc(room + 1, sizeof(*r->list)),
		.from = calloc(room + 1, sizeof(*r->from)),
		.began_ns = now_ns(CLOCK_BOOTTIME),
	};
	buf_clear(text);
	return r->files && r->list && r->from ? 0 : -ENOMEM;
}

static void reading_deinit(struct reading *r)
{
	free(r->files);
	free(r->list);
	free(r->from);
}

static void reading_add(struct reading *r, uint32_t number, const char *label, size_t from,
			size_t len)
{
	Traced__Capture__PolledFile *file = &r->files[r->count];

	traced__capture__polled_file__init(file);
	file->number = number;
	file->label = (ProtobufCBinaryData){ strlen(label), (uint8_t *)label };
	file->text.len = len;
	r->from[r->count] = from;
	r->list[r->count++] = file;
}

static int reading_pack(struct reading *r, enum poll_source source, struct buf *text,
			struct buf *out)
{
	Traced__Capture__Polls polls = TRACED__CAPTURE__POLLS__INIT;
	Traced__Capture__Poll poll = TRACED__CAPTURE__POLL__INIT;
	uint8_t *to;

	if (!r->count)
		return 0;
	for (size_t i = 0; i < r->count; i++)
		r->files[i].text.data = (uint8_t *)text->data + r->from[i];
	poll.source = (Traced__Capture__Poll__Source)source;
	poll.boot_ns = r->began_ns + (now_ns(CLOCK_BOOTTIME) - r->began_ns) / 2;
	poll.files = r->list;
	poll.n_files = r->count;
	polls.polls = (Traced__Capture__Poll *[]){ &poll };
	polls.n_polls = 1;
	to = (uint8_t *)buf_reserve(out, traced__capture__polls__get_packed_size(&polls));
	if (!to)
		return -ENOMEM;
	out->len += traced__capture__polls__pack(&polls, to);
	return 0;
}

static int files_read_all(struct poll_files *f, struct buf *text, struct buf *out)
{
	struct reading reading;
	int r = reading_begin(&reading, f->count, text);

	for (size_t i = 0; r == 0 && i < f->count; i++) {
		struct polled_file *file = &f->files[i];
		size_t from = text->len;

		r = polled_file_read(file, text);
		if (r == 0 && text->len > from)
			reading_add(&reading, file->number, file->label, from, text->len - from);
		r = r == -ENOMEM ? r : 0;
	}
	if (r == 0)
		r = reading_pack(&reading, f->source, text, out);
	reading_deinit(&reading);
	return r;
}

/* The next process of the pass; 0: no more. */
static pid_t files_next_process(struct poll_files *f)
{
	struct dirent *e;
	uint32_t pid;

	if (f->pids)
		return f->at < f->count ? f->pids[f->at++] : 0;
	if (!f->dir)
		f->dir = opendir(f->proc);
	while (f->dir && (e = readdir(f->dir))) {
		if (!files_number_of(e->d_name, "", &pid))
			continue;
		if (f->at++ < POLL_PROCESSES_MAX)
			return (pid_t)pid;
		f->too_many = true;
		break;
	}
	return 0;
}

static void files_end_pass(struct poll_files *f)
{
	if (f->dir)
		closedir(f->dir);
	f->dir = NULL;
	f->at = 0;
}

/* Keeps of a process's status the lines VmPeak to VmSwap; kernel threads have none. */
static void status_keep_sizes(struct buf *text, size_t from)
{
	static const char first[] = "\nVmPeak:", last[] = "\nVmSwap:";
	char *begin = text->data + from, *end = text->data + text->len;
	char *a = memmem(begin, (size_t)(end - begin), first, strlen(first)), *b;

	b = a ? memmem(a, (size_t)(end - a), last, strlen(last)) : NULL;
	b = b ? memchr(b + 1, '\n', (size_t)(end - b - 1)) : NULL;
	if (!b) {
		text->len = from;
		return;
	}
	memmove(begin, a + 1, (size_t)(b - a));
	text->len = from + (size_t)(b - a);
}

static int process_read(const struct poll_files *f, pid_t pid, struct buf *text)
{
	_cleanup_close_ int fd = -EBADF;
	size_t from = text->len;
	char path[4096];
	int r;

	if (snprintf(path, sizeof(path), "%s/%d/status", f->proc, (int)pid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = file_read(fd, text);
	if (r == 0)
		status_keep_sizes(text, from);
	return r;
}

static int files_read_processes(struct poll_files *f, struct buf *text, struct buf *out)
{
	struct reading reading;
	int r = reading_begin(&reading, POLL_SLICE, text);
	pid_t pid = 1;

	for (size_t i = 0; r == 0 && i < POLL_SLICE && (pid = files_next_process(f)); i++) {
		size_t from = text->len;

		r = process_read(f, pid, text);
		if (r == 0 && text->len > from)
			reading_add(&reading, (uint32_t)pid, "", from, text->len - from);
		/* The process may have ended. */
		r = r == -ENOMEM ? r : 0;
	}
	if (r == 0)
		r = reading_pack(&reading, f->source, text, out);
	reading_deinit(&reading);
	if (pid && r == 0)
		return 1;
	files_end_pass(f);
	return r;
}

int poll_files_read(struct poll_files *f, struct buf *text, struct buf *out)
{
	return f->source == POLL_PROCESS_MEMORY ? files_read_processes(f, text, out)
						: files_read_all(f, text, out);
}

/* Reads each file once, so that a source without any readable file is noticed. */
static int files_try(struct poll_files *f, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int first = 0;

	for (size_t i = 0; i < f->count; i++) {
		int r = polled_file_read(&f->files[i], &text);

		if (r == 0)
			return 0;
		first = first ?: r;
	}
	return error_errno(err, first ?: -ENOENT, "%s", f->files[0].path);
}

int poll_files_open(struct poll_files *ret, enum poll_source source, const struct poll_where *where,
		    struct error *err)
{
	struct poll_files f = { .source = source };
	int r;

	if (source == POLL_PROCESS_MEMORY) {
		r = files_init_processes(&f, where);
	} else {
		r = files_list(&f, where);
		if (r == 0)
			r = files_try(&f, err);
	}
	if (r < 0) {
		poll_files_close(&f);
		return err && !err->code ? error_errno(err, r, "%s", poll_source_name(source)) : r;
	}
	*ret = f;
	return 0;
}

void poll_files_close(struct poll_files *f)
{
	files_end_pass(f);
	for (size_t i = 0; f->files && i < f->count; i++) {
		close_fd(f->files[i].fd);
		free(f->files[i].path);
		free(f->files[i].label);
	}
	free(f->files);
	free(f->proc);
	free(f->pids);
	*f = (struct poll_files){ 0 };
}
