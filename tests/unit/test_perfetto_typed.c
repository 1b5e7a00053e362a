/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares perfetto_generic.txt with the events of the kernels in tests/data that stay generic in
 * Perfetto traces, and with what typed messages lack. PERFETTO_GENERIC=FILE writes a new list.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "fixture.h"
#include "formats/perfetto/messages.h"
#include "formats/perfetto/op.h"

#define LINES_MAX 8192

struct typed_list {
	char *lines[LINES_MAX];
	size_t count;
};

static void typed_list_add(struct typed_list *l, const char *reason, const struct event *desc,
			   const char *field)
{
	assert_true(l->count < LINES_MAX);
	assert_true(asprintf(&l->lines[l->count++], "%s\t%s:%s%s%s", reason, desc->system,
			     desc->name, *field ? "." : "", field) > 0);
}

static void typed_add_format(void *userdata, const char *system, const char *text, size_t len)
{
	assert_int_equal(event_table_add(userdata, system, text, len, NULL), 0);
}

static const struct pf_op *typed_op_of(const struct pf_event *e, const struct field *f)
{
	for (size_t i = 0; i < e->op_count; i++)
		if (e->ops[i].offset == f->offset)
			return &e->ops[i];
	return NULL;
}

static void typed_list_fields(struct typed_list *l, const struct pf_event *e)
{
	const struct pf_message *m = pf_message_find(e->desc->system, e->desc->name);

	assert_non_null(m);
	for (size_t i = 0; i < e->desc->field_count; i++) {
		const struct field *f = &e->desc->fields[i];
		const struct pf_op *op = typed_op_of(e, f);

		if (!pf_message_find_field(m, f->name))
			typed_list_add(l, "not in the message", e->desc, f->name);
		else if (!op)
			typed_list_add(l, "of another type", e->desc, f->name);
		else if (op->kind != PF_FUNCTION && event_symbol_kind(e->desc, f))
			typed_list_add(l, "a number, not a symbol", e->desc, f->name);
	}
}

/* Systems without any message are not listed: nobody expects their events to be typed. */
static bool typed_system_has_messages(const struct pf_schema *s, const char *system)
{
	for (unsigned id = 0; id < s->events_end; id++)
		if (s->events[id] && !s->events[id]->generic &&
		    !strcmp(s->events[id]->desc->system, system))
			return true;
	return false;
}

static const char *typed_why_generic(const struct event *desc, const struct pf_message *m)
{
	bool any = false;

	for (size_t i = 0; i < desc->field_count; i++) {
		if (!pf_message_find_field(m, desc->fields[i].name))
			continue;
		any = true;
		if (event_symbol_kind(desc, &desc->fields[i]))
			return "generic: the message has no symbols";
	}
	return any ? "generic: the message has another type"
		   : "generic: the message is another event's";
}

static void typed_list_kernel(struct typed_list *l, const char *kernel)
{
	const struct event_table_env env = { .word_size = 8 };
	_cleanup_(pf_schema_freep) struct pf_schema *s = NULL;
	struct event_table *t;

	assert_int_equal(event_table_new(&t, &env), 0);
	fixture_each_format(kernel, typed_add_format, t);
	assert_int_equal(event_table_seal(t, NULL), 0);
	assert_int_equal(pf_schema_new(&s, &(struct pf_schema_env){ .table = t, .word_size = 8 }),
			 0);
	for (unsigned id = 0; id < s->events_end; id++) {
		const struct pf_event *e = s->events[id];
		const struct pf_message *m =
			e ? pf_message_find(e->desc->system, e->desc->name) : NULL;

		if (!e || !strcmp(e->desc->system, "syscalls"))
			continue;
		if (!e->generic)
			typed_list_fields(l, e);
		else if (m)
			typed_list_add(l, typed_why_generic(e->desc, m), e->desc, "");
		else if (typed_system_has_messages(s, e->desc->system))
			typed_list_add(l, "generic: no message", e->desc, "");
	}
	s = pf_schema_free(s);
	event_table_free(t);
}

