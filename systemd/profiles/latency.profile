# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = Delays from wakeup to CPU: scheduling, interrupts, timers, idle states
events = sched:sched_switch sched:sched_waking sched:sched_wakeup
  sched:sched_wakeup_new sched:sched_migrate_task
  irq:irq_handler_entry irq:irq_handler_exit irq:softirq_entry irq:softirq_exit
  timer:hrtimer_expire_entry timer:hrtimer_expire_exit
optional = preemptirq:* power:cpu_idle
  timer:timer_expire_entry timer:timer_expire_exit
