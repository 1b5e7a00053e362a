/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Common Trace Format: packets and metadata of synthetic captures, parsed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "formats/formats.h"
#include "make_stream.h"
#include "segmented.h"

#define S UINT64_C(1000000000)

static struct segmented_file *find_file(struct segmented *t, const char *name)
{
	size_t i = 0;

	while (i < t->count && strcmp(t->files[i].name, name))
		i++;
	assert_true(i < t->count);
	return &t->files[i];
}

static struct segmented *export(int fd)
{
	struct segmented *t = export_segments(fd, &(struct export_options){ .format = "ctf" });

	if (t->out.code < 0)
		fail_msg("%s", t->out.err.message);
	return t;
}

static const char *metadata(struct segmented *t)
{
	return buf_string(&find_file(t, "metadata")->data);
}

/* The class with that name in the metadata; fails unless there is exactly one. */
static unsigned class_of(struct segmented *t, const char *name)
{
	char key[128];
	const char *at;

	snprintf(key, sizeof(key), "name = \"%s\";\n\tid = ", name);
	at = strstr(metadata(t), key);
	if (!at)
		fail_msg("no class %s", name);
	assert_null(strstr(at + 1, key));
	return (unsigned)strtoul(at + strlen(key), NULL, 10);
}

/* One packet, with its header checked. */
struct packet {
	uint64_t from, to, number, discarded;
	const uint8_t *events, *end;
	bool big;
};

static size_t read_packet(const struct segmented_file *f, size_t at, bool big, struct packet *ret)
{
	const uint8_t *p = (const uint8_t *)f->data.data + at;
	uint64_t bits;

	assert_true(f->data.len - at >= 76);
	assert_int_equal(load_u32(p, big), 0xc1fc1fc1);
	/* The clock of maker_head(). */
	assert_int_equal(p[4], 0xab);
	assert_int_equal(load_u32(p + 20, big), 0);
	bits = load_u64(p + 40, big);
	assert_int_equal(bits, load_u64(p + 48, big));
	assert_int_equal(bits % 8, 0);
	assert_in_range(bits / 8, 76, f->data.len - at);
	*ret = (struct packet){
		.from = load_u64(p + 24, big),
		.to = load_u64(p + 32, big),
		.number = load_u64(p + 56, big),
		.discarded = load_u64(p + 64, big),
		.events = p + 76,
		.end = p + bits / 8,
		.big = big,
	};
	assert_true(ret->from <= ret->to);
	assert_int_equal(load_u32(p + 72, big), strtoul(f->name + strlen("cpu_"), NULL, 10));
	return at + (size_t)(bits / 8);
}

/* Reads the event's header and context at *p, and moves *p to its fields. */
struct event_head {
	uint64_t ts;
	unsigned class;
	uint8_t flags, preempt_count;
	int32_t pid, tgid;
	const char *comm;
};

static struct event_head read_head(const struct packet *packet, const uint8_t **p)
{
	const uint8_t *at = *p;
	struct event_head e = {
		.ts = load_u64(at, packet->big),
		.class = load_u16(at + 8, packet->big),
		.flags = at[10],
		.preempt_count = at[11],
		.pid = (int32_t)load_u32(at + 12, packet->big),
		.tgid = (int32_t)load_u32(at + 16, packet->big),
		.comm = (const char *)at + 20,
	};

	*p = at + 20 + strlen(e.comm) + 1;
	assert_true(*p <= packet->end);
	assert_in_range(e.ts, packet->from, packet->to);
	return e;
}

static void number_is(const struct packet *packet, const uint8_t **p, uint64_t ts, uint32_t value)
{
	assert_int_equal(read_head(packet, p).ts, ts);
	assert_int_equal(load_u32(*p, packet->big), value);
	*p += 4;
}

