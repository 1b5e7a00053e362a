/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/boot_recorder.h"

#include <fcntl.h>
#include <ini.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/meminfo.h"
#include "base/parse.h"
#include "base/vec.h"
#include "daemon/capture/boot_ring.h"
#include "daemon/capture/last_boot.h"
#include "daemon/service/folder.h"
#include "daemon/service/spool.h"
#include "stream/reader.h"

#define STATE_MAX (64U << 10)
/* A session's name has no '+', so none is taken for a recording of a crash. */
#define SPOOL_NAME "0+last-boot"
#define SIZE_DEFAULT (UINT64_C(32) << 20)
/* Less than a sub-buffer for each CPU of a large machine is of no use. */
#define SIZE_MIN (UINT64_C(1) << 20)
/* inih reads 200 characters of a line. */
#define GLOB_MAX 128
#define SIZE_MAX_BYTES (UINT64_C(1) << 40)
/* No program gets memory that a ring has: more than this part of it is hardly meant. */
#define MEMORY_PART 8

void boot_recorder_config_deinit(struct boot_recorder_config *c)
{
	free(c->instance);
	string_list_deinit(&c->events);
	free(c->tracer);
	*c = (struct boot_recorder_config){ 0 };
}

/* '@', '^' and ',' have a meaning in trace_instance=. */
int boot_recorder_check_name(const char *key, const char *name, struct error *err)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_-.");

	if (len && !name[len] && len <= BOOT_RECORDER_NAME_MAX && *name != '.')
		return 0;
	error_set(err, -EINVAL, "%s: '%.100s' is not a name", key, name);
	return error_hint(err, "1 to %d letters, digits, '_', '-' and '.', without '.' first",
			  BOOT_RECORDER_NAME_MAX);
}

int boot_recorder_check_size(const char *key, uint64_t bytes, struct error *err)
{
	if (bytes >= SIZE_MIN && bytes <= SIZE_MAX_BYTES)
		return 0;
	error_set(err, -EINVAL, "%s: a ring has between 1M and 1T", key);
	return error_hint(err, "32M is usual");
}

int boot_recorder_check_memory(const char *key, uint64_t bytes, const char *proc,
			       struct buf *warning, struct error *err)
{
	const uint64_t total = meminfo_total(proc);
	_cleanup_buf_ struct buf has = BUF_INIT;

	if (!total || bytes <= total / MEMORY_PART)
		return 0;
	format_bytes(total, &has);
	if (bytes < total) {
		buf_printf(warning,
			   "%s: the ring takes %" PRIu64 " %% of this machine's memory (%s)", key,
			   bytes * 100 / total, buf_string(&has) ?: "?");
		return 0;
	}
	error_set(err, -EINVAL, "%s: this machine has %s of memory", key, buf_string(&has) ?: "?");
	return error_hint(err, "32M is usual");
}

int boot_recorder_check_event(const char *key, const char *glob, struct error *err)
{
	if (strlen(glob) <= GLOB_MAX &&
	    !glob[strspn(glob, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "0123456789_-.:*?[]!^")])
		return 0;
	error_set(err, -EINVAL, "%s: '%.100s' is no pattern of events' names", key, glob);
	return error_hint(err,
			  "write it as in 'sched', 'sched:sched_switch' or 'irq:softirq_*', "
			  "in up to %d characters",
			  GLOB_MAX);
}

struct config_source {
	struct boot_recorder_config *config;
	struct error why;
	bool no_memory;
};

static bool config_take_name(struct config_source *s, char **field, const char *key,
			     const char *value)
{
	if (boot_recorder_check_name(key, value, &s->why) < 0)
		return false;
	free(*field);
	*field = strdup(value);
	s->no_memory |= !*field;
	return *field != NULL;
}

static bool config_take_size(struct config_source *s, const char *value)
{
	uint64_t bytes;

	if (parse_size(value, &bytes, &s->why) < 0 ||
	    boot_recorder_check_size("size", bytes, &s->why) < 0)
		return false;
	s->config->size = bytes;
	return true;
}

static void config_take_events(struct config_source *s, const char *value)
{
	struct string_list *events = &s->config->events;
	size_t i = events->count;

	s->no_memory |= string_list_add_words(events, value) < 0;
	while (!s->no_memory && i < events->count &&
	       boot_recorder_check_event("events", events->items[i], &s->why) == 0)
		i++;
}

