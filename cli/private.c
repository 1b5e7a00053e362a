/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/vec.h"
#include "daemon/capture/capture.h"
#include "daemon/capture/plan/journal.h"
#include "daemon/service/config.h"

#define COMMAND_LINE_MAX (16U << 10)

const char *private_recording_name(const struct private_recording *p)
{
	const char *pid = p->instance + strlen(CAPTURE_INSTANCE_PREFIX);

	return pid + strcspn(pid, "-") + 1;
}

/* Reads a process's command line. private: whether one of its words is --private. */
static int private_read_command(const char *proc, pid_t pid, struct buf *out, bool *private)
{
	char path[512];
	int r;

	snprintf(path, sizeof(path), "%s/%d/cmdline", proc, (int)pid);
	buf_clear(out);
	r = read_file_at(AT_FDCWD, path, COMMAND_LINE_MAX, out);
	if (r < 0 || !out->len)
		return r < 0 ? r : -ENOENT;
	*private = memmem(out->data, out->len, "\0--private", sizeof("\0--private"));
	for (size_t i = 0; i + 1 < out->len; i++) {
		if (!out->data[i])
			out->data[i] = ' ';
	}
	return buf_string(out) ? 0 : -ENOMEM;
}

static pid_t private_parent(const char *proc, pid_t pid)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *line;
	char path[512];

	snprintf(path, sizeof(path), "%s/%d/status", proc, (int)pid);
	if (read_file_at(AT_FDCWD, path, COMMAND_LINE_MAX, &text) < 0 || !buf_string(&text))
		return 0;
	line = strstr(text.data, "\nPPid:");
	return line ? (pid_t)strtol(line + strlen("\nPPid:"), NULL, 10) : 0;
}

static int private_recordings_add(struct private_recordings *l, const char *journal,
				  const char *proc)
{
	_cleanup_buf_ struct buf command = BUF_INIT;
	struct private_recording found = { .daemon = capture_instance_owner(journal) };
	size_t len = strlen(journal), suffix = strlen(JOURNAL_SUFFIX);
	bool private = false, unused;
	pid_t parent;

	if (!found.daemon || len <= suffix || strcmp(journal + len - suffix, JOURNAL_SUFFIX) != 0 ||
	    private_read_command(proc, found.daemon, &command, &private) < 0 || !private)
		return 0;
	parent = private_parent(proc, found.daemon);
	if (private_read_command(proc, parent, &command, &unused) < 0)
		buf_clear(&command);
	if (vec_reserve_exact(l->items, l->count, 1) < 0)
		return -ENOMEM;
	found.instance = strndup(journal, len - suffix);
	found.command = strdup(command.len ? command.data : "");
	if (!found.instance || !found.command) {
		free(found.instance);
		free(found.command);
		return -ENOMEM;
	}
	l->items[l->count++] = found;
	return 0;
}

int private_recordings_find(const char *state_dir, const char *proc, struct private_recordings *ret)
{
	DIR *dir = opendir(state_dir);
	const struct dirent *entry;
	int r = 0;

	*ret = (struct private_recordings){ 0 };
	if (!dir)
		return errno == ENOMEM ? -ENOMEM : 0;
	while (r == 0 && (entry = readdir(dir)))
		r = private_recordings_add(ret, entry->d_name, proc);
	closedir(dir);
	return r;
}

int private_recordings_find_usual(struct private_recordings *ret)
{
	_cleanup_config_ struct config config = { 0 };
	int r = config_load_usual(&config);

	*ret = (struct private_recordings){ 0 };
	return r < 0 ? r : private_recordings_find(config.state_dir, "/proc", ret);
}

static int private_check_folder(const char *folder, struct error *err)
{
	struct stat st;

	if (stat(folder, &st) < 0)
		return errno == ENOENT ? 0 : error_errno(err, -errno, "%s", folder);
	if (st.st_uid == 0 && !(st.st_mode & 022))
		return 0;
	error_set(err, -EPERM, "%s is not root's alone: private recordings get no marks", folder);
	return error_hint(err, "chown root %s; chmod go-w %s", folder, folder);
}

/* tracefs is opened for the first recording. */
static int private_mark_all(const struct private_recordings *l, const char *name, const char *text,
			    struct error *err)
{
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	int count = 0, r = 0;

	for (size_t i = 0; i < l->count; i++) {
		const char *own = private_recording_name(&l->items[i]);
		_cleanup_error_ struct error why = ERROR_INIT;
		int e = 0;

		if (name && strcmp(name, own) != 0)
			continue;
		if (!fs)
			e = tracefs_open(&fs, NULL, &why);
		if (e == 0)
			e = capture_mark_other(fs, l->items[i].instance, text, &why);
		/* One that begins or ends now takes no marks. */
		if (e < 0 && e != -ENODATA && e != -ENOENT)
			r = error_move(err, &why);
		count += e == 0;
	}
	return count ?: r;
}

int private_recordings_mark(const char *name, const char *text, struct error *err)
{
	_cleanup_(private_recordings_deinit) struct private_recordings list = { 0 };
	_cleanup_config_ struct config config = { 0 };
	int r = config_load_usual(&config);

	if (r < 0)
		return error_errno(err, r, "configuration");
	r = private_check_folder(config.state_dir, err);
	if (r == 0)
		r = private_recordings_find(config.state_dir, "/proc", &list);
	return r < 0 ? r : private_mark_all(&list, name, text, err);
}

void private_recordings_deinit(struct private_recordings *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free(l->items[i].instance);
		free(l->items[i].command);
	}
	free(l->items);
	*l = (struct private_recordings){ 0 };
}
