/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/filter.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#if HAVE_SECCOMP
#include <seccomp.h>

/* Names, not numbers: 32-bit machines have other calls for some. */
static const char *const allowed[] = {
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

static int allow(scmp_filter_ctx ctx, const char *name, unsigned count,
		 const struct scmp_arg_cmp *args)
{
	int number = seccomp_syscall_resolve_name(name);

	/* Negative: not on this machine, or unknown to this libseccomp. */
	return number < 0 ? 0 : seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, number, count, args);
}

static int add_rules(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	const struct scmp_arg_cmp thread = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD);
	const struct scmp_arg_cmp itself = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid());
	const struct scmp_arg_cmp name = SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME);
	const struct scmp_arg_cmp caller = SCMP_A0(SCMP_CMP_EQ, 0);
	int r = 0;

	for (size_t i = 0; !r && i < ARRAY_SIZE(allowed); i++)
		r = allow(ctx, allowed[i], 0, NULL);
	if (!r)
		r = allow(ctx, "mmap", 1, &no_code);
	if (!r)
		r = allow(ctx, "mmap2", 1, &no_code);
	if (!r)
		r = allow(ctx, "mprotect", 1, &no_code);
	/*
	 * Permit clone for threads only. clone3 is refused: a filter cannot see its flags, and
	 * glibc falls back to clone.
	 */
	if (!r)
		r = allow(ctx, "clone", 1, &thread);
	if (!r && seccomp_syscall_resolve_name("clone3") >= 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS),
				     seccomp_syscall_resolve_name("clone3"), 0);
	/* abort() sends itself a signal. */
	if (!r)
		r = allow(ctx, "tgkill", 1, &itself);
	if (!r)
		r = allow(ctx, "prctl", 1, &name);
	/* A thread may choose its own CPUs only. */
	if (!r)
		r = allow(ctx, "sched_setaffinity", 1, &caller);
	return r;
}

int filter_enter(struct error *err)
{
	scmp_filter_ctx ctx;
	int r;

	/* The kernel (or an emulator of processes) has no seccomp. */
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		return 0;
	ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return error_errno(err, -ENOMEM, "system call filter");
	r = add_rules(ctx);
	if (!r)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r ? error_errno(err, r, "system call filter") : 0;
}

#else

int filter_enter(struct error *err _unused_)
{
	return 0;
}

#endif