static int config_take(void *userdata, const char *section, const char *key, const char *value)
{
	struct config_source *s = userdata;

	if (s->why.code || s->no_memory)
		return 0;
	if (strcmp(section, "boot-recorder") != 0)
		error_set(&s->why, -EINVAL, "there is only the section [boot-recorder]");
	else if (strcmp(key, "instance") == 0)
		return config_take_name(s, &s->config->instance, key, value);
	else if (strcmp(key, "tracer") == 0)
		return config_take_name(s, &s->config->tracer, key, value);
	else if (strcmp(key, "size") == 0)
		return config_take_size(s, value);
	else if (strcmp(key, "events") == 0)
		config_take_events(s, value);
	else
		error_set(&s->why, -EINVAL,
			  "unknown key '%s'; there are instance, size, events and tracer", key);
	return !s->why.code && !s->no_memory;
}

static int config_explain(const char *path, int line, struct config_source *s, struct error *err)
{
	if (s->no_memory || line < 0)
		return error_errno(err, -ENOMEM, "%s", path);
	if (!s->why.code)
		return error_set(err, -EINVAL, "%s:%d: neither a [section] nor \"key = value\"",
				 path, line);
	error_prefix(&s->why, "%s:%d", path, line);
	return error_move(err, &s->why);
}

int boot_recorder_config_load(struct boot_recorder_config *ret, const char *path, struct error *err)
{
	_cleanup_boot_recorder_config_ struct boot_recorder_config c = { .size = SIZE_DEFAULT };
	struct config_source s = { .config = &c, .why = ERROR_INIT };
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	int line, missing = file ? 0 : -errno;

	c.instance = strdup(BOOT_RECORDER_INSTANCE);
	if (!c.instance)
		return error_errno(err, -ENOMEM, "%s", path);
	if (missing && missing != -ENOENT)
		return error_errno(err, missing, "%s", path);
	line = file ? ini_parse_file(file, config_take, &s) : 0;
	if (line || s.why.code)
		return config_explain(path, line, &s, err);
	*ret = c;
	c = (struct boot_recorder_config){ 0 };
	if (!missing)
		return 0;
	error_set(err, -ENOENT, "the boot recorder is not configured: there is no %s", path);
	return error_hint(err, "tracectl boot-recorder enable --write");
}

int boot_recorder_config_print(const struct boot_recorder_config *c, struct buf *out)
{
	buf_printf(out, "# Written by 'tracectl boot-recorder enable'.\n[boot-recorder]\n");
	buf_printf(out, "instance = %s\nsize = %lluK\n", c->instance,
		   (unsigned long long)(c->size / 1024));
	for (size_t i = 0; i < c->events.count; i++)
		buf_printf(out, "events = %s\n", c->events.items[i]);
	if (c->tracer)
		buf_printf(out, "tracer = %s\n", c->tracer);
	return buf_error(out);
}

void boot_recorder_state_deinit(struct boot_recorder_state *s)
{
	free(s->kernel);
	free(s->saved);
	free(s->begun);
	*s = (struct boot_recorder_state){ 0 };
}

/* Returns a file of procfs without its newline, to be freed; NULL: unreadable. */
static char *read_line_of(const char *proc, const char *file)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[256], *s;

	snprintf(path, sizeof(path), "%s/%s", proc, file);
	if (read_file_at(AT_FDCWD, path, STATE_MAX, &text) < 0 || !buf_string(&text))
		return NULL;
	s = TAKE_PTR(text.data);
	s[strcspn(s, "\n")] = '\0';
	return s;
}

#define BOOT_ID "sys/kernel/random/boot_id"

/* The value in the line "KEY VALUE"; NULL: no such line, or an empty value. */
static const char *state_find(const char *const *lines, size_t count, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < count; i++)
		if (strncmp(lines[i], key, len) == 0 && lines[i][len] == ' ' && lines[i][len + 1])
			return lines[i] + len + 1;
	return NULL;
}

static int state_copy(char **ret, const char *value)
{
	*ret = value ? strdup(value) : NULL;
	return value && !*ret ? -ENOMEM : 0;
}

/* To be freed; NULL: out of memory. */
static char *state_path(const char *spool_dir, const char *instance)
{
	char *path;

	return asprintf(&path, "%s/boot-recorder-%s.state", spool_dir, instance) < 0 ? NULL : path;
}

static int state_read(const char *spool_dir, const char *instance, struct buf *text)
{
	_cleanup_free_ char *path = state_path(spool_dir, instance);

	return path ? read_file_at(AT_FDCWD, path, STATE_MAX, text) : -ENOMEM;
}

static bool saved_has_events(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stream_reader reader;
	struct chunk c;

	if (fd < 0 || stream_reader_init(&reader, fd, NULL) < 0)
		return false;
	while (stream_reader_next(&reader, &c, NULL) > 0)
		if (c.type == CHUNK_SUBBUFS)
			return true;
	return false;
}