static int typed_compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "REASON:\n" and its events, each in the kernels' union once. */
static void typed_list_put(struct typed_list *l, struct buf *out)
{
	const char *reason = "";

	qsort(l->lines, l->count, sizeof(*l->lines), typed_compare_lines);
	for (size_t i = 0; i < l->count; i++) {
		char *tab = strchr(l->lines[i], '\t');

		if (i && !strcmp(l->lines[i], l->lines[i - 1]))
			continue;
		if (strncmp(reason, l->lines[i], (size_t)(tab - l->lines[i]) + 1) != 0)
			buf_printf(out, "%s# %.*s\n", *reason ? "\n" : "", (int)(tab - l->lines[i]),
				   l->lines[i]);
		reason = l->lines[i];
		buf_printf(out, "%s\n", tab + 1);
	}
	for (size_t i = 0; i < l->count; i++)
		free(l->lines[i]);
}

static void what_stays_generic_is_listed(void **state _unused_)
{
	static struct typed_list list;
	_cleanup_buf_ struct buf text = BUF_INIT, expected = BUF_INIT;
	const char *update = getenv("PERFETTO_GENERIC");
	DIR *dir = opendir(TEST_DATA);
	unsigned kernels = 0;

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));) {
		char path[512];

		snprintf(path, sizeof(path), TEST_DATA "/%s/formats.txt.gz", e->d_name);
		if (access(path, R_OK) < 0)
			continue;
		typed_list_kernel(&list, e->d_name);
		kernels++;
	}
	closedir(dir);
	assert_true(kernels >= 4);
	buf_puts(&text, "# SPDX-License-Identifier: LGPL-2.1-or-later\n");
	typed_list_put(&list, &text);
	if (update) {
		FILE *f = fopen(update, "w");

		assert_non_null(f);
		assert_int_equal(fwrite(text.data, 1, text.len, f), text.len);
		fclose(f);
		return;
	}
	fixture_read_gz(PERFETTO_LISTS "/perfetto_generic.txt", &expected);
	assert_int_equal(text.len, expected.len);
	assert_memory_equal(text.data, expected.data, text.len);
}

/* Upstream's numbers; readers make slices or counters of these. No kernel in tests/data has some.
 */
