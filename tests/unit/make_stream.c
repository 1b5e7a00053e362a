/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_stream.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "traced/stream.h"

#define MISSED_EVENTS (UINT32_C(1) << 31)
#define MISSED_STORED (UINT32_C(1) << 30)

void maker_init_fd(struct maker *m, int fd, unsigned word_size, bool big_endian,
		   uint32_t subbuf_size)
{
	*m = (struct maker){
		.fd = fd,
		.word_size = word_size,
		.big_endian = big_endian,
		.subbuf_size = subbuf_size,
	};
	assert_true(m->fd >= 0);
	assert_int_equal(stream_writer_init(&m->writer, m->fd, 0), 0);
}

const struct machine machines[4] = { { 8, false }, { 8, true }, { 4, false }, { 4, true } };

void maker_init(struct maker *m, unsigned word_size, bool big_endian, uint32_t subbuf_size)
{
	maker_init_fd(m, memfd_create("capture", MFD_CLOEXEC), word_size, big_endian, subbuf_size);
}

void maker_deinit(struct maker *m)
{
	close_fd(m->fd);
	buf_deinit(&m->page);
	buf_deinit(&m->subbufs);
}

uint32_t maker_data_offset(const struct maker *m)
{
	return 8 + m->word_size;
}

void maker_u16(const struct maker *m, struct buf *out, uint16_t v)
{
	v = m->big_endian ? htobe16(v) : htole16(v);
	buf_append(out, &v, sizeof(v));
}

void maker_u32(const struct maker *m, struct buf *out, uint32_t v)
{
	v = m->big_endian ? htobe32(v) : htole32(v);
	buf_append(out, &v, sizeof(v));
}

void maker_u64(const struct maker *m, struct buf *out, uint64_t v)
{
	v = m->big_endian ? htobe64(v) : htole64(v);
	buf_append(out, &v, sizeof(v));
}

void maker_word(const struct maker *m, struct buf *out, uint64_t v)
{
	if (m->word_size == 8)
		maker_u64(m, out, v);
	else
		maker_u32(m, out, (uint32_t)v);
}

void maker_header_page(const struct maker *m, struct buf *out)
{
	unsigned w = m->word_size;

	buf_printf(out,
		   "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		   "\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"
		   "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		   "\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:1;\n",
		   w, 8 + w, m->subbuf_size - 8 - w);
}

void page_begin(struct maker *m, uint64_t ts)
{
	buf_clear(&m->page);
	maker_u64(m, &m->page, ts);
	maker_word(m, &m->page, 0);
	m->ts = ts;
}

void page_u32(struct maker *m, uint32_t v)
{
	maker_u32(m, &m->page, v);
}

void page_head(struct maker *m, unsigned type_len, uint32_t delta)
{
	page_u32(m, m->big_endian ? type_len << 27 | delta : delta << 5 | type_len);
}

void page_record(struct maker *m, uint64_t ts, const void *data, uint32_t len)
{
	uint64_t delta = ts - m->ts;
	uint32_t padded = (len + 3) / 4 * 4;

	if (delta >> 27) {
		page_head(m, 30, delta & ((1U << 27) - 1));
		page_u32(m, (uint32_t)(delta >> 27));
		delta = 0;
	}
	if (padded && padded <= 28 * 4) {
		page_head(m, padded / 4, (uint32_t)delta);
	} else {
		page_head(m, 0, (uint32_t)delta);
		page_u32(m, padded + 4);
	}
	buf_append(&m->page, data, len);
	buf_append(&m->page, "\0\0\0", padded - len);
	m->ts = ts;
}

void page_end(struct maker *m, uint64_t missed)
{
	uint32_t length = (uint32_t)m->page.len - maker_data_offset(m);
	struct buf commit = BUF_INIT;
	size_t rest;

	assert_true(m->page.len <= m->subbuf_size);
	if (missed) {
		/* The kernel adds a negative int, which fills the upper half of a 64-bit word. */
		uint64_t flags = UINT64_C(0xffffffff00000000) | MISSED_EVENTS;

		if (missed != UINT64_MAX) {
			flags |= MISSED_STORED;
			maker_word(m, &m->page, missed);
		}
		maker_word(m, &commit, flags | length);
	} else {
		maker_word(m, &commit, length);
	}
	memcpy(m->page.data + 8, commit.data, m->word_size);
	buf_deinit(&commit);
	assert_true(m->page.len <= m->subbuf_size);
	rest = m->subbuf_size - m->page.len;
	assert_non_null(buf_reserve(&m->page, rest));
	memset(m->page.data + m->page.len, 0, rest);
	m->page.len += rest;
	buf_append(&m->subbufs, m->page.data, m->page.len);
}

