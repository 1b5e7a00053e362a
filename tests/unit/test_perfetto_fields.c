/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests fields of events in Perfetto traces: devices, strings, a program's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "formats/perfetto/wire.h"
#include "perfetto_run.h"

#define ID_EVENT 300
#define TEXT_ADDRESS UINT64_C(0xffffffff82000000)

/* Exports one event of the given format. */
static void fields_export(struct perfetto_run *r, const char *system, const char *name,
			  const char *fields, const char *print, const void *data, size_t len)
{
	static const char texts[] = "0xffffffff82000000 : \"Start context switch\"\n";
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	maker_symbol_formats(&m);
	maker_format(&m, system, name, ID_EVENT, fields, print);
	assert_int_equal(stream_write(&m.writer, CHUNK_PRINTK, texts, sizeof(texts) - 1), 0);
	page_begin(&m, 100 * S);
	maker_event(&m, 100 * S, ID_EVENT, 7, data, len);
	page_flush(&m, 0, 0);
	perfetto_export(r, m.fd);
	assert_int_equal(r->out.result.events, 1);
}

static const PB(FtraceEvent) * fields_event(const struct perfetto_run *r)
{
	size_t i = perfetto_find(r, DATA(FTRACE_EVENTS), 0);

	assert_true(i < r->trace->n_packet);
	return r->trace->packet[i]->ftrace_events->event[0];
}

static uint64_t fields_varint(const uint8_t **p)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		value |= (uint64_t)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return value;
	}
}

/* The number of a generic event's field. Strings are skipped. */
static uint64_t fields_generic_number(const struct perfetto_run *r, uint64_t field)
{
	const PB(FtraceEvent) *e = fields_event(r);
	const uint8_t *p, *end;

	assert_int_equal(e->base.n_unknown_fields, 1);
	p = e->base.unknown_fields[0].data;
	end = p + e->base.unknown_fields[0].len;
	fields_varint(&p); /* the message's length */
	while (p < end) {
		uint64_t tag = fields_varint(&p), value = fields_varint(&p);

		if (tag >> 3 == field)
			return value;
		if ((tag & 7) == WIRE_BYTES)
			p += value;
	}
	fail_msg("no field %d", (int)field);
	return 0;
}

/* Device 259:70000 in the kernel's form, and as makedev() has it. */
#define DEVICE (259U << 20 | 70000U)
#define MADE_DEVICE (UINT64_C(259) << 8 | (70000U & ~0xffU) << 12 | (70000U & 0xff))

static void a_device_has_one_encoding(void **state _unused_)
{
	static const struct {
		uint32_t dev, value;
	} event = { DEVICE, 5 };
	const char *fields = "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n"
			     "\tfield:int nr_rq;\toffset:12;\tsize:4;\tsigned:1;\n";
	_cleanup_perfetto_run_ struct perfetto_run generic = { 0 }, typed = { 0 };
	_cleanup_perfetto_run_ struct perfetto_run legacy = { .out.options.perfetto.legacy_generic =
								      true };

	fields_export(&generic, "test", "own", fields, "\"%d\", REC->nr_rq", &event, sizeof(event));
	assert_int_equal(fields_generic_number(&generic, 1), MADE_DEVICE);
	assert_int_equal(fields_generic_number(&generic, 2), 5);
	fields_export(&legacy, "test", "own", fields, "\"%d\", REC->nr_rq", &event, sizeof(event));
	assert_int_equal(fields_event(&legacy)->generic->field[0]->uint_value, MADE_DEVICE);
	fields_export(&typed, "block", "block_bio_queue", fields, "\"%d\", REC->nr_rq", &event,
		      sizeof(event));
	assert_int_equal(fields_event(&typed)->block_bio_queue->dev, MADE_DEVICE);
}

/* -16 MiB and the like look like addresses of the kernel. */
#define ODD_NUMBER UINT64_C(0xffffff8800001000)

