/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file of the Trace Event Format, merged into both formats. */
#include "fuzz.h"

#include <stdlib.h>

#include "formats/json/mark.h"
#include "formats/perfetto/marks.h"
#include "marks/trace_file.h"

static void give(struct mark_sort *marks)
{
	_cleanup_buf_ struct buf json = BUF_INIT, packets = BUF_INIT;
	struct task_table *tasks;
	struct json_marks j = { 0 };
	struct pf_marks p;
	struct mark m;

	if (task_table_new(&tasks) < 0)
		return;
	pf_marks_init(&p, PF_CLOCK_BOOT, tasks);
	while (mark_sort_next(marks, &m, NULL) > 0) {
		if (m.phase != PHASE_CLOCK_SYNC && m.dur > INT64_MAX - m.ts && m.ts <= INT64_MAX)
			abort();
		json_put_mark(&j, &json, &m);
		if (pf_marks_put(&p, &m, &packets) < 0)
			break;
	}
	json_frames_put(&j.frames, &json);
	json_marks_deinit(&j);
	pf_marks_put_names(&p, true, &packets);
	pf_marks_restart(&p);
	pf_marks_deinit(&p);
	task_table_free(tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scratch scratch = { .fd = -EBADF };
	struct trace_file file;

	if (size > 1 << 20)
		return 0;
	trace_file_read(&file, input_file(data, size), 1, &scratch, NULL);
	if (file.marks)
		give(file.marks);
	trace_file_deinit(&file);
	return 0;
}