static void an_event_is_its_record(void **state _unused_)
{
	static const struct maker_task tasks[] = { { 7, 6, "seven", 1 * S, false } };

	for (unsigned big = 0; big < 2; big++) {
		_cleanup_(maker_deinit) struct maker m;
		_cleanup_segmented_ struct segmented *t = NULL;
		struct event_head e;
		struct packet packet;
		const uint8_t *p;

		maker_init(&m, 8, big, 4096);
		maker_head(&m);
		maker_tasks(&m, 1 * S, 0, tasks, 1);
		page_begin(&m, 2 * S);
		event_number(&m, 2 * S, 7, 0x01020304);
		event_switch(&m, 2 * S + 5, 7, "seven", 1, -1, 0, "swapper/1");
		page_flush(&m, 0, 1);
		maker_end(&m);
		t = export(m.fd);

		assert_int_equal(t->count, 2);
		assert_memory_equal(metadata(t), "/* CTF 1.8 */\n", 14);
		assert_non_null(strstr(metadata(t), big ? "byte_order = be;" : "byte_order = le;"));
		assert_non_null(
			strstr(metadata(t), "char_t _prev_comm[16];\n\t\tint32_t _prev_pid;"));
		assert_int_equal(read_packet(find_file(t, "cpu_1"), 0, big, &packet),
				 find_file(t, "cpu_1")->data.len);
		assert_int_equal(packet.from, 2 * S);
		assert_int_equal(packet.to, 2 * S + 5);
		assert_int_equal(packet.discarded, 0);
		p = packet.events;
		e = read_head(&packet, &p);
		assert_int_equal(e.class, class_of(t, "test:number"));
		assert_int_equal(e.flags, 1);
		assert_int_equal(e.preempt_count, 2);
		assert_int_equal(e.pid, 7);
		assert_int_equal(e.tgid, 6);
		assert_string_equal(e.comm, "seven");
		assert_int_equal(load_u32(p, big), 0x01020304);
		p += 4;
		e = read_head(&packet, &p);
		assert_int_equal(e.class, class_of(t, "sched:sched_switch"));
		assert_string_equal((const char *)p, "seven");
		assert_int_equal(load_u32(p + 16, big), 7);
		assert_int_equal(load_u32(p + 20, big), (uint32_t)-1);
		assert_int_equal(load_u32(p + 24, big), 1);
		assert_string_equal((const char *)p + 28, "swapper/1");
		assert_ptr_equal(p + 52, packet.end);
	}
}

static void is_nobodys(const struct event_head *e)
{
	assert_int_equal(e->pid, -1);
	assert_int_equal(e->tgid, 0);
	assert_string_equal(e->comm, "<XXX>");
}

/* Such a packet holds only the event that reports the gap. */
static void gap_says(struct segmented *t, const struct packet *packet, uint64_t count)
{
	const uint8_t *p = packet->events;
	struct event_head e = read_head(packet, &p);

	assert_int_equal(e.class, class_of(t, "traced:events_lost"));
	assert_int_equal(e.ts, packet->from);
	is_nobodys(&e);
	assert_int_equal(load_u64(p, packet->big), count);
	assert_ptr_equal(p + 8, packet->end);
}