void maker_flush(struct maker *m, uint32_t cpu, enum subbufs_buffer buffer, uint32_t skip)
{
	struct iovec iov = { m->subbufs.data, m->subbufs.len };

	assert_int_equal(stream_write_subbufs(&m->writer, cpu, buffer, skip, &iov, 1), 0);
	buf_clear(&m->subbufs);
}

#define COMMON                                                                                     \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

void maker_format(struct maker *m, const char *system, const char *name, int id, const char *fields,
		  const char *print)
{
	struct buf b = BUF_INIT;

	buf_append(&b, system, strlen(system) + 1);
	buf_printf(&b, "name: %s\nID: %d\nformat:\n%s%s\nprint fmt: %s\n", name, id,
		   m->common ?: COMMON, fields, print);
	assert_int_equal(stream_write(&m->writer, CHUNK_FORMAT, b.data, b.len), 0);
	buf_deinit(&b);
}

static void put_formats(struct maker *m)
{
	struct buf fields = BUF_INIT;
	unsigned w = m->word_size;

	buf_printf(&fields,
		   "\tfield:unsigned long ip;\toffset:8;\tsize:%u;\tsigned:0;\n"
		   "\tfield:char buf[];\toffset:%u;\tsize:0;\tsigned:0;\n",
		   w, 8 + w);
	maker_format(m, "ftrace", "print", ID_PRINT, buf_string(&fields),
		     "\"%ps: %s\", (void *)REC->ip, REC->buf");
	buf_deinit(&fields);
	maker_format(m, "test", "number", ID_NUMBER,
		     "\tfield:u32 value;\toffset:8;\tsize:4;\tsigned:0;\n",
		     "\"value=%u\", REC->value");
	if (m->few_formats)
		return;
	maker_format(m, "sched", "sched_switch", ID_SWITCH,
		     "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		     "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		     "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		     "\tfield:int prev_state;\toffset:32;\tsize:4;\tsigned:1;\n"
		     "\tfield:char next_comm[16];\toffset:36;\tsize:16;\tsigned:0;\n"
		     "\tfield:pid_t next_pid;\toffset:52;\tsize:4;\tsigned:1;\n"
		     "\tfield:int next_prio;\toffset:56;\tsize:4;\tsigned:1;\n",
		     "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s "
		     "next_pid=%d next_prio=120\", REC->prev_comm, REC->prev_pid, REC->prev_prio, "
		     "__print_symbolic(REC->prev_state, { 0, \"R\" }, { 1, \"S\" }, { 2, \"D\" }, "
		     "{ 128, \"I\" }), REC->next_comm, REC->next_pid");
	maker_format(m, "task", "task_newtask", ID_NEWTASK,
		     "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		     "\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
		     "\tfield:u64 clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n",
		     "\"pid=%d comm=%s clone_flags=%llx\", REC->pid, REC->comm, REC->clone_flags");
	maker_format(m, "task", "task_rename", ID_RENAME,
		     "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		     "\tfield:char oldcomm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
		     "\tfield:char newcomm[16];\toffset:28;\tsize:16;\tsigned:0;\n",
		     "\"pid=%d oldcomm=%s newcomm=%s\", REC->pid, REC->oldcomm, REC->newcomm");
}

void maker_head(struct maker *m)
{
	static uint8_t uuid[16] = { 0xab, 0xcd, 0xef, 0x01 };
	Traced__Capture__Header h = TRACED__CAPTURE__HEADER__INIT;
	struct buf page = BUF_INIT;

	h.version = STREAM_VERSION;
	h.program = (char *)"traced test";
	h.uuid = (ProtobufCBinaryData){ sizeof(uuid), uuid };
	h.pointer_key = h.uuid;
	h.sysname = (char *)"Linux";
	h.nodename = (char *)"example";
	h.release = (char *)(m->release ?: "6.18.0");
	h.machine = (char *)"test";
	h.word_size = m->word_size;
	h.big_endian = m->big_endian;
	h.page_size = 4096;
	h.subbuf_size = m->subbuf_size;
	h.cpus = h.cpus_online = 2;
	h.trace_clock = (char *)(m->clock ?: "boot");
	h.trace_header = (char *)(m->trace_header ?: "");
	if (m->header)
		m->header(&h);
	assert_int_equal(stream_write_message(&m->writer, CHUNK_HEADER, &h.base), 0);
	maker_header_page(m, &page);
	assert_int_equal(stream_write(&m->writer, CHUNK_HEADER_PAGE, page.data, page.len), 0);
	buf_deinit(&page);
	put_formats(m);
}

