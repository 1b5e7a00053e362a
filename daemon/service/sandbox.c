/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/sandbox.h"

#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/account.h"
#include "base/landlock.h"
#include "daemon/service/filter.h"

#define NOBODY 65534
/* Not the group traced, which may connect to the daemon's socket. */
#define NOGROUP 65534

uid_t sandbox_find_user(void)
{
	uid_t uid;

	if ((account_user("traced", &uid) == 0 || account_user("nobody", &uid) == 0) && uid)
		return uid;
	return NOBODY;
}

static int drop_capabilities(struct error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capset, &header, data) < 0)
		return error_errno(err, -errno, "capset");
	return 0;
}

static int drop_identity(const struct sandbox *s, struct error *err)
{
	/* Numbers above the kernel's last capability return EINVAL. */
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return error_errno(err, -errno, "capability bounding set");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return error_errno(err, -errno, "ambient capabilities");
	if (setgroups(0, NULL) < 0 || setresgid(NOGROUP, NOGROUP, NOGROUP) < 0 ||
	    setresuid(s->uid, s->uid, s->uid) < 0)
		return error_errno(err, -errno, "can't become user %u", s->uid);
	if (setresuid((uid_t)-1, 0, (uid_t)-1) == 0)
		return error_set(err, -EPERM, "cannot drop root's rights");
	return 0;
}

static int limit(int resource, rlim_t value, struct error *err)
{
	struct rlimit old, new = { .rlim_cur = value, .rlim_max = value };

	if (getrlimit(resource, &old) == 0 && old.rlim_max != RLIM_INFINITY && old.rlim_max < value)
		new.rlim_cur = new.rlim_max = old.rlim_max;
	if (setrlimit(resource, &new) < 0)
		return error_errno(err, -errno, "setrlimit");
	return 0;
}

static int limit_resources(const struct sandbox *s, struct error *err)
{
	int r = limit(RLIMIT_CORE, 0, err);

	if (r >= 0 && s->file_max)
		r = limit(RLIMIT_FSIZE, s->file_max, err);
	if (r >= 0 && s->memory && !SANDBOX_SANITIZED)
		r = limit(RLIMIT_AS, s->memory, err);
	if (r >= 0 && s->cpu_s)
		r = limit(RLIMIT_CPU, s->cpu_s, err);
	/*
	 * Last: the steps above need new descriptors. Open ones stay usable; a closed one cannot
	 * be replaced. Under this limit poll() fails, select() works.
	 */
	if (r >= 0)
		r = limit(RLIMIT_NOFILE, 0, err);
	return r;
}

int sandbox_enter(const struct sandbox *s, struct error *err)
{
	int r;

	if (s->drop) {
		r = drop_identity(s, err);
		if (r < 0)
			return r;
	}
	r = drop_capabilities(err);
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_errno(err, -errno, "no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return error_errno(err, -errno, "dumpable");
	/* Changing the user cleared the parent death signal that was set before exec. */
	if (s->parent) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
			return error_errno(err, -errno, "parent death signal");
		if (getppid() != s->parent)
			return error_set(err, -ESRCH, "the daemon is gone");
	}
	r = landlock_enter(&(struct landlock_rules){ 0 }, err);
	if (r < 0)
		return r;
	r = limit_resources(s, err);
	/* A sanitizer's report needs more calls than decoding does. */
	return r < 0 || SANDBOX_SANITIZED ? r : filter_enter(err);
}
