# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = Hardware interrupts, softirqs, tasklets, work queues, interrupts between CPUs
events = irq:irq_handler_entry irq:irq_handler_exit
  irq:softirq_entry irq:softirq_exit irq:softirq_raise
optional = irq:tasklet_entry irq:tasklet_exit
  workqueue:workqueue_execute_start workqueue:workqueue_execute_end
  ipi:* irq_vectors:*
