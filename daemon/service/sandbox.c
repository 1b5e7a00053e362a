/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if HAVE_SECCOMP
#include <seccomp.h>
#endif

#include "base/account.h"
#include "base/landlock.h"

/* Below nobody, as whom file servers and others run: they could send the exporter signals. */
#define UNUSED_UID_MAX 65533
#define UNUSED_UID_MIN 65000
/* Not the group traced, which may connect to the daemon's socket. */
#define NOGROUP 65534

uid_t sandbox_find_user(void)
{
	char *name;
	uid_t uid;

	if (account_user("traced", &uid) == 0 && uid)
		return uid;
	for (uid = UNUSED_UID_MAX; uid > UNUSED_UID_MIN && (name = account_name(uid)); uid--)
		free(name);
	return uid;
}

static int sandbox_drop_capabilities(struct error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capset, &header, data) < 0)
		return error_errno(err, -errno, "capset");
	return 0;
}

static int sandbox_drop_identity(const struct sandbox *s, struct error *err)
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

static int sandbox_limit(int resource, rlim_t value, struct error *err)
{
	struct rlimit old, new = { .rlim_cur = value, .rlim_max = value };

	if (getrlimit(resource, &old) == 0 && old.rlim_max != RLIM_INFINITY && old.rlim_max < value)
		new.rlim_cur = new.rlim_max = old.rlim_max;
	if (setrlimit(resource, &new) < 0)
		return error_errno(err, -errno, "setrlimit");
	return 0;
}

static int sandbox_limit_resources(const struct sandbox *s, struct error *err)
{
	int r = sandbox_limit(RLIMIT_CORE, 0, err);

	if (r >= 0 && s->file_max)
		r = sandbox_limit(RLIMIT_FSIZE, s->file_max, err);
	if (r >= 0 && s->memory && !SANDBOX_SANITIZED)
		r = sandbox_limit(RLIMIT_AS, s->memory, err);
	if (r >= 0 && s->cpu_s)
		r = sandbox_limit(RLIMIT_CPU, s->cpu_s, err);
	/*
	 * Last: the steps above need new descriptors. Open ones stay usable; a closed one cannot
	 * be replaced. Under this limit poll() fails, select() works.
	 */
	if (r >= 0)
		r = sandbox_limit(RLIMIT_NOFILE, s->files, err);
	return r;
}

#if HAVE_SECCOMP

/* Names, not numbers: 32-bit machines have other calls for some. */
static const char *const allowed_calls[] = {
	/* use of open descriptors */
	"read", "readv", "pread64", "preadv", "write", "writev", "pwrite64", "pwritev", "lseek",
	"_llseek", "fstat", "fstat64", "newfstatat", "statx", "fstatfs", "fstatfs64", "close",
	"ftruncate", "ftruncate64", "fallocate", "poll", "ppoll", "ppoll_time64", "select",
	"_newselect", "pselect6", "pselect6_time64", "fcntl", "fcntl64", "sync_file_range",
	"sync_file_range2", "arm_sync_file_range",
	/* messages on the follow socket */
	"recvfrom", "recvmsg", "recv", "sendto", "sendmsg", "send",
	/* memory and threads */
	"brk", "munmap", "mremap", "madvise", "futex", "futex_time64", "set_robust_list", "rseq",
	"sched_getaffinity", "sched_yield", "exit", "exit_group", "restart_syscall",
	/* signals, time, and itself */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn", "sigaltstack",
	"clock_gettime", "clock_gettime64", "clock_nanosleep", "clock_nanosleep_time64",
	"nanosleep", "gettimeofday", "getrandom", "getpid", "gettid", "getrusage", "sysinfo"
};

static int sandbox_allow(scmp_filter_ctx ctx, const char *name, unsigned count,
			 const struct scmp_arg_cmp *args)
{
	int number = seccomp_syscall_resolve_name(name);

	/* Negative: not on this machine, or unknown to this libseccomp. */
	return number < 0 ? 0 : seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, number, count, args);
}

static int sandbox_add_rules(scmp_filter_ctx ctx, bool reads)
{
	const struct scmp_arg_cmp reading =
		SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
	const struct scmp_arg_cmp no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	const struct scmp_arg_cmp thread = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD);
	const struct scmp_arg_cmp itself = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid());
	const struct scmp_arg_cmp name = SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME);
	const struct scmp_arg_cmp caller = SCMP_A0(SCMP_CMP_EQ, 0);
	int r = 0;

	for (size_t i = 0; !r && i < ARRAY_SIZE(allowed_calls); i++)
		r = sandbox_allow(ctx, allowed_calls[i], 0, NULL);
	if (!r)
		r = sandbox_allow(ctx, "mmap", 1, &no_code);
	if (!r)
		r = sandbox_allow(ctx, "mmap2", 1, &no_code);
	if (!r)
		r = sandbox_allow(ctx, "mprotect", 1, &no_code);
	if (!r && reads)
		r = sandbox_allow(ctx, "openat", 1, &reading);
	/*
	 * Permit clone for threads only. clone3 is refused: a filter cannot see its flags, and
	 * glibc falls back to clone.
	 */
	if (!r)
		r = sandbox_allow(ctx, "clone", 1, &thread);
	if (!r && seccomp_syscall_resolve_name("clone3") >= 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS),
				     seccomp_syscall_resolve_name("clone3"), 0);
	/* abort() sends itself a signal. */
	if (!r)
		r = sandbox_allow(ctx, "tgkill", 1, &itself);
	if (!r)
		r = sandbox_allow(ctx, "prctl", 1, &name);
	/* A thread may choose its own CPUs only. */
	if (!r)
		r = sandbox_allow(ctx, "sched_setaffinity", 1, &caller);
	return r;
}

/*
 * The system call filter permits reading and writing open descriptors, memory and threads. Calls
 * that create a descriptor, a process or executable memory, or that look at other processes, fail
 * with EPERM. It is irreversible, for this thread and the threads that it creates.
 */
static int sandbox_filter(bool reads, struct error *err)
{
	scmp_filter_ctx ctx;
	int r;

	/* The kernel (or an emulator of processes) has no seccomp. */
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		return 0;
	ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return error_errno(err, -ENOMEM, "system call filter");
	r = sandbox_add_rules(ctx, reads);
	if (!r)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r ? error_errno(err, r, "system call filter") : 0;
}

#else

static int sandbox_filter(bool reads _unused_, struct error *err _unused_)
{
	return 0;
}

#endif

int sandbox_enter(const struct sandbox *s, struct error *err)
{
	int r;

	if (s->drop) {
		r = sandbox_drop_identity(s, err);
		if (r < 0)
			return r;
	}
	r = sandbox_drop_capabilities(err);
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
			return error_set(err, -ESRCH, "its parent is gone");
	}
	r = landlock_enter(&(struct landlock_rules){ .may_read = s->reads }, err);
	if (r < 0)
		return r;
	r = sandbox_limit_resources(s, err);
	/* A sanitizer's report needs more calls than decoding does. */
	return r < 0 || SANDBOX_SANITIZED ? r : sandbox_filter(s->reads, err);
}
