/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/profile_marks.h"

#include <inttypes.h>
#include <string.h>

#include "base/io.h"
#include "marks/frame_ids.h"
#include "samples/cpu_profile.h"

/* Samples are named after their unit. */
#define SAMPLE_NAME TEXT("cpu-time")

struct reader {
	struct trace_file *file;
	struct profile_sum *sum;
	const struct profile_where *where;
	const struct export_symbols *symbols;
	struct cpu_profile profile;
	struct frame_ids frames;
	struct buf name;
};

/* Reads the file, at most CPU_PROFILE_MAX bytes. */
static int profile_read_all(int fd, struct buf *data, struct error *err)
{
	const size_t piece = 1U << 20;
	ssize_t n;

	do {
		char *to = buf_reserve(data, piece);

		if (!to)
			return error_errno(err, -ENOMEM, "can't read it");
		n = read_full(fd, to, piece);
		if (n < 0)
			return error_errno(err, (int)n, "can't read it");
		data->len += (size_t)n;
		if (data->len > CPU_PROFILE_MAX)
			return error_set(err, -EFBIG, "it is longer than %u MiB",
					 CPU_PROFILE_MAX >> 20);
	} while (n);
	return 0;
}

static const char *path_last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Name and module of a frame. */
static struct text profile_name_frame(struct reader *r, uint64_t pc, bool caller,
				      struct text *ret_module)
{
	/* A return address may lie behind the function's last instruction: use the call's. */
	uint64_t address = caller && pc ? pc - 1 : pc;
	const struct cpu_profile_mapping *m = cpu_profile_find(&r->profile, address);
	const char *module = m ? path_last_name(m->path) : "", *function = NULL;
	struct code_place place = { .path = m ? m->path : "", .address = address };

	*ret_module = (struct text){ module, (uint32_t)strlen(module) };
	if (m)
		place.offset = address - m->start + m->offset;
	if (m && r->symbols)
		function = r->symbols->find(r->symbols->userdata, &place);
	/* Drop the symbol version ("@GLIBC_2.2"). */
	if (function)
		return (struct text){ function, (uint32_t)strcspn(function, "@") };
	buf_clear(&r->name);
	r->sum->unnamed++;
	if (m)
		buf_printf(&r->name, "%s+0x%" PRIx64, *module ? module : "[anon]", place.offset);
	else
		buf_printf(&r->name, "0x%" PRIx64, address);
	return (struct text){ r->name.data, (uint32_t)r->name.len };
}

/* Adds the frames, outermost first. *ret 0: no usable frame. */
static int profile_put_frames(struct reader *r, const struct cpu_profile_stack *s, uint32_t *ret,
			      struct error *err)
{
	uint32_t frame = 0;

	for (uint32_t i = s->depth; i-- > 0;) {
		struct mark mark = { .phase = PHASE_FRAME, .source = r->where->source };
		uint32_t parent = frame;
		char id[16], above[16];
		int n;

		mark.part[PART_NAME] = profile_name_frame(r, cpu_profile_pc(&r->profile, s, i),
							  i > 0, &mark.part[PART_CAT]);
		n = buf_error(&r->name)
			    ?: frame_ids_get(&r->frames, parent, mark.part[PART_NAME],
					     mark.part[PART_CAT], 0, &frame);
		if (n == -ENOMEM)
			return error_errno(err, n, "can't keep its stacks");
		if (n < 0) {
			frame = parent;
			break;
		}
		mark.part[PART_ID] = (struct text){ id, frame_id_spell(id, frame) };
		if (parent)
			mark.part[PART_SF] = (struct text){ above, frame_id_spell(above, parent) };
		n = n > 0 ? mark_sort_add(r->file->marks, &mark, err) : 0;
		if (n < 0)
			return n;
	}
	*ret = frame;
	return 0;
}

/* Time at which the first `before` samples end. */
static uint64_t profile_place(const struct reader *r, uint64_t before)
{
	double part = (double)before / (double)MAX(r->sum->samples, UINT64_C(1));

	return r->where->from_ts + (uint64_t)(part * (double)r->sum->placed_ns);
}

