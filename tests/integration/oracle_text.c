/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's own text against ours. Every event of the machine is enabled in an instance of our
 * own, some load runs, tracing stops. The instance's `trace` is read; the same buffer is drained
 * raw and exported as text; both must be equal, line by line and byte for byte. For a name that the
 * kernel forgot ("<...>") ours may be anything. Events that differ must be listed in
 * unknowable.txt.
 *
 * oracle_text [-v] UNKNOWABLE [LOAD...]
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "daemon/capture/capture.h"
#include "formats/formats.h"
#include "oracle_load.h"

#define TYPES_MAX 4096
#define TIDS_MAX (1 << 22) /* PID_MAX_LIMIT of 64-bit machines */

struct type {
	char name[96];
	uint64_t equal, different;
	bool listed;
};

struct oracle {
	struct tracefs *fs;
	char dir[64], instance[64];
	struct type types[TYPES_MAX];
	size_t type_count;
	uint64_t events, equal, excused_names, later_names, wrong_names, out_of_order;
	char *unknowable;
	bool living[TIDS_MAX]; /* when tracing had stopped */
	bool verbose;
};

struct kernel_text {
	char *data;
	size_t len, pos;
};

static struct type *find_type(struct oracle *o, const char *name, size_t len)
{
	char pattern[100];
	struct type *t;

	len = MIN(len, sizeof(t->name) - 1);
	for (size_t i = 0; i < o->type_count; i++)
		if (!strncmp(o->types[i].name, name, len) && !o->types[i].name[len])
			return &o->types[i];
	if (o->type_count == TYPES_MAX)
		return &o->types[0];
	t = &o->types[o->type_count++];
	memcpy(t->name, name, len);
	snprintf(pattern, sizeof(pattern), "\n%s:", t->name);
	t->listed = strstr(o->unknowable, pattern) != NULL;
	return t;
}

/* One event: its line, and the lines after it without a prefix of their own. */
struct item {
	const char *line, *rest, *details; /* the whole text; from "-PID" on; after the time */
	size_t len;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* " [001] " after "-PID": the columns after it always have the same format. */
static const char *find_cpu(const char *p, const char *end)
{
	for (; p + 7 < end; p++) {
		const char *q = p;

		if (p[0] != ' ' || p[1] != '[' || !is_digit(p[2]))
			continue;
		for (q = p + 2; q < end && is_digit(*q); q++)
			;
		if (q + 1 < end && q[0] == ']' && q[1] == ' ')
			return p;
	}
	return NULL;
}

static bool parse_line(const char *line, const char *end, struct item *ret)
{
	const char *cpu = find_cpu(line, end), *p = cpu;
	const char *time;

	if (!cpu)
		return false;
	while (p > line && (p[-1] == ' ' || is_digit(p[-1])))
		p--;
	if (p == line || p[-1] != '-')
		return false;
	time = memmem(cpu, (size_t)(end - cpu), ": ", 2);
	if (!time)
		return false;
	ret->rest = p - 1;
	ret->details = time + 2;
	return true;
}

static const char *line_end(const struct kernel_text *t, size_t from)
{
	const char *nl = memchr(t->data + from, '\n', t->len - from);

	return nl ? nl : t->data + t->len;
}

static bool next_item(struct kernel_text *t, struct item *ret)
{
	const char *end;

	for (;; t->pos = (size_t)(end + 1 - t->data)) {
		if (t->pos >= t->len)
			return false;
		end = line_end(t, t->pos);
		ret->line = t->data + t->pos;
		if (parse_line(ret->line, end, ret))
			break;
	}
	/* Lines of a stack, or of a text with newlines. */
	for (;;) {
		struct item ignored;
		size_t next = (size_t)(end + 1 - t->data);
		const char *next_end;

		t->pos = next;
		if (next >= t->len)
			break;
		next_end = line_end(t, next);
		if (parse_line(t->data + next, next_end, &ignored))
			break;
		end = next_end;
	}
	ret->len = (size_t)(end - ret->line);
	return true;
}

static size_t type_length(const struct item *i)
{
	return strcspn(i->details, ":( \n");
}

static void show(const struct item *kernel, const struct item *ours)
{
	printf("  kernel: %.*s\n  ours:   %.*s\n", (int)kernel->len, kernel->line, (int)ours->len,
	       ours->line);
}

static void note_threads(struct oracle *o, const char *process)
{
	char path[64];
	DIR *threads;
	struct dirent *e;

	snprintf(path, sizeof(path), "/proc/%s/task", process);
	threads = opendir(path);
	while (threads && (e = readdir(threads))) {
		long tid = strtol(e->d_name, NULL, 10);

		if (tid > 0 && tid < TIDS_MAX)
			o->living[tid] = true;
	}
	if (threads)
		closedir(threads);
}

static void note_living(struct oracle *o)
{
	DIR *processes = opendir("/proc");
	struct dirent *e;

	while (processes && (e = readdir(processes)))
		if (is_digit(*e->d_name) && strlen(e->d_name) < 12)
			note_threads(o, e->d_name);
	if (processes)
		closedir(processes);
}

/*
 * A task that was renamed after tracing had stopped: the kernel still knows the older name. If it
 * has ended since, its last name can't be known.
 */
static bool is_current_name(const struct oracle *o, const struct item *i)
{
	long tid = strtol(i->rest + 1, NULL, 10);
	const char *name = i->line;
	char path[64], comm[32] = "";
	_cleanup_fclose_ FILE *f = NULL;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%ld/comm", tid);
	f = fopen(path, "re");
	if (!f || !fgets(comm, sizeof(comm), f))
		return tid > 0 && tid < TIDS_MAX && o->living[tid];
	comm[strcspn(comm, "\n")] = '\0';
	while (name < i->rest && *name == ' ')
		name++;
	len = (size_t)(i->rest - name);
	return len == strlen(comm) && !memcmp(name, comm, len);
}

static void compare(struct oracle *o, const struct item *kernel, const struct item *ours)
{
	size_t a = kernel->len - (size_t)(kernel->rest - kernel->line);
	size_t b = ours->len - (size_t)(ours->rest - ours->line);
	size_t name_a = (size_t)(kernel->rest - kernel->line);
	size_t name_b = (size_t)(ours->rest - ours->line);
	struct type *t = find_type(o, kernel->details, type_length(kernel));

	o->events++;
	if (a != b || memcmp(kernel->rest, ours->rest, a)) {
		t->different++;
		if (o->verbose || (!t->listed && t->different <= 3))
			show(kernel, ours);
		return;
	}
	t->equal++;
	o->equal++;
	if (name_a == name_b && !memcmp(kernel->line, ours->line, name_a))
		return;
	if (name_a >= 5 && !memcmp(kernel->rest - 5, "<...>", 5)) {
		o->excused_names++;
	} else if (is_current_name(o, ours)) {
		o->later_names++;
	} else if (o->wrong_names++ < 3) {
		show(kernel, ours);
	}
}

static bool same_place(const struct item *a, const struct item *b)
{
	size_t n = (size_t)(a->details - a->rest);

	return n == (size_t)(b->details - b->rest) && !memcmp(a->rest, b->rest, n);
}

static int compare_texts(struct oracle *o, struct kernel_text *kernel, struct kernel_text *ours)
{
	struct item a, b;
	bool more_a, more_b;

	for (;;) {
		more_a = next_item(kernel, &a);
		more_b = next_item(ours, &b);
		if (!more_a || !more_b)
			break;
		if (!same_place(&a, &b) && o->out_of_order++ < 3)
			show(&a, &b);
		compare(o, &a, &b);
	}
	if (more_a != more_b) {
		printf("after %llu events one text ends: %s has more\n",
		       (unsigned long long)o->events, more_a ? "the kernel" : "ours");
		return -EBADMSG;
	}
	return 0;
}

static int map_file(const char *path, struct kernel_text *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0 || !st.st_size)
		return -ENODATA;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = (struct kernel_text){ .data = p, .len = (size_t)st.st_size };
	return 0;
}