/* Each gap begins a packet, and a packet precedes the first gap. */
static void losses_are_packets(void **state _unused_)
{
	static const uint64_t missed[] = { 3, 0, 4, UINT64_MAX };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_segmented_ struct segmented *t = NULL;
	const struct maker_stats start[] = { { .cpu = 0 }, { .cpu = 1 } };
	const struct maker_stats end[] = { { .cpu = 0, .read = 4, .overrun = 17 },
					   { .cpu = 1, .read = 1, .overrun = 2 } };
	struct packet packet;
	struct segmented_file *f;
	const char *environment;
	const uint8_t *p;
	size_t at = 0;

	maker_begin(&m, 4096);
	maker_stats(&m, 0, start, 2);
	for (unsigned i = 0; i < ARRAY_SIZE(missed); i++) {
		page_begin(&m, (2 + i) * S);
		event_number(&m, (2 + i) * S, 7, i);
		page_end(&m, missed[i]);
	}
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	page_begin(&m, 2 * S);
	event_number(&m, 2 * S, 7, 9);
	page_flush(&m, 0, 1);
	maker_stats(&m, 2, end, 2);
	maker_end(&m);
	t = export(m.fd);
	f = find_file(t, "cpu_0");

	/* Readers report no losses for the first packet. */
	at = read_packet(f, at, false, &packet);
	assert_int_equal(packet.discarded, 0);
	assert_ptr_equal(packet.events, packet.end);
	at = read_packet(f, at, false, &packet);
	assert_int_equal(packet.discarded, 3);
	assert_int_equal(packet.to, 2 * S);
	gap_says(t, &packet, 3);
	at = read_packet(f, at, false, &packet);
	assert_int_equal(packet.number, 2);
	p = packet.events;
	number_is(&packet, &p, 2 * S, 0);
	number_is(&packet, &p, 3 * S, 1);
	assert_ptr_equal(p, packet.end);
	at = read_packet(f, at, false, &packet);
	assert_int_equal(packet.from, 3 * S);
	assert_int_equal(packet.to, 4 * S);
	assert_int_equal(packet.discarded, 7);
	gap_says(t, &packet, 4);
	at = read_packet(f, at, false, &packet);
	p = packet.events;
	number_is(&packet, &p, 4 * S, 2);
	/* The number is unknown: one event is counted, and an event says so. */
	at = read_packet(f, at, false, &packet);
	assert_int_equal(packet.discarded, 8);
	gap_says(t, &packet, 0);
	at = read_packet(f, at, false, &packet);
	p = packet.events;
	number_is(&packet, &p, 5 * S, 3);
	assert_ptr_equal(p, packet.end);
	assert_int_equal(at, f->data.len);
	/* A loss that only the kernel's counts report comes after the last event. */
	f = find_file(t, "cpu_1");
	at = read_packet(f, 0, false, &packet);
	p = packet.events;
	number_is(&packet, &p, 2 * S, 9);
	assert_int_equal(packet.discarded, 0);
	at = read_packet(f, at, false, &packet);
	assert_int_equal(packet.from, 2 * S);
	assert_int_equal(packet.to, 5 * S);
	assert_int_equal(packet.discarded, 2);
	gap_says(t, &packet, 2);
	assert_int_equal(at, f->data.len);
	/* The environment has the sums, for readers of no packets. */
	environment = buf_string(&find_file(t, "metadata")->data);
	assert_non_null(strstr(environment, "\tevents_lost = 19;\n"));
	assert_non_null(strstr(environment, "\tcpu_0_events_lost = 17;\n"));
	assert_non_null(strstr(environment, "\tcpu_1_events_lost = 2;\n"));
}

/* The second event has the time of the first one; an event of the class has its own. */
static struct segmented *export_replaced(uint64_t first, uint64_t second, const char *class)
{
	const uint64_t times[] = { first, second };
	_cleanup_(maker_deinit) struct maker m;
	struct segmented *t;
	struct event_head e;
	struct packet packet;
	const uint8_t *p;

	maker_begin(&m, 4096);
	for (unsigned i = 0; i < ARRAY_SIZE(times); i++) {
		page_begin(&m, times[i]);
		event_number(&m, times[i], 7, i);
		page_end(&m, 0);
	}
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	maker_end(&m);
	t = export(m.fd);

	read_packet(find_file(t, "cpu_0"), 0, false, &packet);
	p = packet.events;
	number_is(&packet, &p, first, 0);
	e = read_head(&packet, &p);
	assert_int_equal(e.class, class_of(t, class));
	is_nobodys(&e);
	assert_int_equal(load_u64(p, false), second);
	p += 8;
	number_is(&packet, &p, first, 1);
	assert_ptr_equal(p, packet.end);
	return t;
}

static void times_never_go_back(void **state _unused_)
{
	_cleanup_segmented_ struct segmented *t =
		export_replaced(3 * S, 2 * S, "traced:time_went_back");
}

/* Readers count ns in 63 bits, since 1970 where the clock is tied to real time. */
static void times_beyond_the_readers_are_cut(void **state _unused_)
{
	const uint64_t last = INT64_MAX;
	_cleanup_segmented_ struct segmented *t =
		export_replaced(last, last + 7, "traced:time_cut");

	assert_int_equal(t->out.result.warning_count, 1);
	assert_non_null(strstr(t->out.result.warnings[0], "1 time is later than readers of CTF"));
}

#define ID_ODD 400

static const char odd_fields[] =
	"\tfield:int int;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:u16 stream;\toffset:12;\tsize:2;\tsigned:0;\n"
	"\tfield:u64 far;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc char[] event;\toffset:32;\tsize:4;\tsigned:1;\n"
	"\tfield:int int;\toffset:36;\tsize:4;\tsigned:1;\n"
	"\tfield:__data_loc u32[] list;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:int list_length;\toffset:44;\tsize:4;\tsigned:1;\n";

