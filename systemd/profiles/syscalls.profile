# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = System calls as they enter and leave, and who runs
events = sched:sched_switch raw_syscalls:sys_enter raw_syscalls:sys_exit
