/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions' types of the kernel and of its modules: a file each in /sys/kernel/btf. */
#pragma once

#include "daemon/capture/names/btf.h"

#define KERNEL_TYPES_DIR "/sys/kernel/btf"
#define KERNEL_TYPES_OWN "vmlinux"

struct module_types {
	char *name; /* NULL: the kernel itself */
	struct buf btf;
	struct btf_functions *functions;
};

struct kernel_types {
	struct module_types *items; /* owned; the kernel comes first */
	size_t count, cap;
};
void kernel_types_deinit(struct kernel_types *t);

/*
 * Reads them all. 0: *ret is empty if the kernel has no types; a module whose types can't be read
 * is left out. -ENOMEM.
 */
int kernel_types_read(struct kernel_types *ret, const char *dir);
/* The module's; NULL as module: the kernel's own. NULL: unknown. */
const struct btf_functions *kernel_types_of(const struct kernel_types *t, const char *module);
