/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/tracefs.h"

#include <dirent.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/io.h"
#include "base/vec.h"
#include "daemon/capture/tracefs/feature.h"
#include "daemon/capture/tracefs/setting.h"

#define TRACEFS_MAGIC 0x74726163
#define FILE_MAX (64U << 20)

struct tracefs {
	int root;
	char *path;
	struct buf available;	/* event list as the kernel printed it */
	struct buf events_text; /* the same, each name NUL-terminated */
	const char **events;	/* point into events_text */
	size_t event_count;
};

static bool is_tracefs(const char *path)
{
	struct statfs st;

	return statfs(path, &st) == 0 && (uint32_t)st.f_type == TRACEFS_MAGIC;
}

/* Finds where tracefs is mounted, or returns NULL. Does not trigger debugfs's automount. */
static char *find_mounted(void)
{
	struct mntent *m;
	char *path = NULL;
	FILE *mounts;

	if (is_tracefs("/sys/kernel/tracing"))
		return strdup("/sys/kernel/tracing");
	mounts = setmntent("/proc/self/mounts", "re");
	if (!mounts)
		return NULL;
	while (!path && (m = getmntent(mounts)))
		if (strcmp(m->mnt_type, "tracefs") == 0)
			path = strdup(m->mnt_dir);
	endmntent(mounts);
	return path;
}

