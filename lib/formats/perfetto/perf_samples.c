/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/perf_samples.h"

#include <xxhash.h>

#include "formats/perfetto/numbers.h"
#include "formats/perfetto/packet.h"

#define FRAMES_MAX (1U << 19) /* of a file */

void pf_perf_init(struct pf_perf *p)
{
	*p = (struct pf_perf){ .functions.field = INTERNED_FUNCTION_NAMES,
			       .paths.field = INTERNED_MAPPING_PATHS,
			       .build_ids.field = INTERNED_BUILD_IDS,
			       .frames.max = FRAMES_MAX };
}

void pf_perf_deinit(struct pf_perf *p)
{
	pf_perf_restart(p);
	buf_deinit(&p->scratch);
}

void pf_perf_restart(struct pf_perf *p)
{
	pf_interner_deinit(&p->functions);
	pf_interner_deinit(&p->paths);
	pf_interner_deinit(&p->build_ids);
	pf_interner_deinit(&p->mappings);
	pf_interner_deinit(&p->frames);
	p->said = false;
	p->stacks = 0;
}

bool pf_perf_has_cpu(const struct mark *sample, uint32_t *ret_cpu)
{
	struct value v;

	if (!value_find(sample->part[PART_EXTRA], "cpu", &v) ||
	    (v.type != VALUE_INT && v.type != VALUE_UINT) || v.u > UINT32_MAX)
		return false;
	*ret_cpu = (uint32_t)v.u;
	return true;
}

/* Writes the defaults of all samples. */
static void perf_sample_put_defaults(struct pf_perf *p, struct buf *out)
{
	size_t packet, defaults, perf, timebase;

	p->said = true;
	if (!p->event)
		return;
	packet = pf_open(out, 1);
	pf_uint(out, PACKET_SEQUENCE, PF_SEQUENCE);
	defaults = pf_open(out, PACKET_DEFAULTS);
	perf = pf_open(out, DEFAULTS_PERF);
	timebase = pf_open(out, PERF_TIMEBASE);
	pf_uint(out, TIMEBASE_FREQUENCY, p->hz);
	pf_text(out, TIMEBASE_NAME, (struct text){ p->event, (uint32_t)strlen(p->event) });
	pf_close(out, timebase);
	pf_close(out, perf);
	pf_close(out, defaults);
	pf_uint(out, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_STATE);
	pf_close(out, packet);
}

/* Readers take a mapping of this name for the kernel's. */
#define KERNEL_MAPPING TEXT("kernel")

static struct text perf_sample_path(const struct stack_place *f)
{
	if (f->has_code && f->code.kernel && text_equal(f->module, TEXT("[kernel]")))
		return KERNEL_MAPPING;
	if (f->has_code && f->code.path.len)
		return f->code.path;
	return f->module.len ? f->module : TEXT("[unknown]");
}

/* Numbers the content of scratch, of any length. known: empty if it was known before. 0: too many.
 */
static uint64_t perf_sample_number(struct pf_perf *p, struct pf_interner *of, struct buf *known)
{
	XXH128_canonical_t key;

	XXH128_canonicalFromHash(&key, XXH3_128bits(p->scratch.data, p->scratch.len));
	return pf_intern_bytes(of, (struct text){ (const char *)&key, sizeof(key) }, known);
}

/* Numbers a file by its path and build ID; its mapped address does not matter. */
static uint64_t perf_sample_intern_module(struct pf_perf *p, const struct stack_place *f,
					  struct buf *fresh)
{
	_cleanup_buf_ struct buf known = BUF_INIT;
	uint64_t iid, path, build_id;
	size_t mapping;

	buf_clear(&p->scratch);
	buf_append(&p->scratch, f->code.build_id.data, f->code.build_id.len);
	buf_putc(&p->scratch, '\n');
	buf_append(&p->scratch, perf_sample_path(f).data, perf_sample_path(f).len);
	iid = perf_sample_number(p, &p->mappings, &known);
	if (!iid || !known.len)
		return iid;
	path = pf_intern(&p->paths, perf_sample_path(f), fresh);
	build_id = pf_intern_bytes(&p->build_ids, f->code.build_id, fresh);
	mapping = pf_open(fresh, INTERNED_MAPPINGS);
	pf_uint(fresh, 1, iid);
	if (build_id)
		pf_uint(fresh, MAPPING_BUILD_ID, build_id);
	if (path)
		pf_uint(fresh, MAPPING_PATH, path);
	pf_close(fresh, mapping);
	return iid;
}