static int copy_file(int dirfd, const char *name, const char *to)
{
	_cleanup_close_ int in = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static char buffer[1 << 20];
	ssize_t n;

	if (in < 0 || out < 0)
		return -errno;
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)n) != n)
			return -EIO;
	return n < 0 ? -errno : 0;
}

static int configure(struct oracle *o, int dir)
{
	static const struct {
		const char *file, *value;
	} settings[] = {
		{ "tracing_on", "0" },	      { "trace_clock", "boot" },
		{ "options/overwrite", "0" }, { "buffer_size_kb", "24000" },
		{ "events/enable", "1" },
	};
	_cleanup_buf_ struct buf cmdline = BUF_INIT;

	/*
	 * 6.1 prints no strings at all with hash-ptr off: it expands the format in the buffer from
	 * which it reads. no_hash_pointers has the same effect.
	 */
	if (read_file_at(AT_FDCWD, "/proc/cmdline", 1 << 16, &cmdline) == 0 &&
	    !(buf_string(&cmdline) && strstr(cmdline.data, "no_hash_pointers"))) {
		int r = tracefs_write(dir, "options/hash-ptr", "0");

		if (r < 0)
			return r;
	}
	(void)o;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		int r = tracefs_write(dir, settings[i].file, settings[i].value);

		if (r < 0) {
			printf("can't set %s: %s\n", settings[i].file, strerror(-r));
			return r;
		}
	}
	return 0;
}