int boot_recorder_state_load(struct boot_recorder_state *ret, const char *spool_dir,
			     const char *instance, const char *proc)
{
	_cleanup_boot_recorder_state_ struct boot_recorder_state s = { 0 };
	_cleanup_free_ char *boot = read_line_of(proc, BOOT_ID);
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *lines[8], *found;
	char *save = NULL;
	size_t count = 0;
	int r = state_read(spool_dir, instance, &text);

	*ret = s;
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !buf_string(&text))
		return 0;
	for (char *p = strtok_r(text.data, "\n", &save); p && count < ARRAY_SIZE(lines);
	     p = strtok_r(NULL, "\n", &save))
		lines[count++] = p;
	/* A torn file lacks its last line. */
	if (!state_find(lines, count, "end"))
		return 0;
	found = state_find(lines, count, "boot");
	s.of_this_boot = boot && found && strcmp(boot, found) == 0;
	found = state_find(lines, count, "armed");
	s.armed = found && strcmp(found, "yes") == 0;
	found = state_find(lines, count, "begun");
	if (s.of_this_boot && found) {
		s.of_this_boot = false;
		if (saved_has_events(found) && state_copy(&s.begun, found) < 0)
			return -ENOMEM;
	}
	if (state_copy(&s.kernel, state_find(lines, count, "kernel")) < 0 ||
	    state_copy(&s.saved, state_find(lines, count, "saved")) < 0)
		return -ENOMEM;
	*ret = s;
	s = (struct boot_recorder_state){ 0 };
	return 0;
}

int boot_recorder_state_save(const struct boot_recorder_state *s, const char *spool_dir,
			     const char *instance, const char *proc, struct error *err)
{
	_cleanup_free_ char *boot = read_line_of(proc, BOOT_ID);
	_cleanup_free_ char *kernel = read_line_of(proc, "version");
	_cleanup_free_ char *path = state_path(spool_dir, instance);
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = make_dir(spool_dir, 0700, err);

	if (r < 0)
		return r;
	buf_printf(&text, "boot %s\nkernel %s\narmed %s\nsaved %s\nbegun %s\nend .\n", boot ?: "",
		   kernel ?: "", s->armed ? "yes" : "no", s->saved ?: "", s->begun ?: "");
	r = !path || buf_error(&text) ? -ENOMEM
				      : replace_file(path, text.data, text.len, 0600, true);
	return r < 0 ? error_errno(err, r, "cannot write %s", path ?: "its state") : 0;
}

struct kept {
	char **paths;
	size_t count, cap;
};

static void kept_add(void *userdata, const struct spool_leftover *found)
{
	const char *base = strrchr(found->path, '/');
	const char *dash = base ? strchr(base, '-') : NULL;
	struct kept *k = userdata;
	char *copy;

	if (!dash || strncmp(dash + 1, SPOOL_NAME "-", strlen(SPOOL_NAME "-")) != 0)
		return;
	copy = strdup(found->path);
	if (!copy || vec_push(k->paths, k->count, k->cap, copy) < 0)
		free(copy);
}

static int kept_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names begin with their time. */
static void boot_recorder_forget(const char *dir)
{
	struct kept k = { 0 };

	spool_find_leftovers(dir, kept_add, &k);
	if (k.count)
		qsort(k.paths, k.count, sizeof(*k.paths), kept_compare);
	for (size_t i = 0; i < k.count; i++) {
		if (i + BOOT_RECORDER_KEEP < k.count)
			unlink(k.paths[i]);
		free(k.paths[i]);
	}
	free(k.paths);
}

static int boot_recorder_check_kernel(const struct boot_recorder_state *state, const char *proc,
				      struct error *err)
{
	_cleanup_free_ char *kernel = read_line_of(proc, "version");

	if (!state->kernel || !kernel || strcmp(kernel, state->kernel) == 0)
		return 0;
	error_set(err, -ENOEXEC,
		  "another kernel filled the ring, and this one cannot describe its events: %s",
		  state->kernel);
	return error_hint(err, "start the kernel that crashed, not another one");
}

/*
 * A save that failed may have taken events out of the ring. They are nowhere else, so their file
 * stays. Returns the error's code.
 */
static int boot_recorder_half_saved(struct spool *spool, bool taken, struct error *err)
{
	int r;

	if (taken) {
		r = error_prefix(err,
				 "the events that were taken out of the ring are in %s, the others "
				 "stay in the ring",
				 spool->path);
		spool_deinit(spool);
	} else {
		r = -err->code;
		/* These say that there are none. */
		if (r != -ENODATA && r != -ENOENT && r != -ENOTTY)
			error_prefix(err, "the last boot's events stay in the ring");
		spool_discard(spool);
	}
	return r;
}

