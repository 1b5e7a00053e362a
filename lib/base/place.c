/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

bool place_has_unit(void)
{
	/* systemd's own search order. */
	static const char *const units[] = {
		"/etc/systemd/system/" TRACED_PROGRAM ".socket",
		"/run/systemd/system/" TRACED_PROGRAM ".socket",
		"/usr/local/lib/systemd/system/" TRACED_PROGRAM ".socket",
		"/usr/lib/systemd/system/" TRACED_PROGRAM ".socket",
		"/lib/systemd/system/" TRACED_PROGRAM ".socket",
	};

	/* Like sd_booted(3): systemd may be installed while another init runs. */
	if (access("/run/systemd/system", F_OK) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!access(units[i], F_OK))
			return true;
	}
	return false;
}

char *place_beside(const char *path)
{
	_cleanup_free_ char *folder = NULL;
	char self[PATH_MAX];
	struct stat st;
	ssize_t len;

	/* Others may put files where a removed program (cli/hosts/push.h) was. */
	if (stat("/proc/self/exe", &st) < 0 || !st.st_nlink)
		return NULL;
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len <= 0)
		return NULL;
	self[len] = '\0';
	*(strrchr(self, '/') ?: self) = '\0';
	if (asprintf(&folder, "%s/%s", self, path) < 0) {
		folder = NULL;
		return NULL;
	}
	return realpath(folder, NULL);
}

const char *place_start_daemon(void)
{
	static char text[PATH_MAX + 64];
	_cleanup_free_ char *folder = NULL;

	if (place_has_unit())
		return "systemctl start " TRACED_PROGRAM ".socket";
	folder = place_beside("../daemon");
	snprintf(text, sizeof(text), "start one as root: %s%s" TRACED_PROGRAM " &", folder ?: "",
		 folder ? "/" : "");
	return text;
}