static void begin_event(struct maker *m, struct buf *b, uint16_t id, int32_t pid)
{
	*b = BUF_INIT;
	maker_u16(m, b, id);
	buf_append(b, "\x01\x02", 2); /* interrupts off, preempt depth 2 */
	maker_u32(m, b, (uint32_t)pid);
}

static void put_comm(struct buf *b, const char *comm)
{
	char field[16] = "";

	strncpy(field, comm, sizeof(field) - 1);
	buf_append(b, field, sizeof(field));
}

static void end_event(struct maker *m, struct buf *b, uint64_t ts)
{
	page_record(m, ts, b->data, (uint32_t)b->len);
	buf_deinit(b);
}

void maker_symbols(struct maker *m, const char *text)
{
	assert_int_equal(stream_write(&m->writer, CHUNK_KALLSYMS, text, strlen(text)), 0);
}

void maker_excerpt(struct maker *m, const char *text)
{
	assert_int_equal(stream_write(&m->writer, CHUNK_KALLSYMS_EXCERPT, text, strlen(text)), 0);
}

void maker_event(struct maker *m, uint64_t ts, uint16_t id, int32_t pid, const void *data,
		 size_t len)
{
	struct buf b;

	begin_event(m, &b, id, pid);
	buf_append(&b, data, len);
	end_event(m, &b, ts);
}

void event_number(struct maker *m, uint64_t ts, int32_t pid, uint32_t value)
{
	struct buf b;

	begin_event(m, &b, ID_NUMBER, pid);
	maker_u32(m, &b, value);
	end_event(m, &b, ts);
}

void event_print_mark(struct maker *m, uint64_t ts, int32_t pid, const char *text)
{
	struct buf b;

	begin_event(m, &b, ID_PRINT, pid);
	maker_word(m, &b, 0x1234);
	buf_puts(&b, text);
	buf_append(&b, "\n", 2);
	end_event(m, &b, ts);
}

void event_switch(struct maker *m, uint64_t ts, int32_t prev, const char *prev_comm, int64_t state,
		  int32_t prio, int32_t next, const char *next_comm)
{
	struct buf b;

	begin_event(m, &b, ID_SWITCH, prev);
	put_comm(&b, prev_comm);
	maker_u32(m, &b, (uint32_t)prev);
	maker_u32(m, &b, (uint32_t)prio);
	maker_u32(m, &b, (uint32_t)state);
	put_comm(&b, next_comm);
	maker_u32(m, &b, (uint32_t)next);
	maker_u32(m, &b, 120);
	end_event(m, &b, ts);
}

void event_newtask(struct maker *m, uint64_t ts, int32_t creator, int32_t tid, const char *comm,
		   uint64_t flags)
{
	struct buf b;

	begin_event(m, &b, ID_NEWTASK, creator);
	maker_u32(m, &b, (uint32_t)tid);
	put_comm(&b, comm);
	maker_u32(m, &b, 0);
	maker_u64(m, &b, flags);
	end_event(m, &b, ts);
}

void event_rename(struct maker *m, uint64_t ts, int32_t tid, const char *from, const char *to)
{
	struct buf b;

	begin_event(m, &b, ID_RENAME, tid);
	maker_u32(m, &b, (uint32_t)tid);
	put_comm(&b, from);
	put_comm(&b, to);
	end_event(m, &b, ts);
}

void maker_tasks(struct maker *m, uint64_t boot_ns, uint32_t origin, const struct maker_task *tasks,
		 size_t count)
{
	Traced__Capture__Tasks message = TRACED__CAPTURE__TASKS__INIT;
	Traced__Capture__Task task[32], *list[32];

	assert_true(count <= ARRAY_SIZE(task));
	for (size_t i = 0; i < count; i++) {
		traced__capture__task__init(&task[i]);
		task[i].tid = tasks[i].tid;
		task[i].tgid = tasks[i].tgid;
		task[i].comm.len = strlen(tasks[i].comm);
		task[i].comm.data = (uint8_t *)(uintptr_t)tasks[i].comm;
		task[i].start_ns = tasks[i].start_ns;
		task[i].kthread = tasks[i].kthread;
		list[i] = &task[i];
	}
	message.n_tasks = count;
	message.tasks = list;
	message.boot_ns = boot_ns;
	message.origin = origin;
	assert_int_equal(stream_write_message(&m->writer, CHUNK_TASKS, &message.base), 0);
}