static void arguments_of_system_calls_are_as_the_program_gave_them(void **state _unused_)
{
	static const struct {
		int64_t id;
		uint64_t args[6];
	} enter = { 9, { ODD_NUMBER, UINT64_MAX, 3, 4, 5, ODD_NUMBER + 1 } };
	static const uint64_t call[] = { 9, ODD_NUMBER, ODD_NUMBER + 2 };
	_cleanup_perfetto_run_ struct perfetto_run typed = { 0 }, generic = { 0 };
	const PB(SysEnterFtraceEvent) * e;

	fields_export(&typed, "raw_syscalls", "sys_enter",
		      "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
		      "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n",
		      "\"NR %ld\", REC->id", &enter, sizeof(enter));
	e = fields_event(&typed)->sys_enter;
	assert_int_equal(e->n_args, 6);
	for (size_t i = 0; i < e->n_args; i++)
		assert_int_equal(e->args[i], enter.args[i]);
	fields_export(&generic, "syscalls", "sys_enter_own",
		      "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
		      "\tfield:const char * name;\toffset:16;\tsize:8;\tsigned:0;\n"
		      "\tfield:unsigned long len;\toffset:24;\tsize:8;\tsigned:0;\n",
		      "\"name: 0x%08lx\", ((unsigned long)(REC->name))", call, sizeof(call));
	assert_int_equal(fields_generic_number(&generic, 2), call[1]);
	assert_int_equal(fields_generic_number(&generic, 3), call[2]);
}

static void a_string_of_the_kernel_is_its_text(void **state _unused_)
{
	static const struct {
		uint64_t action;
		int32_t val;
		uint8_t start;
	} suspend = { TEXT_ADDRESS, 1, 1 };
	static const uint64_t two[] = { TEXT_ADDRESS, 0 };
	static const uint64_t unknown[] = { TEXT_ADDRESS + 1, 0 };
	static const char two_fields[] =
		"\tfield:const char * rcuname;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:const char * msg;\toffset:16;\tsize:8;\tsigned:0;\n";
	static const char two_print[] = "\"%s %s\", REC->rcuname, REC->msg";
	_cleanup_perfetto_run_ struct perfetto_run typed = { 0 }, generic = { 0 }, other = { 0 };
	_cleanup_perfetto_run_ struct perfetto_run legacy = { .out.options.perfetto.legacy_generic =
								      true };

	fields_export(&typed, "power", "suspend_resume",
		      "\tfield:const char * action;\toffset:8;\tsize:8;\tsigned:0;\n"
		      "\tfield:int val;\toffset:16;\tsize:4;\tsigned:1;\n"
		      "\tfield:bool start;\toffset:20;\tsize:1;\tsigned:0;\n",
		      "\"%s[%u]\", REC->action, REC->val", &suspend, sizeof(suspend));
	assert_string_equal(fields_event(&typed)->suspend_resume->action, "Start context switch");
	assert_int_equal(fields_event(&typed)->suspend_resume->start, 1);
	fields_export(&generic, "rcu", "own", two_fields, two_print, two, sizeof(two));
	assert_true(perfetto_contains(&generic, "\x0a\x14Start context switch\x12\x06(null)"));
	fields_export(&other, "rcu", "own", two_fields, two_print, unknown, sizeof(unknown));
	assert_true(perfetto_contains(&other, "(0x"));
	fields_export(&legacy, "rcu", "own", two_fields, two_print, two, sizeof(two));
	assert_string_equal(fields_event(&legacy)->generic->field[0]->str_value,
			    "Start context switch");
}

