/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/landlock.h"

#include <stdint.h>
#include <sys/syscall.h>

/*
 * The build machine's linux/landlock.h may be older than the kernel, so the parts used are defined
 * here.
 */
#define LANDLOCK_CREATE_RULESET_VERSION (1U << 0)
#define LANDLOCK_RULE_PATH_BENEATH 1
#define ACCESS_WRITE_FILE (UINT64_C(1) << 1)
#define ACCESS_READ_FILE (UINT64_C(1) << 2)
#define ACCESS_READ_DIR (UINT64_C(1) << 3)
#define ACCESS_REMOVE_FILE (UINT64_C(1) << 5)
#define ACCESS_MAKE_DIR (UINT64_C(1) << 7)
#define ACCESS_MAKE_REG (UINT64_C(1) << 8)
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)
struct landlock_attr {
	uint64_t handled_access_fs;  /* ABI 1 */
	uint64_t handled_access_net; /* ABI 4 */
	uint64_t scoped;	     /* ABI 6 */
};
struct landlock_path {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

static int landlock_add_folder(int ruleset, int folder, uint64_t handled)
{
	const struct landlock_path rule = {
		.allowed_access = handled & (ACCESS_WRITE_FILE | ACCESS_REMOVE_FILE |
					     ACCESS_MAKE_DIR | ACCESS_MAKE_REG | ACCESS_TRUNCATE),
		.parent_fd = folder,
	};

	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

int landlock_enter(const struct landlock_rules *rules, struct error *err)
{
	static const unsigned fs_bits[] = { 0, 13, 14, 15, 15, 16 }; /* by ABI version */
	struct landlock_attr attr = { 0 };
	_cleanup_close_ int fd = -EBADF;
	size_t size = sizeof(attr.handled_access_fs);
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int r = 0;

	if (abi < 1)
		return 0; /* not in this kernel, or disabled */
	attr.handled_access_fs =
		(UINT64_C(1) << fs_bits[MIN((size_t)abi, ARRAY_SIZE(fs_bits) - 1)]) - 1;
	if (rules->may_read)
		attr.handled_access_fs &= ~(ACCESS_READ_FILE | ACCESS_READ_DIR);
	if (abi >= 4) {
		attr.handled_access_net = rules->may_connect ? 0 : 3; /* TCP bind and connect */
		size = offsetof(struct landlock_attr, scoped);
	}
	if (abi >= 6) {
		attr.scoped = 3; /* abstract sockets and signals */
		size = sizeof(attr);
	}
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return error_errno(err, -errno, "cannot make a Landlock rule set");
	for (size_t i = 0; r == 0 && i < rules->writable_count; i++)
		r = landlock_add_folder(fd, rules->writable[i], attr.handled_access_fs);
	if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	return r < 0 ? error_errno(err, r, "cannot restrict this process by Landlock") : 0;
}
