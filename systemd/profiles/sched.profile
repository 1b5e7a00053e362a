# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = Scheduling: switches, wakeups, migrations, forks, execs and exits of tasks
events = sched:sched_switch sched:sched_waking sched:sched_wakeup_new
  sched:sched_migrate_task sched:sched_process_fork sched:sched_process_exec
  sched:sched_process_exit
optional = task:task_newtask task:task_rename
