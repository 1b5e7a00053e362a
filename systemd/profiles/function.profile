# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = Calls of the kernel's file functions
tracer = function
functions = vfs_* ksys_*