/* Writes the fields above, with a text and a list where loc says. */
static void put_odd(struct maker *m, uint64_t ts, uint32_t text, uint32_t list)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u32(m, &b, 1);
	maker_u16(m, &b, 2);
	buf_append(&b, "gap-gap-ga", 10);
	maker_u64(m, &b, 3);
	maker_u32(m, &b, text);
	maker_u32(m, &b, 4);
	maker_u32(m, &b, list);
	maker_u32(m, &b, 5);
	buf_append(&b, "abc\0", 4);
	maker_u32(m, &b, 6);
	maker_event(m, ts, ID_ODD, 7, b.data, b.len);
}

static void names_and_gaps(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_segmented_ struct segmented *t = NULL;
	struct packet packet;
	const uint8_t *p;

	maker_init(&m, 8, true, 4096);
	maker_head(&m);
	maker_format(&m, "trace", "odd", ID_ODD, odd_fields, "\"%d\", REC->stream");
	page_begin(&m, 2 * S);
	put_odd(&m, 2 * S, 4 << 16 | 48, 4 << 16 | 52);
	maker_finish(&m);
	t = export(m.fd);

	/* No name is a word of the language, and none occurs twice. */
	assert_non_null(strstr(metadata(t), "\tfields := struct {\n"
					    "\t\tint32_t _int;\n"
					    "\t\tuint16_t _stream;\n"
					    "\t\tuint64_t _far;\n"
					    "\t\tstring _event;\n"
					    "\t\tint32_t _int_2;\n"
					    "\t\tuint32_t __list_length;\n"
					    "\t\tuint32_t _list[ __list_length ];\n"
					    "\t\tint32_t _list_length;\n"
					    "\t};\n"));
	read_packet(find_file(t, "cpu_0"), 0, true, &packet);
	p = packet.events;
	read_head(&packet, &p);
	assert_memory_equal(p,
			    "\0\0\0\1"
			    "\0\2"
			    "\0\0\0\0\0\0\0\3"
			    "abc\0"
			    "\0\0\0\4"
			    "\0\0\0\1\0\0\0\6"
			    "\0\0\0\5",
			    34);
	assert_ptr_equal(p + 34, packet.end);
}

/* Each further field gets the next number. */
static void many_fields_of_one_name(void **state _unused_)
{
	const unsigned count = 300;
	static const char bytes[300];
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_segmented_ struct segmented *t = NULL;
	_cleanup_buf_ struct buf fields = BUF_INIT;

	for (unsigned i = 0; i < count; i++)
		buf_printf(&fields, "\tfield:u8 same;\toffset:%u;\tsize:1;\tsigned:0;\n", 8 + i);
	maker_begin(&m, 4096);
	maker_format(&m, "test", "odd", ID_ODD, buf_string(&fields), "\"%d\", REC->same");
	page_begin(&m, 2 * S);
	maker_event(&m, 2 * S, ID_ODD, 7, bytes, sizeof(bytes));
	maker_finish(&m);
	t = export(m.fd);
	class_of(t, "test:odd");
	for (unsigned i = 2; i <= count; i++) {
		char field[64];

		snprintf(field, sizeof(field), "\t\tuint8_t _same_%u;\n", i);
		assert_non_null(strstr(metadata(t), field));
	}
	assert_non_null(strstr(metadata(t), "\t\tuint8_t _same;\n"));
}

/* A record that does not fit its format, or has none, is written as bytes. */
static void damaged_records_are_bytes(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_segmented_ struct segmented *t = NULL;
	struct packet packet;
	const uint8_t *p;

	maker_begin(&m, 4096);
	maker_format(&m, "test", "odd", ID_ODD, odd_fields, "\"%d\", REC->stream");
	page_begin(&m, 2 * S);
	put_odd(&m, 2 * S, 4 << 16 | 60, 0);	 /* beyond its end */
	put_odd(&m, 2 * S + 1, 0, 3 << 16 | 52); /* not a whole number of elements */
	maker_event(&m, 2 * S + 2, ID_ODD, 7, "four", 4);
	maker_event(&m, 2 * S + 3, 999, 7, "nobody knows", 12);
	maker_finish(&m);
	t = export(m.fd);
	assert_int_equal(t->out.result.events, 4);

	read_packet(find_file(t, "cpu_0"), 0, false, &packet);
	p = packet.events;
	for (unsigned i = 0; i < 4; i++) {
		static const uint32_t lengths[] = { 56, 56, 12, 20 };

		assert_int_equal(read_head(&packet, &p).class,
				 class_of(t, i < 3 ? "test:odd (raw)" : "unknown:999"));
		assert_int_equal(load_u32(p, false), lengths[i]);
		assert_int_equal(load_u16(p + 4, false), i < 3 ? ID_ODD : 999);
		p += 4 + lengths[i];
	}
	assert_ptr_equal(p, packet.end);
}

