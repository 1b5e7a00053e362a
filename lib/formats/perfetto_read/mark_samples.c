/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/numbers.h"
#include "formats/perfetto_read/mark_writer.h"

/* PerfSample */

/* What a frame's mapping is called if it is of none. */
static const struct text no_module = { "[unknown]", 9 };

/* The innermost frame's number, which names them all; 0: none was taken. */
static int number_stack(struct pf_mark_writer *w, const struct interned *in,
			struct interned_stack *stack, struct error *err)
{
	uint32_t frame = 0;

	for (uint32_t i = 0; i < stack->depth; i++) {
		struct text function, path;
		uint32_t inner;
		int r;

		if (!interned_frame(in, stack->frames[i], &function, &path))
			pf_mark_leave_out(w, 1, "the name of a frame");
		if (!function.len)
			function = TEXT("[unknown]");
		if (text_equal(path, no_module))
			path = (struct text){ 0 };
		r = pf_mark_frame(w, frame, function, path, &inner, err);
		if (r < 0)
			return r;
		if (!inner)
			break;
		frame = inner;
	}
	stack->number = frame;
	stack->numbered = true;
	return 0;
}

int mark_samples_take(struct pf_mark_writer *w, const struct pf_packet *p,
		      const struct interned *in, struct error *err)
{
	struct wire_reader r = wire_reader_in(&p->perf_sample);
	struct mark m = { .phase = PHASE_GLOBAL_SAMPLE, .ts = p->timestamp };
	uint64_t fields[SAMPLE_CALLSTACK + 1] = { 0 }, weight = 1;
	struct interned_stack *stack = NULL;
	struct wire_field f;
	char id[16];
	int code;

	while (wire_read(&r, &f))
		if (f.number <= SAMPLE_CALLSTACK && f.type == WIRE_VARINT)
			fields[f.number] = f.value;
		else if (f.number == SAMPLE_WEIGHT && f.type == WIRE_VARINT)
			weight = f.value;
	if (r.bad || fields[SAMPLE_CPU] > UINT32_MAX || fields[SAMPLE_PID] > INT32_MAX ||
	    fields[SAMPLE_TID] > INT32_MAX)
		return pf_mark_leave_out(w, 1, "a sample that makes no sense");
	if (fields[SAMPLE_CALLSTACK]) {
		stack = interned_stack(in, fields[SAMPLE_CALLSTACK]);
		if (!stack)
			pf_mark_leave_out(w, 1, "the stack of a sample");
	}
	if (stack && !stack->numbered) {
		code = number_stack(w, in, stack, err);
		if (code < 0)
			return code;
	}
	if (stack && stack->number)
		m.part[PART_SF] = (struct text){ id, frame_id_spell(id, stack->number) };
	m.pid = (int32_t)fields[SAMPLE_PID];
	m.tid = (int32_t)fields[SAMPLE_TID];
	m.part[PART_NAME] = interned_timebase(in);
	if (!m.part[PART_NAME].len)
		m.part[PART_NAME] = TEXT("sample");
	buf_clear(&w->args);
	value_put_u64(&w->args, &TEXT("cpu"), VALUE_UINT, fields[SAMPLE_CPU]);
	value_put_u64(&w->args, &TEXT("pid"), VALUE_UINT, fields[SAMPLE_PID]);
	value_put_u64(&w->args, &TEXT("weight"), VALUE_UINT, weight);
	if (buf_error(&w->args) < 0)
		return error_errno(err, -ENOMEM, "can't read a sample");
	m.part[PART_EXTRA] = (struct text){ w->args.data, (uint32_t)w->args.len };
	return pf_mark_put(w, &m, err);
}
