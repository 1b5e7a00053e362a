# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = Entry and exit of system calls, and scheduler switches
events = sched:sched_switch raw_syscalls:sys_enter raw_syscalls:sys_exit