/* The file of a killed save, if that left no event in the ring. It may not be on the disk yet. */
static int boot_recorder_find_begun(const struct capture_env *env, const char *instance,
				    const struct boot_recorder_state *state, char **ret)
{
	_cleanup_close_ int fd = -EBADF;
	struct boot_ring_state ring;

	if (!state->begun || boot_ring_look(env, instance, &ring, NULL) < 0 || ring.events)
		return 0;
	fd = open(state->begun, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return state_copy(ret, state->begun);
}

int boot_recorder_save(const struct capture_env *env, const char *instance,
		       const struct boot_recorder_state *state, const struct config *config,
		       char **ret, struct error *err)
{
	struct spool spool = SPOOL_INIT;
	bool taken = false;
	char *begun = NULL;
	int r = boot_recorder_find_begun(env, instance, state, &begun);

	if (r < 0)
		return error_errno(err, r, "%s", state->begun);
	if (begun) {
		*ret = begun;
		return 0;
	}
	r = boot_recorder_check_kernel(state, env->proc, err);
	if (r == 0)
		r = spool_create(&spool, config->spool_dir, SPOOL_NAME, 0, config->min_free, err);
	if (r < 0)
		return error_prefix(err, "the last boot's events stay in the ring");
	r = boot_recorder_state_save(&(struct boot_recorder_state){ .begun = spool.path },
				     config->spool_dir, instance, env->proc, err);
	if (r == 0)
		r = capture_extract_last_boot(env, instance, spool.fd, &taken, err);
	if (r == 0 && fsync(spool.fd) < 0)
		r = error_errno(err, -errno, "%s", spool.path);
	if (r == 0)
		*ret = strdup(spool.path);
	if (r == 0 && !*ret)
		r = error_errno(err, -ENOMEM, "%s", spool.path);
	if (r < 0)
		return boot_recorder_half_saved(&spool, taken, err);
	spool_deinit(&spool);
	boot_recorder_forget(config->spool_dir);
	return 0;
}

static int renew_error_full(const char *path, uint64_t min_free, struct error *err)
{
	_cleanup_buf_ struct buf size = BUF_INIT;

	format_bytes(min_free, &size);
	error_set(err, -ENOSPC, "%s cannot be written again: %s must stay free", path,
		  buf_string(&size) ?: "min_free");
	return error_hint(err, "make room, or set min_free in traced.conf");
}

static int renew_into(const struct capture_env *env, uint64_t min_free, const char *path,
		      const char *next, struct error *err)
{
	_cleanup_close_ int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_close_ int to = -EBADF;
	struct stat locked, now;
	uint64_t room;
	int r;

	/* Another one may write it at this moment, and then has done our work. */
	if (from < 0 || flock(from, LOCK_EX) < 0 || fstat(from, &locked) < 0 ||
	    stat(path, &now) < 0)
		return error_errno(err, -errno, "%s", path);
	if (locked.st_ino != now.st_ino)
		return 0;
	room = spool_room(from, min_free);
	if (room < (uint64_t)locked.st_size)
		return renew_error_full(path, min_free, err);
	unlink(next);
	to = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (to < 0 || flock(to, LOCK_EX) < 0)
		return error_errno(err, -errno, "%s", next);
	r = last_boot_renew(env, from, to, room, err);
	if (r == -ENOBUFS)
		r = renew_error_full(path, min_free, err);
	else if (r < 0)
		error_prefix(err, "%s cannot be written again", path);
	if (r == 0 && (fsync(to) < 0 || rename(next, path) < 0))
		r = error_errno(err, -errno, "%s", next);
	if (r < 0)
		unlink(next);
	return r;
}

int boot_recorder_renew(const struct capture_env *env, const struct config *config,
			const char *path, struct error *err)
{
	_cleanup_free_ char *next = NULL;

	if (asprintf(&next, "%s" SPOOL_UNFINISHED, path) < 0) {
		next = NULL;
		return error_errno(err, -ENOMEM, "%s", path);
	}
	return renew_into(env, config->min_free, path, next, err);
}

int boot_recorder_keep(const struct capture_env *env, const char *instance,
		       const struct boot_recorder_state *state, const struct config *config,
		       char **ret, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	struct boot_ring_state now;

	spool_remove_unfinished(config->spool_dir);
	/* Without a ring there is nothing to lose, and arming says what is missing. */
	if (boot_ring_look(env, instance, &now, &why) < 0 || (!now.events && !state->begun))
		return 0;
	if (boot_recorder_save(env, instance, state, config, ret, err) == 0)
		return 0;
	return error_prefix(err, "this boot is not recorded");
}
