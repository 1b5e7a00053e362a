# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = Functions of the kernel behind files, as they are called
tracer = function
functions = vfs_* ksys_*
