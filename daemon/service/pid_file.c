/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/pid_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/io.h"
#include "daemon/service/folder.h"

static int pid_file_refuse(const struct pid_file *p, struct error *err)
{
	char text[16] = "";

	if (pread_full(p->fd, text, sizeof(text) - 1, 0) > 0)
		text[strspn(text, "0123456789")] = '\0';
	return error_set(err, -EBUSY, "another traced runs here: pid %s has %s", *text ? text : "?",
			 p->path);
}

int pid_file_take(struct pid_file *p, const char *folder, struct error *err)
{
	struct pid_file made = PID_FILE_INIT;
	char text[16];
	int r = make_dir(folder, 0755, err);

	if (r < 0)
		return r;
	if (asprintf(&made.path, "%s/traced.pid", folder) < 0)
		return error_errno(err, -ENOMEM, "%s", folder);
	made.fd = open(made.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (made.fd < 0)
		r = error_errno(err, -errno, "%s", made.path);
	else if (flock(made.fd, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? pid_file_refuse(&made, err)
					 : error_errno(err, -errno, "%s", made.path);
	if (r >= 0) {
		snprintf(text, sizeof(text), "%d\n", getpid());
		r = ftruncate(made.fd, 0) < 0 ? -errno : write_full(made.fd, text, strlen(text));
		if (r < 0)
			error_errno(err, r, "%s", made.path);
	}
	if (r < 0) {
		close_fd(made.fd);
		free(made.path);
		return r;
	}
	*p = made;
	return 0;
}

void pid_file_deinit(struct pid_file *p)
{
	if (p->fd < 0)
		return;
	unlink(p->path);
	close_fd(p->fd);
	free(p->path);
	*p = (struct pid_file)PID_FILE_INIT;
}