/* Writes numbers from 0 up, a nanosecond apart, on CPU 0. count: a multiple of 100. */
static void put_numbers(struct maker *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (i % 100 == 0)
			page_begin(m, 2 * S + i);
		event_number(m, 2 * S + i, 7, i);
		if (i % 100 == 99)
			page_end(m, 0);
	}
	maker_flush(m, 0, BUFFER_MAIN, 0);
}

static void long_traces_have_many_packets(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_segmented_ struct segmented *t = NULL;
	unsigned packets = 0, events = 0;
	struct packet packet;
	struct segmented_file *f;

	maker_begin(&m, 4096);
	put_numbers(&m, 20000);
	maker_end(&m);
	t = export(m.fd);
	f = find_file(t, "cpu_0");
	for (size_t at = 0; at < f->data.len; packets++) {
		at = read_packet(f, at, false, &packet);
		assert_int_equal(packet.number, packets);
		assert_true(packet.end - packet.events < 70 << 10);
		for (const uint8_t *p = packet.events; p < packet.end; events++)
			number_is(&packet, &p, 2 * S + events, events);
	}
	assert_int_equal(events, 20000);
	assert_true(packets > 5);
}

/* All CPUs together have a bound, however few the header names. */
static void packets_shrink_with_cpus(void **state _unused_)
{
	const unsigned cpus = 600, events = 4000;
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_segmented_ struct segmented *t = NULL;
	struct packet packet;
	struct segmented_file *f;

	maker_begin(&m, 4096);
	for (unsigned i = 1; i < cpus; i++) {
		page_begin(&m, 1 * S + i);
		event_number(&m, 1 * S + i, 7, i);
		page_flush(&m, 0, i);
	}
	put_numbers(&m, events);
	maker_end(&m);
	t = export(m.fd);
	f = find_file(t, "cpu_0");
	for (size_t at = 0; at < f->data.len;) {
		at = read_packet(f, at, false, &packet);
		assert_true((size_t)(packet.end - packet.events) < (16U << 20) / cpus);
	}
}

static void nasty_header(Traced__Capture__Header *h)
{
	h->nodename = (char *)"a\"b\\c\nd\x01";
	h->uuid.len = 0;
}

static void quoted_text_is_escaped(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_segmented_ struct segmented *t = NULL;

	maker_init(&m, 8, false, 4096);
	m.header = nasty_header;
	maker_head(&m);
	maker_end(&m);
	t = export(m.fd);
	assert_int_equal(t->count, 1);
	assert_non_null(strstr(metadata(t), "hostname = \"a\\\"b\\\\c\\012d\\001\";"));
	assert_null(strstr(metadata(t), "uuid"));
	assert_null(strstr(metadata(t), "event {"));
}

static void only_when_it_has_ended(void **state _unused_)
{
	const struct export_format *ctf = export_format_find(NULL, "x/out.CTF");
	const struct export_rotate rotate = { .bytes = 1 << 20 };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_non_null(ctf);
	assert_true(ctf->at_end && ctf->directory && ctf->raw_records);
	assert_int_equal(export_format_check_rotate(ctf, NULL, &rotate, &err), -EINVAL);
	assert_string_equal(err.message, "a .ctf is one directory: it can't be rotated");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_its_record),
		cmocka_unit_test(losses_are_packets),
		cmocka_unit_test(times_never_go_back),
		cmocka_unit_test(times_beyond_the_readers_are_cut),
		cmocka_unit_test(names_and_gaps),
		cmocka_unit_test(damaged_records_are_bytes),
		cmocka_unit_test(long_traces_have_many_packets),
		cmocka_unit_test(packets_shrink_with_cpus),
		cmocka_unit_test(many_fields_of_one_name),
		cmocka_unit_test(quoted_text_is_escaped),
		cmocka_unit_test(only_when_it_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