/* Spells in scratch all that tells the frame from others. */
static void perf_sample_spell_frame(struct pf_perf *p, const struct stack_place *f)
{
	buf_clear(&p->scratch);
	buf_append(&p->scratch, f->name.data, f->name.len);
	buf_putc(&p->scratch, '\n');
	buf_append(&p->scratch, f->module.data, f->module.len);
	if (!f->has_code)
		return;
	buf_putc(&p->scratch, '\n');
	buf_append(&p->scratch, &f->code.offset, sizeof(f->code.offset));
	buf_append(&p->scratch, f->code.build_id.data, f->code.build_id.len);
	buf_append(&p->scratch, f->code.path.data, f->code.path.len);
}

/* 0: too many frames. */
static uint64_t perf_sample_intern_frame(struct pf_perf *p, const struct stack_place *f,
					 struct buf *fresh)
{
	_cleanup_buf_ struct buf known = BUF_INIT;
	uint64_t iid, function, module;
	size_t frame;

	perf_sample_spell_frame(p, f);
	iid = perf_sample_number(p, &p->frames, &known);
	if (!iid || !known.len)
		return iid;
	function = pf_intern(&p->functions, f->name, fresh);
	module = perf_sample_intern_module(p, f, fresh);
	frame = pf_open(fresh, INTERNED_FRAMES);
	pf_uint(fresh, 1, iid);
	if (function)
		pf_uint(fresh, FRAME_FUNCTION, function);
	if (module) {
		pf_uint(fresh, FRAME_MAPPING, module);
		/* Merged frames have no address: use the function's number. */
		pf_uint(fresh, FRAME_REL_PC, f->has_code ? f->code.offset : iid);
	}
	if (f->has_code)
		pf_uint(fresh, FRAME_KIND, f->code.kernel ? FRAME_KERNEL : FRAME_NATIVE);
	pf_close(fresh, frame);
	return iid;
}

static uint64_t perf_sample_intern_stack(struct pf_perf *p, struct stack_frames *frames,
					 const struct mark *sample, struct buf *fresh)
{
	_cleanup_buf_ struct buf numbers = BUF_INIT;
	struct frame_stack stack;

	if (!stack_frames_get_stack(frames, sample, PART_SF, &stack))
		return 0;
	if (*stack.number > 0)
		return *stack.number;
	pf_uint(&numbers, 1, p->stacks + 1);
	for (unsigned i = stack.depth; i-- > 0;) {
		uint64_t iid = perf_sample_intern_frame(p, &stack.frames[i], fresh);

		if (iid)
			pf_uint(&numbers, CALLSTACK_FRAMES, iid);
	}
	if (buf_error(&numbers) < 0)
		fresh->failed = true;
	pf_message(fresh, INTERNED_CALLSTACKS, &numbers);
	return *stack.number = ++p->stacks;
}

int pf_perf_put(struct pf_perf *p, struct stack_frames *frames, const struct mark *sample,
		int32_t pid, enum pf_clock clock, struct buf *out)
{
	_cleanup_buf_ struct buf fresh = BUF_INIT;
	size_t packet, content;
	struct value weight;
	uint64_t stack;
	uint32_t cpu = 0;

	if (!p->said)
		perf_sample_put_defaults(p, out);
	pf_perf_has_cpu(sample, &cpu);
	stack = perf_sample_intern_stack(p, frames, sample, &fresh);
	packet = pf_open(out, 1);
	pf_uint(out, PACKET_TIMESTAMP, sample->ts);
	if (clock)
		pf_uint(out, PACKET_CLOCK, clock);
	pf_uint(out, PACKET_SEQUENCE, PF_SEQUENCE);
	if (fresh.len)
		pf_message(out, PACKET_INTERNED_DATA, &fresh);
	content = pf_open(out, PACKET_PERF_SAMPLE);
	pf_uint(out, SAMPLE_CPU, cpu);
	pf_uint(out, SAMPLE_PID, (uint32_t)pid);
	pf_uint(out, SAMPLE_TID, (uint32_t)sample->tid);
	if (stack)
		pf_uint(out, SAMPLE_CALLSTACK, stack);
	/* The kernel's numbers are the message's. */
	if (sample->cpu_mode)
		pf_uint(out, SAMPLE_CPU_MODE, sample->cpu_mode);
	if (value_find(sample->part[PART_EXTRA], "weight", &weight) &&
	    (weight.type == VALUE_INT || weight.type == VALUE_UINT) && weight.u > 1)
		pf_uint(out, SAMPLE_WEIGHT, weight.u);
	pf_close(out, content);
	pf_uint(out, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_STATE);
	pf_close(out, packet);
	return buf_error(&fresh) ?: buf_error(out);
}
