/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of reports. */
#include <string.h>

#include "report/kind.h"

extern const struct report_kind report_cpus, report_delays, report_sched, report_timehist,
	report_runq, report_offcpu, report_blame, report_irq, report_syscalls, report_block,
	report_net, report_workqueue, report_timer, report_power, report_noise, report_timerlat,
	report_functions, report_marks, report_critpath, report_hist, report_counts;

const struct report_kind *const report_kinds[] = {
	&report_cpus,	  &report_delays,    &report_sched, &report_timehist, &report_runq,
	&report_offcpu,	  &report_blame,     &report_irq,   &report_syscalls, &report_block,
	&report_net,	  &report_workqueue, &report_timer, &report_power,    &report_noise,
	&report_timerlat, &report_functions, &report_marks, &report_critpath, &report_hist,
	&report_counts,
};
const size_t report_kind_count = ARRAY_SIZE(report_kinds);

const struct report_about *report_all(size_t *ret_count)
{
	static struct report_about all[ARRAY_SIZE(report_kinds)];

	for (size_t i = 0; i < ARRAY_SIZE(report_kinds); i++)
		all[i] = report_kinds[i]->about;
	*ret_count = ARRAY_SIZE(report_kinds);
	return all;
}