void maker_stats(struct maker *m, uint32_t phase, const struct maker_stats *stats, size_t count)
{
	Traced__Capture__Stats message = TRACED__CAPTURE__STATS__INIT;
	Traced__Capture__CpuStats cpu[8], *list[8];

	assert_true(count <= ARRAY_SIZE(cpu));
	for (size_t i = 0; i < count; i++) {
		traced__capture__cpu_stats__init(&cpu[i]);
		cpu[i].cpu = stats[i].cpu;
		cpu[i].entries = stats[i].entries;
		cpu[i].overrun = stats[i].overrun;
		cpu[i].commit_overrun = stats[i].commit_overrun;
		cpu[i].dropped = stats[i].dropped;
		cpu[i].read = stats[i].read;
		list[i] = &cpu[i];
	}
	message.n_cpus = count;
	message.cpus = list;
	message.phase = phase;
	assert_int_equal(stream_write_message(&m->writer, CHUNK_STATS, &message.base), 0);
}

void maker_clocks(struct maker *m, uint64_t boot_ns, uint32_t phase)
{
	Traced__Capture__ClockReading reading = TRACED__CAPTURE__CLOCK_READING__INIT;
	Traced__Capture__Clocks message = TRACED__CAPTURE__CLOCKS__INIT;

	reading.clock = CLOCK_MONOTONIC;
	reading.boot_before_ns = reading.boot_after_ns = reading.value_ns = boot_ns;
	message.phase = phase;
	message.n_readings = 1;
	message.readings = (Traced__Capture__ClockReading *[]){ &reading };
	assert_int_equal(stream_write_message(&m->writer, CHUNK_CLOCKS, &message.base), 0);
}

void maker_end(struct maker *m)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;

	assert_int_equal(stream_write_message(&m->writer, CHUNK_END, &end.base), 0);
}

int give_slice(void *userdata, uint64_t from, uint64_t to)
{
	static const char zeros[4096];
	struct feed *f = userdata;
	uint64_t n;

	assert_true(to <= f->given && (to == 0 || from <= to));
	f->gone = MAX(f->gone, from);
	while (f->gone < to) {
		n = MIN(to - f->gone, (uint64_t)sizeof(zeros));
		assert_int_equal(pwrite(f->to, zeros, (size_t)n, (off_t)f->gone), n);
		f->gone += n;
	}
	f->waits++;
	f->memory_max = MAX(f->memory_max, mallinfo2().uordblks);
	if (f->given <= f->size / 10)
		f->memory_early = f->memory_max;
	if (f->dies_at && f->waits >= f->dies_at)
		return -EIO;
	if (f->given == f->size)
		return 0;
	f->seed = f->seed * 1103515245 + 12345;
	n = MIN(1 + (f->seed >> 8) % f->slice_max, f->size - f->given);
	for (uint64_t end = f->given + n; f->given < end;) {
		char piece[4096];
		size_t want = (size_t)MIN(end - f->given, (uint64_t)sizeof(piece));
		ssize_t got = pread(f->from, piece, want, (off_t)f->given);

		assert_true(got > 0);
		assert_int_equal(pwrite(f->to, piece, (size_t)got, (off_t)f->given), got);
		f->given += (uint64_t)got;
	}
	return 1;
}

void feed_begin(struct feed *f, int from)
{
	struct stat st;

	assert_int_equal(fstat(from, &st), 0);
	f->from = from;
	f->size = (uint64_t)st.st_size;
	while (f->given < STREAM_MAGIC_SIZE)
		give_slice(f, 0, 0);
}

void maker_begin(struct maker *m, uint32_t subbuf_size)
{
	maker_init(m, 8, false, subbuf_size);
	maker_head(m);
}

void page_flush(struct maker *m, uint64_t missed, uint32_t cpu)
{
	page_end(m, missed);
	maker_flush(m, cpu, BUFFER_MAIN, 0);
}

void maker_finish(struct maker *m)
{
	page_flush(m, 0, 0);
	maker_end(m);
}
