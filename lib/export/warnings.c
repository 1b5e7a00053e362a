/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/warnings.h"

#include <inttypes.h>

int warn_of_rings(struct stream_index *index, const struct mark_rings_sum *sum, uint64_t bound_max)
{
	int r = 0;

	index->incomplete |= sum->damaged > 0;
	if (sum->lost)
		r = stream_index_warn(
			index, "applications dropped %" PRIu64 " marks: their rings were full",
			sum->lost);
	if (r == 0 && sum->damaged)
		r = stream_index_warn(index, "%" PRIu64 " chunks of marks are damaged",
				      sum->damaged);
	if (r == 0 && sum->garbled)
		r = stream_index_warn(index,
				      "%" PRIu64
				      " chunks of marks make no sense from some place on: "
				      "a program wrote something else there",
				      sum->garbled);
	if (r == 0 && sum->impossible)
		r = stream_index_warn(index,
				      "%" PRIu64
				      " marks are left out: they say that they were made "
				      "after the recording's end",
				      sum->impossible);
	if (r == 0 && sum->untied)
		r = stream_index_warn(
			index,
			"the times of marks of %" PRIu64
			" threads are taken as they are: nothing ties their clock to the "
			"trace clock '%s'",
			sum->untied, index->info.header->trace_clock);
	if (r == 0 && sum->bound > bound_max)
		r = stream_index_warn(
			index,
			"applications' marks are tied to the trace only within %" PRIu64
			" microseconds",
			(sum->bound + 999) / 1000);
	if (r == 0 && sum->labels_refused)
		r = stream_index_warn(index,
				      "names of marks are missing %" PRIu64
				      " times: programs never told them, or there were too many",
				      sum->labels_refused);
	return r;
}

int warn_of_samples(struct stream_index *index, const struct sample_feed_sum *sum)
{
	int r = 0;

	index->incomplete |= sum->samples.damaged > 0;
	if (sum->samples.lost)
		r = stream_index_warn(index,
				      "%" PRIu64 " records of samples were lost: their rings were "
				      "full",
				      sum->samples.lost);
	if (r == 0 && sum->samples.throttled)
		r = stream_index_warn(index,
				      "the kernel held samples back %" PRIu64
				      " times, as they took too long: a lower rate is exact",
				      sum->samples.throttled);
	if (r == 0 && sum->samples.damaged)
		r = stream_index_warn(index, "%" PRIu64 " chunks of samples are damaged",
				      sum->samples.damaged);
	if (r == 0 && sum->untied)
		r = stream_index_warn(index,
				      "the times of samples are taken as they are: nothing ties "
				      "their clock to the trace clock '%s'",
				      index->info.header->trace_clock);
	if (r == 0 && sum->cut + sum->samples.refused)
		r = stream_index_warn(index, "there are more stacks, or mappings of programs, than "
					     "are taken: some stacks are cut");
	return r;
}