/* It has no message of its own: its message is a generic event's field. */
static void a_step_of_writeback_has_its_text(void **state _unused_)
{
	static const struct {
		char name[32];
		uint64_t msg;
		int32_t step;
		uint64_t window;
		uint32_t bg, normal, max;
	} step = { "259:0", TEXT_ADDRESS, 2, 100, 3, 4, 5 };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };

	fields_export(&r, "wbt", "wbt_step",
		      "\tfield:char name[32];\toffset:8;\tsize:32;\tsigned:0;\n"
		      "\tfield:const char * msg;\toffset:40;\tsize:8;\tsigned:0;\n"
		      "\tfield:int step;\toffset:48;\tsize:4;\tsigned:1;\n"
		      "\tfield:unsigned long window;\toffset:56;\tsize:8;\tsigned:0;\n"
		      "\tfield:unsigned int bg;\toffset:64;\tsize:4;\tsigned:0;\n"
		      "\tfield:unsigned int normal;\toffset:68;\tsize:4;\tsigned:0;\n"
		      "\tfield:unsigned int max;\toffset:72;\tsize:4;\tsigned:0;\n",
		      "\"%s: %s: step=%d, window=%luus, background=%u, normal=%u, max=%u\", "
		      "REC->name, REC->msg, REC->step, REC->window, REC->bg, REC->normal, REC->max",
		      &step, sizeof(step));
	assert_true(perfetto_contains(&r, "\x0a\x05"
					  "259:0\x12\x14"
					  "Start context switch"));
	assert_int_equal(fields_generic_number(&r, 3), 2);
	assert_int_equal(fields_generic_number(&r, 7), 5);
}

static void an_address_of_a_socket_is_a_number(void **state _unused_)
{
	static const struct {
		uint16_t sport, dport;
		uint8_t saddr[4], saddr_v6[16];
	} event = { 80, 443, { 127, 0, 0, 1 }, { 0 } };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	const PB(InetSockSetStateFtraceEvent) * e;

	fields_export(&r, "sock", "inet_sock_set_state",
		      "\tfield:__u16 sport;\toffset:8;\tsize:2;\tsigned:0;\n"
		      "\tfield:__u16 dport;\toffset:10;\tsize:2;\tsigned:0;\n"
		      "\tfield:__u8 saddr[4];\toffset:12;\tsize:4;\tsigned:0;\n"
		      "\tfield:__u8 saddr_v6[16];\toffset:16;\tsize:16;\tsigned:0;\n",
		      "\"%u\", REC->sport", &event, sizeof(event));
	e = fields_event(&r)->inet_sock_set_state;
	assert_int_equal(e->sport, 80);
	assert_true(e->has_saddr);
	assert_memory_equal(&e->saddr, event.saddr, sizeof(event.saddr));
}

static void bytes_are_bytes(void **state _unused_)
{
	static const struct {
		int32_t adapter_nr;
		uint32_t buf;
		uint8_t data[4];
	} event = { 3, 4 << 16 | 16, { 0, 0xff, 'x', 0x80 } };
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	const PB(I2cWriteFtraceEvent) * e;

	fields_export(&r, "i2c", "i2c_write",
		      "\tfield:int adapter_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
		      "\tfield:__data_loc __u8[] buf;\toffset:12;\tsize:4;\tsigned:0;\n",
		      "\"i2c-%d\", REC->adapter_nr", &event, sizeof(event));
	e = fields_event(&r)->i2c_write;
	assert_int_equal(e->adapter_nr, 3);
	assert_int_equal(e->buf.len, sizeof(event.data));
	assert_memory_equal(e->buf.data, event.data, sizeof(event.data));
}

/* The reader names a shrinker's slice after the function. */
static void functions_are_interned(void **state _unused_)
{
	static const uint64_t event[] = { OUTER, 7 };
	static const char fields[] = "\tfield:void * shrink;\toffset:8;\tsize:8;\tsigned:0;\n"
				     "\tfield:long nr;\toffset:16;\tsize:8;\tsigned:1;\n";
	static const char skb[] =
		"\tfield:void * location;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:unsigned short protocol;\toffset:16;\tsize:2;\tsigned:0;\n";
	_cleanup_perfetto_run_ struct perfetto_run start = { 0 }, dropped = { 0 }, other = { 0 };

	fields_export(&start, "vmscan", "mm_shrink_slab_start", fields,
		      "\"%pS %ld\", REC->shrink, REC->nr", event, sizeof(event));
	assert_int_equal(fields_event(&start)->mm_shrink_slab_start->shrink, 1);
	assert_true(perfetto_contains(&start, "outer"));
	fields_export(&dropped, "skb", "kfree_skb", skb, "\"%pS %d\", REC->location, REC->protocol",
		      event, sizeof(event));
	assert_int_equal(fields_event(&dropped)->kfree_skb->location, 1);
	assert_int_equal(fields_event(&dropped)->kfree_skb->protocol, 7);
	assert_true(perfetto_contains(&dropped, "\x08\x01\x12\x05outer"));
	/* This message has no symbol, and readers only store it: the generic form has it. */
	fields_export(&other, "kmem", "kfree",
		      "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n"
		      "\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n",
		      "\"call_site=%pS ptr=%p\", (void *)REC->call_site, REC->ptr", event,
		      sizeof(event));
	assert_true(perfetto_contains(&other, "outer+0x10/0x100"));
}