/* Makes a mount that is in no mount table. Returns its root's descriptor. */
static int mount_detached(void)
{
	_cleanup_close_ int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return -errno;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
			  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

static int tracefs_open_root(struct tracefs *fs, const char *root, struct error *err)
{
	if (root)
		fs->path = strdup(root);
	else
		fs->path = find_mounted();
	if (fs->path) {
		fs->root = open(fs->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fs->root < 0)
			return error_errno(err, -errno, "cannot open %s", fs->path);
		return 0;
	}
	if (root)
		return error_set(err, -ENOMEM, "out of memory");

	fs->root = mount_detached();
	if (fs->root >= 0) {
		fs->path = strdup("tracefs (mounted for this process alone)");
		return fs->path ? 0 : error_set(err, -ENOMEM, "out of memory");
	}
	/* debugfs mounts tracefs automatically on access. */
	if (fs->root != -ENODEV && is_tracefs("/sys/kernel/debug/tracing/.")) {
		fs->path = strdup("/sys/kernel/debug/tracing");
		fs->root = open("/sys/kernel/debug/tracing", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fs->root >= 0)
			return 0;
		fs->root = -errno;
	}
	if (fs->root == -ENODEV) {
		error_set(err, -ENODEV, "this kernel has no tracefs");
		return feature_hint(err, FEATURE_PART, "tracefs", NULL);
	}
	if (fs->root == -EPERM || fs->root == -EACCES) {
		error_set(err, fs->root, "tracefs is not mounted, and this user may not mount it");
		return error_hint(err, "run it as root, or let root run: mount -t tracefs nodev "
				       "/sys/kernel/tracing");
	}
	error_errno(err, fs->root, "tracefs is not mounted, and mounting it failed");
	return error_hint(err, "try: mount -t tracefs nodev /sys/kernel/tracing");
}

int tracefs_open(struct tracefs **ret, const char *root, struct error *err)
{
	_cleanup_(tracefs_freep) struct tracefs *fs = calloc(1, sizeof(*fs));
	int r;

	if (!fs)
		return error_set(err, -ENOMEM, "out of memory");
	fs->root = -EBADF;
	r = tracefs_open_root(fs, root, err);
	if (r < 0)
		return r;
	if (faccessat(fs->root, "events", R_OK | X_OK, AT_EACCESS) < 0) {
		struct statfs st;

		r = -errno;
		if (r == -ENOENT && fstatfs(fs->root, &st) == 0 &&
		    (uint32_t)st.f_type == TRACEFS_MAGIC) {
			error_set(err, -EPERM, "tracefs is empty: the kernel refuses all tracing");
			return error_hint(
				err,
				"it may be locked down (confidentiality): see 'tracectl doctor'");
		}
		if (r == -ENOENT) {
			error_set(err, -ENODEV, "there is no tracefs at %s", fs->path);
			return error_hint(err, "mount -t tracefs nodev /sys/kernel/tracing");
		}
		error_errno(err, r, "cannot read %s", fs->path);
		return error_hint(err, "run it as root; by default only root may use tracefs");
	}
	*ret = TAKE_PTR(fs);
	return 0;
}

int tracefs_dup(struct tracefs **ret, const struct tracefs *fs)
{
	_cleanup_(tracefs_freep) struct tracefs *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	copy->root = fcntl(fs->root, F_DUPFD_CLOEXEC, 3);
	if (copy->root < 0)
		return -errno;
	copy->path = strdup(fs->path);
	if (!copy->path)
		return -ENOMEM;
	*ret = TAKE_PTR(copy);
	return 0;
}

struct tracefs *tracefs_free(struct tracefs *fs)
{
	if (!fs)
		return NULL;
	close_fd(fs->root);
	buf_deinit(&fs->available);
	buf_deinit(&fs->events_text);
	free(fs->events);
	free(fs->path);
	free(fs);
	return NULL;
}

const char *tracefs_path(const struct tracefs *fs)
{
	return fs->path;
}

dev_t tracefs_device(const struct tracefs *fs)
{
	struct stat st;

	return fstat(fs->root, &st) < 0 ? 0 : st.st_dev;
}

int tracefs_root(const struct tracefs *fs)
{
	return fs->root;
}

bool tracefs_has_event(const struct tracefs *fs, const char *event)
{
	char path[512];

	return (size_t)snprintf(path, sizeof(path), "events/%s", event) < sizeof(path) &&
	       faccessat(fs->root, path, F_OK, 0) == 0;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int tracefs_split_events(struct tracefs *fs, const struct buf *available)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char **events;
	size_t lines = 1, n = 0;
	char *save = NULL;

	buf_append(&text, available->data, available->len);
	if (!buf_string(&text))
		return -ENOMEM;
	for (size_t i = 0; i < text.len; i++)
		lines += text.data[i] == '\n';
	events = calloc(lines, sizeof(*events));
	if (!events)
		return -ENOMEM;
	for (char *p = strtok_r(text.data, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
		if (strchr(p, ':'))
			events[n++] = p;
	qsort(events, n, sizeof(*events), compare_strings);
	free(fs->events);
	buf_deinit(&fs->events_text);
	fs->events = events;
	fs->event_count = n;
	fs->events_text = text;
	text = BUF_INIT;
	return 0;
}

int tracefs_unreadable(struct error *err, int code, const char *file)
{
	error_errno(err, code, "cannot read tracefs's %s", file);
	if (code == -EPERM && geteuid() == 0)
		error_hint(
			err,
			"the kernel may be locked down (confidentiality): see 'tracectl doctor'");
	return code;
}

int tracefs_events(struct tracefs *fs, const char *const **ret, size_t *ret_count,
		   struct error *err)
{
	_cleanup_buf_ struct buf available = BUF_INIT;
	int r = tracefs_read(fs->root, "available_events", &available);

	if (r == 0 && (!fs->events || available.len != fs->available.len ||
		       memcmp(available.data, fs->available.data, available.len) != 0)) {
		r = tracefs_split_events(fs, &available);
		if (r == 0) {
			buf_deinit(&fs->available);
			fs->available = available;
			available = BUF_INIT;
		}
	}
	if (r < 0)
		return tracefs_unreadable(err, r, "available_events");
	*ret = fs->events;
	*ret_count = fs->event_count;
	return 0;
}

int tracefs_open_file(int dirfd, int flags, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	int n, fd;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = openat(dirfd, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tracefs_open_instance(const struct tracefs *fs, const char *instance)
{
	if (!instance)
		return tracefs_open_file(fs->root, O_PATH | O_DIRECTORY, ".");
	if (!*instance || *instance == '.' || strchr(instance, '/'))
		return -ENOENT;
	return tracefs_open_file(fs->root, O_PATH | O_DIRECTORY, "instances/%s", instance);
}

int tracefs_make_instance(const struct tracefs *fs, const char *instance)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof(path), "instances/%s", instance) >= sizeof(path))
		return -ENAMETOOLONG;
	return mkdirat(fs->root, path, 0700) < 0 ? -errno : 0;
}

int tracefs_try_remove_instance(const struct tracefs *fs, const char *instance)
{
	char path[512];

	if (!*instance || *instance == '.' || strchr(instance, '/'))
		return -EINVAL;
	if ((size_t)snprintf(path, sizeof(path), "instances/%s", instance) >= sizeof(path))
		return -ENAMETOOLONG;
	if (unlinkat(fs->root, path, AT_REMOVEDIR) == 0)
		return 0;
	return errno == ENODEV ? -ENOENT : -errno;
}

/* Memory of all CPUs that is allocated or freed at once: some 10 ms. */
#define RESIZE_SLICE_KB (64U << 10)

static uint64_t tracefs_slice_kb(void)
{
	return MAX(RESIZE_SLICE_KB / (uint64_t)sysconf(_SC_NPROCESSORS_CONF), UINT64_C(64));
}

/* The size of each CPU's buffer; 0: it differs, or is unknown. */
static uint64_t tracefs_buffer_kb(int dirfd)
{
	_cleanup_buf_ struct buf text = BUF_INIT, size = BUF_INIT;

	if (tracefs_read(dirfd, "buffer_size_kb", &text) < 0 ||
	    setting_text("buffer_size_kb", buf_string(&text), &size) < 0 || !buf_string(&size))
		return 0;
	return strtoull(size.data, NULL, 10);
}

int tracefs_resize_buffers(int dirfd, uint64_t kb, uint64_t until_ns)
{
	uint64_t slice = tracefs_slice_kb(), now = tracefs_buffer_kb(dirfd);
	char text[32];

	while (now && now != kb) {
		uint64_t step = MIN(now < kb ? kb - now : now - kb, slice);
		int r;

		now = now < kb ? now + step : now - step;
		snprintf(text, sizeof(text), "%llu", (unsigned long long)now);
		r = tracefs_write(dirfd, "buffer_size_kb", text);
		if (r < 0 || now == kb)
			return r;
		if (now_ns(CLOCK_MONOTONIC) >= until_ns)
			return 1;
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)kb);
	return tracefs_write(dirfd, "buffer_size_kb", text);
}

#define REMOVAL_TRIES 200 /* 5 ms each */

/*
 * Programs' writes fail while the ring of an instance that takes copies is resized. Some kernels
 * (6.16 and later) free such an instance while a program still writes into it.
 */
static void tracefs_end_copies(const struct tracefs *fs, const char *instance)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, instance);

	if (dir >= 0)
		tracefs_write(dir, "options/copy_trace_marker", "0");
}