static void messages_have_upstreams_numbers(void **state _unused_)
{
	static const struct {
		const char *name;
		unsigned number;
	} messages[] = {
		{ "binder_transaction", 50 },
		{ "block_io_done", 547 },
		{ "block_io_start", 546 },
		{ "clock_disable", 15 },
		{ "clock_enable", 14 },
		{ "clock_set_rate", 16 },
		{ "cma_alloc_start", 465 },
		{ "devfreq_frequency", 541 },
		{ "drm_sched_job_run", 594 },
		{ "drm_vblank_event", 409 },
		{ "f2fs_iostat", 419 },
		{ "gpu_mem_total", 340 },
		{ "local_timer_entry", 559 },
		{ "local_timer_exit", 560 },
		{ "mm_shrink_slab_end", 444 },
		{ "mm_shrink_slab_start", 443 },
		{ "ufshcd_command", 406 },
		{ "v4l2_qbuf", 422 },
		{ "vb2_v4l2_dqbuf", 427 },
		{ "virtio_gpu_cmd_queue", 468 },
		{ "mm_vmscan_memcg_reclaim_begin", 607 },
		{ "mm_vmscan_memcg_reclaim_end", 608 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		const struct pf_message *m = pf_message_find("", messages[i].name);

		assert_non_null(m);
		assert_int_equal(m->number, messages[i].number);
	}
	/* Events of one name, of several systems. */
	assert_int_equal(pf_message_find("mdss", "tracing_mark_write")->number, 80);
	assert_int_equal(pf_message_find("sde", "tracing_mark_write")->number, 333);
	assert_int_equal(pf_message_find("kgsl", "gpu_frequency")->number, 509);
	assert_int_equal(pf_message_find("power", "gpu_frequency")->number, 332);
	assert_int_equal(pf_message_find("systrace", "0")->number, 331);
	assert_int_equal(pf_message_find("synthetic", "suspend_resume_minimal")->number, 481);
	assert_null(pf_message_find("synthetic", "sched_switch"));
	assert_null(pf_message_find("own", "tracing_mark_write"));
	assert_null(pf_message_find("", "generic"));
	assert_null(pf_message_find("", "binder"));
	assert_null(pf_message_find("", ""));
}

/* perfetto_left.txt: SYSTEM:EVENT in each line that is neither empty nor a comment. */
static void what_is_left_has_no_message(void **state _unused_)
{
	_cleanup_buf_ struct buf list = BUF_INIT;
	unsigned count = 0;

	fixture_read_gz(PERFETTO_LISTS "/perfetto_left.txt", &list);
	for (char *line, *rest = (char *)(uintptr_t)buf_string(&list);
	     (line = strsep(&rest, "\n"));) {
		char *event = strchr(line, ':');

		if (!*line || *line == '#')
			continue;
		assert_non_null(event);
		*event++ = '\0';
		assert_null(pf_message_find(line, event));
		count++;
	}
	assert_true(count > 50);
}

static const struct pf_message *typed_find_number(unsigned number)
{
	for (size_t i = 0; i < pf_message_count; i++)
		if (pf_messages[i].number == number)
			return &pf_messages[i];
	return NULL;
}

/* Names of messages here that begin with the event's system, unlike upstream's. */
static const char *typed_name_here(const char *upstream)
{
	static const char *const renamed[][2] = {
		{ "tracing_mark_write", "mdss_tracing_mark_write" },
		{ "zero", "systrace_0" },
		{ "rss_stat_throttled", "synthetic_rss_stat_throttled" },
		{ "suspend_resume_minimal", "synthetic_suspend_resume_minimal" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
		if (!strcmp(renamed[i][0], upstream))
			return renamed[i][1];
	return upstream;
}

/* perfetto_left.txt has the event with this upstream name, EVENT or SYSTEM_EVENT. */
static bool typed_left_has(const char *left, const char *name)
{
	size_t len = strlen(name);

	for (; *left; left += strcspn(left, "\n") + 1) {
		size_t line = strcspn(left, "\n"), system = strcspn(left, ":");

		if (system >= line)
			continue;
		if (line - system - 1 == len && !memcmp(left + system + 1, name, len))
			return true;
		if (line == len && !memcmp(left, name, system) && name[system] == '_' &&
		    !memcmp(left + system + 1, name + system + 1, len - system - 1))
			return true;
	}
	return false;
}

/* perfetto_upstream.txt: NAME NUMBER in each line that is no comment. */
static void each_event_of_upstream_is_typed_or_left(void **state _unused_)
{
	_cleanup_buf_ struct buf list = BUF_INIT, left = BUF_INIT;
	unsigned typed = 0;

	fixture_read_gz(PERFETTO_LISTS "/perfetto_upstream.txt", &list);
	fixture_read_gz(PERFETTO_LISTS "/perfetto_left.txt", &left);
	buf_string(&left);
	for (char *line, *rest = (char *)(uintptr_t)buf_string(&list);
	     (line = strsep(&rest, "\n"));) {
		const char *name = strsep(&line, " ");
		const struct pf_message *m;

		/* The generic message is for events of any name: the table lacks it. */
		if (!*name || *name == '#' || !strcmp(name, "generic"))
			continue;
		assert_non_null(line);
		m = typed_find_number((unsigned)strtoul(line, NULL, 10));
		if (m)
			assert_string_equal(pf_message_names + m->name, typed_name_here(name));
		else if (!typed_left_has((const char *)left.data, name))
			fail_msg("%s is neither typed nor in perfetto_left.txt", name);
		typed += m != NULL;
	}
	assert_int_equal(typed, pf_message_count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_have_upstreams_numbers),
		cmocka_unit_test(what_stays_generic_is_listed),
		cmocka_unit_test(what_is_left_has_no_message),
		cmocka_unit_test(each_event_of_upstream_is_typed_or_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