/* Display and GPU drivers have a tracing_mark_write each, with different fields and messages. */
static void events_of_drivers_are_told_apart_by_their_system(void **state _unused_)
{
	static const struct {
		int32_t pid;
		uint32_t name_loc;
		char type, pad[3];
		int32_t value;
		char name[8];
	} mark = { 70, 24 | 8 << 16, 'B', { 0 }, 9, "commit" };
	static const char fields[] =
		"\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:1;\n"
		"\tfield:char type;\toffset:16;\tsize:1;\tsigned:1;\n"
		"\tfield:int value;\toffset:20;\tsize:4;\tsigned:1;\n";
	static const char print[] =
		"\"%c|%d|%s|%d\", REC->type, REC->pid, __get_str(name), REC->value";
	_cleanup_perfetto_run_ struct perfetto_run mali = { 0 }, g2d = { 0 }, other = { 0 };

	fields_export(&mali, "mali", "tracing_mark_write", fields, print, &mark, sizeof(mark));
	assert_string_equal(fields_event(&mali)->mali_tracing_mark_write->name, "commit");
	assert_int_equal(fields_event(&mali)->mali_tracing_mark_write->type, 'B');
	assert_int_equal(fields_event(&mali)->mali_tracing_mark_write->value, 9);
	fields_export(&g2d, "g2d", "tracing_mark_write", fields, print, &mark, sizeof(mark));
	assert_string_equal(fields_event(&g2d)->g2d_tracing_mark_write->name, "commit");
	assert_int_equal(fields_event(&g2d)->g2d_tracing_mark_write->pid, 70);
	/* Another driver's has no message. */
	fields_export(&other, "own", "tracing_mark_write", fields, print, &mark, sizeof(mark));
	assert_int_equal(fields_generic_number(&other, 1), 70);
}

/* Android makes this synthetic event; any other of them has a name of its user's choice. */
static void synthetic_events_have_messages_of_their_own(void **state _unused_)
{
	static const struct {
		uint64_t mm_id, curr, member, size;
	} event = { 1, 0, 2, 4096 };
	static const char fields[] = "\tfield:unsigned int mm_id;\toffset:8;\tsize:4;\tsigned:0;\n"
				     "\tfield:unsigned int curr;\toffset:16;\tsize:4;\tsigned:0;\n"
				     "\tfield:int member;\toffset:24;\tsize:4;\tsigned:1;\n"
				     "\tfield:long size;\toffset:32;\tsize:8;\tsigned:1;\n";
	_cleanup_perfetto_run_ struct perfetto_run throttled = { 0 }, own = { 0 };

	fields_export(&throttled, "synthetic", "rss_stat_throttled", fields, "\"%u\", REC->mm_id",
		      &event, sizeof(event));
	assert_int_equal(fields_event(&throttled)->synthetic_rss_stat_throttled->size, 4096);
	fields_export(&own, "synthetic", "rss_stat", fields, "\"%u\", REC->mm_id", &event,
		      sizeof(event));
	assert_int_equal(fields_generic_number(&own, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_has_one_encoding),
		cmocka_unit_test(an_address_of_a_socket_is_a_number),
		cmocka_unit_test(bytes_are_bytes),
		cmocka_unit_test(functions_are_interned),
		cmocka_unit_test(a_string_of_the_kernel_is_its_text),
		cmocka_unit_test(a_step_of_writeback_has_its_text),
		cmocka_unit_test(events_of_drivers_are_told_apart_by_their_system),
		cmocka_unit_test(synthetic_events_have_messages_of_their_own),
		cmocka_unit_test(arguments_of_system_calls_are_as_the_program_gave_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
