/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/syscall_name.h"

#include <stddef.h>
#include <string.h>
#if HAVE_SECCOMP
#include <seccomp.h>
#endif

/* Some machines have another name in libseccomp. */
uint32_t syscall_table(const char *machine)
{
#if HAVE_SECCOMP
	if (machine[0] == 'i' && machine[1] && !strcmp(machine + 2, "86"))
		machine = "x86";
	else if (!strncmp(machine, "arm", 3))
		machine = "arm";
	return seccomp_arch_resolve_name(machine);
#else
	(void)machine;
	return 0;
#endif
}

char *syscall_name(uint32_t table, uint64_t nr)
{
#if HAVE_SECCOMP
	return table && nr <= INT32_MAX ? seccomp_syscall_resolve_num_arch(table, (int)nr) : NULL;
#else
	(void)table;
	(void)nr;
	return NULL;
#endif
}