bool tracefs_shrink_instance(const struct tracefs *fs, const char *instance, uint64_t until_ns)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, instance);

	return dir >= 0 && tracefs_buffer_kb(dir) > tracefs_slice_kb() &&
	       tracefs_resize_buffers(dir, tracefs_slice_kb(), until_ns) > 0;
}

/*
 * A splice or poll that has just ended may hold the instance a moment longer, and so may any
 * reader of its files: on a busy machine until it gets a CPU.
 */
int tracefs_remove_instance(const struct tracefs *fs, const char *instance)
{
	const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
	int r;

	tracefs_end_copies(fs, instance);
	tracefs_shrink_instance(fs, instance, UINT64_MAX);
	r = tracefs_try_remove_instance(fs, instance);

	for (int tries = 0; r == -EBUSY && tries < REMOVAL_TRIES; tries++) {
		nanosleep(&pause, NULL);
		r = tracefs_try_remove_instance(fs, instance);
	}
	return r;
}

void tracefs_free_names(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

int tracefs_list_instances(const struct tracefs *fs, char ***ret, size_t *ret_count)
{
	int fd = tracefs_open_file(fs->root, O_RDONLY | O_DIRECTORY, "instances");
	size_t count = 0, cap = 0;
	char **names = NULL;
	struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		close_fd(fd);
		return -errno;
	}
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		if (vec_reserve(names, count, cap, 1) < 0)
			break;
		names[count] = strdup(e->d_name);
		if (!names[count])
			break;
		count++;
	}
	closedir(dir);
	if (e) {
		tracefs_free_names(names, count);
		return -ENOMEM;
	}
	*ret = names;
	*ret_count = count;
	return 0;
}

static int tracefs_write_file(int dirfd, const char *file, int flags, const char *value)
{
	_cleanup_close_ int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC | flags);
	size_t len = strlen(value), done = 0;

	if (fd < 0)
		return -errno;
	/* Write an empty value, too: some files act on the write alone. */
	do {
		ssize_t n = write(fd, value + done, len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && len)
			return -EIO;
		done += n < 0 ? 0 : (size_t)n;
	} while (done < len);
	return 0;
}

int tracefs_write(int dirfd, const char *file, const char *value)
{
	return tracefs_write_file(dirfd, file, O_TRUNC, value);
}

int tracefs_append(int dirfd, const char *file, const char *value)
{
	return tracefs_write_file(dirfd, file, O_APPEND, value);
}

int tracefs_read(int dirfd, const char *file, struct buf *out)
{
	int r = read_file_at(dirfd, file, FILE_MAX, out);

	if (r == 0 && out->len && out->data[out->len - 1] == '\n')
		out->len--;
	return r;
}

int tracefs_read_u64(int dirfd, const char *file, uint64_t *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = tracefs_read(dirfd, file, &text);
	char *s, *end;
	uint64_t v;

	if (r < 0)
		return r;
	s = buf_string(&text);
	if (!s)
		return -ENOMEM;
	errno = 0;
	v = strtoull(s, &end, 10);
	/* An unused buffer reports its size as "7 (expanded: 1408)". */
	if (errno || end == s || (*end && *end != ' ' && *end != '\n'))
		return -EINVAL;
	*ret = v;
	return 0;
}

char *tracefs_last_error(const struct tracefs *fs, const char *instance)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, instance);
	_cleanup_buf_ struct buf log = BUF_INIT;
	const char *last, *next;

	/* A message's first line begins with its time in brackets; the others are indented. */
	if (dir < 0 || tracefs_read(dir, "error_log", &log) < 0 || !buf_string(&log) ||
	    *log.data != '[')
		return NULL;
	for (last = log.data; (next = strstr(last, "\n[")); last = next + 1)
		;
	return strdup(last);
}
