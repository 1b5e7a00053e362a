/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_usual.h"

void maker_usual(struct maker *m)
{
	static const struct maker_task tasks[] = {
		{ 7, 7, "old seven", 1 * S, false },
		{ 50, 50, "shell", 1 * S, false },
		{ 60, 60, "kworker/1:2-events", 1 * S, true },
	};
	static const struct maker_stats start[] = { { .cpu = 0 }, { .cpu = 1 } };
	static const struct maker_stats end[] = {
		{ .cpu = 0, .read = 6 },
		{ .cpu = 1, .read = 4, .overrun = 3, .dropped = 2 },
	};

	maker_head(m);
	maker_stats(m, 0, start, 2);
	maker_tasks(m, 100 * S, 0, tasks, 3);

	page_begin(m, 100 * S);
	event_newtask(m, 102 * S, 50, 70, "shell", 0);
	event_rename(m, 102 * S + 1, 70, "shell", "child");
	event_newtask(m, 102 * S + 2, 70, 71, "child", 0x10000);
	event_newtask(m, 103 * S, 50, 7, "new seven", 0);
	page_end(m, 0);
	maker_flush(m, 0, BUFFER_TASKS, 0);

	page_begin(m, 101 * S);
	event_number(m, 101 * S + 499, 7, 1);
	event_number(m, 101 * S + 500, 50, 2);
	event_number(m, 102 * S, 71, 4);
	page_end(m, 0);
	page_begin(m, 104 * S);
	event_number(m, 104 * S, 7, 6);
	event_print_mark(m, 104 * S + 10 * MS, 71, "hello");
	event_switch(m, 104 * S + 20 * MS, 60, "kworker/1:2", 128, -1, 7, "new seven");
	page_flush(m, 0, 0);

	page_begin(m, 101 * S);
	event_number(m, 101 * S + 500, 0, 3);
	page_end(m, 0);
	page_begin(m, 103 * S);
	event_number(m, 103 * S, 99, 5);
	event_number(m, 105 * S, 70, 7);
	event_print_mark(m, 105 * S, 71, "B|70|work \"here\"\\\x01\xff\xc3\xa4");
	page_flush(m, 2, 1);
	maker_stats(m, 2, end, 2);
	maker_end(m);
}
