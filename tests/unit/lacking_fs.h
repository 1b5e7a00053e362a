/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Simulates filesystems that lack some calls: openat(), linkat() and renameat2() are wrapped. */
#pragma once

enum {
	FS_LACKS_NOREPLACE = 1,
	FS_LACKS_LINKS = 2,
	FS_LACKS_TMPFILE = 4,
	FS_LACKS_LIMIT = 8, /* of a name's bytes: vfat counts characters */
};
extern unsigned fs_lacks;
/* A signal that arrives right after the next linkat(); 0: none. */
extern int fs_signal_after_link;
