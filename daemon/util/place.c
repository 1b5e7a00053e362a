/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/place.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

bool place_has_unit(void)
{
	/* systemd's own, in its order. */
	static const char *const units[] = {
		"/etc/systemd/system/traced.socket",
		"/run/systemd/system/traced.socket",
		"/usr/local/lib/systemd/system/traced.socket",
		"/usr/lib/systemd/system/traced.socket",
		"/lib/systemd/system/traced.socket",
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!access(units[i], F_OK))
			return true;
	}
	return false;
}

const char *place_start_daemon(void)
{
	return place_has_unit() ? "systemctl start traced.socket" : "start one as root: traced &";
}

char *place_beside(const char *path)
{
	_cleanup_free_ char *folder = NULL;
	char self[PATH_MAX];
	struct stat st;
	ssize_t len;

	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len <= 0)
		return NULL;
	self[len] = '\0';
	*(strrchr(self, '/') ?: self) = '\0';
	if (asprintf(&folder, "%s/%s", self, path) < 0) {
		folder = NULL;
		return NULL;
	}
	return !stat(folder, &st) && S_ISDIR(st.st_mode) ? TAKE_PTR(folder) : NULL;
}
