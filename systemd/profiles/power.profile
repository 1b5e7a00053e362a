# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = Idle states, frequencies, suspend, thermal and regulator changes
events = sched:sched_switch
optional = power:cpu_idle power:cpu_frequency power:cpu_frequency_limits
  power:suspend_resume power:device_pm_callback_start
  power:device_pm_callback_end power:wakeup_source_activate
  power:wakeup_source_deactivate power:clock_set_rate thermal:* regulator:*