static bool is_wanted(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

static void run_loads(struct oracle *o, char **names, int dir)
{
	const struct oracle_load *loads;
	char work[80];
	size_t count;

	loads = oracle_loads(&count);
	snprintf(work, sizeof(work), "%s/work", o->dir);
	mkdir(work, 0700);
	for (size_t i = 0; i < count; i++)
		if (is_wanted(loads[i].name, names))
			loads[i].run(work, dir);
	rmdir(work);
}

/* All loads share one recording: turning every event on and off takes far longer than the loads. */
static int record(struct oracle *o, char **names)
{
	_cleanup_close_ int dir = tracefs_open_instance(o->fs, o->instance);
	char path[80];
	int r;

	if (dir < 0)
		return dir;
	r = configure(o, dir);
	if (r < 0)
		return r;
	tracefs_write(dir, "tracing_on", "1");
	run_loads(o, names, dir);
	usleep(20000);
	tracefs_write(dir, "tracing_on", "0");
	tracefs_write(dir, "events/enable", "0");
	note_living(o);
	snprintf(path, sizeof(path), "%s/trace", o->dir);
	return copy_file(dir, "trace", path);
}

static int extract(struct oracle *o, struct error *err)
{
	const struct capture_env env = { .tracefs = o->fs, .proc = "/proc", .state_dir = o->dir };
	const struct export_options options = { .format = "txt", .raw_addresses = true };
	_cleanup_close_ int stream = -EBADF, out = -EBADF;
	_cleanup_export_result_ struct export_result result = { 0 };
	struct capture_stats stats;
	char path[80];
	int r;

	snprintf(path, sizeof(path), "%s/stream", o->dir);
	stream = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	snprintf(path, sizeof(path), "%s/text", o->dir);
	out = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	r = capture_extract(&env, o->instance, stream, &stats, err);
	if (r < 0)
		return r;
	lseek(stream, 0, SEEK_SET);
	r = export_stream(stream, out, &options, &result, err);
	for (size_t i = 0; r == 0 && i < result.fallback_count; i++)
		printf("fallback %s: %s\n", result.fallbacks[i].event, result.fallbacks[i].why);
	return r;
}

static int run(struct oracle *o, char **names)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct kernel_text kernel = { 0 }, ours = { 0 };
	char path[80];
	int r = tracefs_make_instance(o->fs, o->instance);

	if (r < 0)
		return r;
	r = record(o, names);
	if (r == 0)
		r = extract(o, &err);
	tracefs_remove_instance(o->fs, o->instance);
	if (r < 0) {
		printf("%s\n", err.message ? err.message : strerror(-r));
		return r;
	}
	snprintf(path, sizeof(path), "%s/trace", o->dir);
	r = map_file(path, &kernel);
	snprintf(path, sizeof(path), "%s/text", o->dir);
	if (r == 0)
		r = map_file(path, &ours);
	if (r == 0)
		r = compare_texts(o, &kernel, &ours);
	munmap(kernel.data, kernel.len);
	munmap(ours.data, ours.len);
	return r;
}

static bool report(const struct oracle *o)
{
	size_t equal = 0, listed = 0, wrong = 0;

	for (size_t i = 0; i < o->type_count; i++) {
		const struct type *t = &o->types[i];

		equal += !t->different;
		listed += t->different && t->listed;
		wrong += t->different && !t->listed;
		if (t->different)
			printf("%s %s: %llu of %llu differ\n", t->listed ? "unknowable" : "WRONG",
			       t->name, (unsigned long long)t->different,
			       (unsigned long long)(t->different + t->equal));
	}
	printf("%llu of %llu events equal, %zu of %zu event types (%zu unknowable, %zu wrong); "
	       "%llu names the kernel forgot, %llu changed later, %llu wrong; "
	       "%llu out of order\n",
	       (unsigned long long)o->equal, (unsigned long long)o->events, equal, o->type_count,
	       listed, wrong, (unsigned long long)o->excused_names,
	       (unsigned long long)o->later_names, (unsigned long long)o->wrong_names,
	       (unsigned long long)o->out_of_order);
	return !wrong && !o->wrong_names && !o->out_of_order && o->events;
}

static void clean_up(const struct oracle *o)
{
	static const char *const files[] = { "trace", "stream", "text" };
	char path[80];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", o->dir, files[i]);
		unlink(path);
	}
	rmdir(o->dir);
}

int main(int argc, char **argv)
{
	static struct oracle o;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf unknowable = BUF_INIT;
	int r, first = 1;

	if (argc > 1 && !strcmp(argv[1], "-v")) {
		o.verbose = true;
		first++;
	}
	if (argc <= first)
		return 2;
	if (tracefs_open(&o.fs, NULL, &err) < 0 || geteuid() != 0) {
		printf("skipped: %s\n", err.message ? err.message : "not root");
		return 77;
	}
	buf_putc(&unknowable, '\n');
	r = read_file_at(AT_FDCWD, argv[first++], 1 << 20, &unknowable);
	o.unknowable = buf_string(&unknowable);
	snprintf(o.dir, sizeof(o.dir), "/var/tmp/traced-oracle-XXXXXX");
	if (r < 0 || !o.unknowable || !mkdtemp(o.dir))
		return 1;
	snprintf(o.instance, sizeof(o.instance), "traced-oracle-%d", (int)getpid());
	r = run(&o, argv + first);
	clean_up(&o);
	tracefs_free(o.fs);
	return report(&o) && r == 0 ? 0 : 1;
}