static int profile_put_samples(struct reader *r, struct error *err)
{
	_cleanup_buf_ struct buf weight = BUF_INIT;
	struct cpu_profile *p = &r->profile;
	uint64_t before = 0;

	for (size_t i = 0; i < p->stack_count; i++) {
		const struct cpu_profile_stack *s = &p->stacks[i];
		struct mark mark = {
			.phase = PHASE_GLOBAL_SAMPLE,
			.source = r->where->source,
			.pid = r->where->tid,
			.tid = r->where->tid,
			.ts = profile_place(r, before),
			.part[PART_NAME] = SAMPLE_NAME,
		};
		uint32_t frame = 0;
		char id[16];
		int n = profile_put_frames(r, s, &frame, err);

		if (n < 0)
			return n;
		if (frame)
			mark.part[PART_SF] = (struct text){ id, frame_id_spell(id, frame) };
		buf_clear(&weight);
		value_put_u64(&weight, &TEXT("weight"), VALUE_UINT, s->count);
		mark.part[PART_EXTRA] = (struct text){ weight.data, (uint32_t)weight.len };
		n = buf_error(&weight) < 0 ? error_errno(err, -ENOMEM, "can't keep its samples")
					   : mark_sort_add(r->file->marks, &mark, err);
		if (n < 0)
			return n;
		r->file->count++;
		before += MIN(s->count, r->sum->samples - before);
	}
	return 0;
}

/* Names a process and a thread after the file. */
static int profile_put_names(struct reader *r, struct error *err)
{
	static const char *const items[] = { "process_name", "thread_name" };
	const char *name = path_last_name(r->sum->name);

	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		_cleanup_buf_ struct buf spelled = BUF_INIT, args = BUF_INIT;
		struct mark mark = {
			.phase = PHASE_METADATA,
			.source = r->where->source,
			.pid = r->where->tid,
			.tid = r->where->tid,
			.part[PART_NAME] = { items[i], (uint32_t)strlen(items[i]) },
		};
		int n;

		buf_printf(&spelled, "%s (CPU profile: no times)", name);
		value_put_text(&args, &TEXT("name"),
			       (struct text){ spelled.data, (uint32_t)spelled.len });
		mark.part[PART_ARGS] = (struct text){ args.data, (uint32_t)args.len };
		n = buf_error(&spelled) ?: buf_error(&args);
		n = n < 0 ? error_errno(err, n, "can't name it")
			  : mark_sort_add(r->file->marks, &mark, err);
		if (n < 0)
			return n;
	}
	return 0;
}

static void profile_sum_up(struct reader *r)
{
	const struct cpu_profile *p = &r->profile;
	uint64_t room = r->where->to_ts - r->where->from_ts, cpu_ns;

	if (__builtin_mul_overflow(p->period_us * 1000, p->samples, &cpu_ns))
		cpu_ns = UINT64_MAX;
	*r->sum = (struct profile_sum){
		.name = r->sum->name,
		.tid = r->where->tid,
		.period_us = p->period_us,
		.samples = p->samples,
		.stacks = p->stack_count,
		.from_ts = r->where->from_ts,
		.placed_ns = MIN(cpu_ns, room),
		.squeezed = cpu_ns > room,
	};
}

int profile_marks_read(struct trace_file *ret, struct profile_sum *sum,
		       const struct export_profile *from, const struct profile_where *where,
		       const struct export_symbols *symbols, struct scratch *scratch,
		       struct error *err)
{
	struct reader r = { .file = ret, .sum = sum, .where = where, .symbols = symbols };
	_cleanup_buf_ struct buf data = BUF_INIT;
	int n;

	*ret = (struct trace_file){ 0 };
	*sum = (struct profile_sum){ .name = from->name };
	n = mark_sort_new(&ret->marks, scratch, 0);
	n = n < 0 ? error_errno(err, n, "can't read it") : profile_read_all(from->fd, &data, err);
	if (n == 0)
		n = cpu_profile_parse(&r.profile, data.data, data.len, err);
	if (n == 0) {
		profile_sum_up(&r);
		n = profile_put_names(&r, err);
	}
	if (n == 0)
		n = profile_put_samples(&r, err);
	if (n == 0)
		n = mark_sort_finish(ret->marks, err);
	cpu_profile_deinit(&r.profile);
	frame_ids_deinit(&r.frames);
	buf_deinit(&r.name);
	return n;
}
