/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report in JSON, added to itself and written in each form. */
#include "fuzz.h"

#include <stdlib.h>
#include <unistd.h>

#include "report/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(report_merge_freep) struct report_merge *m = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	int fd = input_file(data, size), r;

	if (report_merge_new(&m) < 0)
		return 0;
	r = report_merge_add(m, fd, "a", &err);
	if (r < 0 && !err.message)
		abort();
	/* A report that could be added can be added again. */
	if (r == 0 && (lseek(fd, 0, SEEK_SET) < 0 || report_merge_add(m, fd, "b", &err) < 0))
		abort();
	for (enum report_form form = REPORT_TEXT; form <= REPORT_CSV && r == 0; form++) {
		_cleanup_buf_ struct buf out = BUF_INIT;

		report_merge_write(m, &(struct report_options){ .form = form }, &out, NULL);
	}
	return 0;
}
