/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clone(2) without a new stack, and without what glibc does around it. The caller's other threads
 * do not exist in the child: it may only make system calls.
 */
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* flags: without CLONE_VM. Returns the child's pid, 0 in the child, or -1 and errno. */
static inline pid_t raw_clone(unsigned long flags)
{
	/* There the kernel takes the stack first. */
#ifdef __s390__
	return (pid_t)syscall(SYS_clone, 0UL, flags, 0UL, 0UL, 0UL);
#else
	return (pid_t)syscall(SYS_clone, flags, 0UL, 0UL, 0UL, 0UL);
#endif
}
