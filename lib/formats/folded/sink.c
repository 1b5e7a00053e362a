/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sink for folded stacks, which flamegraph.pl and speedscope read: a line for each different stack,
 * "TASK;OUTERMOST;...;INNERMOST SUM". SUM is that of the samples' weights. Events are only counted.
 */
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/plural.h"
#include "base/secret_hash.h"
#include "base/table.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "export/selection.h"
#include "export/sink.h"
#include "marks/stack_frames.h"
#include "trace/index.h"

#define LINES_BYTES_MAX (256U << 20)

struct folded_line {
	size_t at;
	uint32_t len;
	uint64_t sum;
};

struct line_slot {
	uint64_t hash;
	uint32_t number; /* the line's index + 1; 0: free */
};
DECLARE_TABLE(line_slots, struct line_slot);

struct sink_folded {
	struct sink sink;
	const struct sink_env *env;
	struct stack_frames frames;
	struct folded_line *lines; /* owned; in order of their first sample */
	size_t line_count, line_cap;
	struct line_slots slots;
	struct buf text; /* of all lines */
	struct buf line; /* of the current sample */
	struct buf event, other_event;
	uint64_t left_out, stackless;
};

struct line_key {
	const struct sink_folded *s;
	uint64_t hash;
};

static bool folded_is_line(const struct line_slot *slot, struct line_key key)
{
	const struct sink_folded *s = key.s;
	const struct folded_line *l = &s->lines[slot->number - 1];

	return slot->hash == key.hash && l->len == s->line.len &&
	       !memcmp(s->text.data + l->at, s->line.data, l->len);
}

DEFINE_TABLE(line_slots, struct line_slot, struct line_key, slot->number != 0, slot->hash,
	     folded_is_line(slot, key));

static int folded_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	struct sink_folded *s;

	if (!env->samples && !env->marks) {
		error_set(err, -EINVAL, "the recording has no samples");
		return error_hint(err, "tracectl record --sample 997hz --call-graph");
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_errno(err, -ENOMEM, "can't begin the folded stacks");
	s->env = env;
	*ret = &s->sink;
	return 0;
}

/* ";" ends a frame, and a newline ends a line. */
static void folded_put_name(struct buf *out, const char *name, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		unsigned char c = (unsigned char)name[i];

		n = utf8_length((const unsigned char *)name + i, len - i);
		if (!n)
			buf_puts(out, UTF8_REPLACEMENT);
		else if (c == ';')
			buf_putc(out, ':');
		else if (c < ' ' || c == 0x7f)
			buf_printf(out, "\\x%02x", c);
		else
			buf_append(out, name + i, n);
		n = n ?: 1;
	}
}

static void folded_put_task(struct sink_folded *s, const struct mark *m)
{
	const struct task *task = task_table_find(s->env->info->tasks, m->tid, m->ts);

	if (task && task->comm[0])
		folded_put_name(&s->line, task->comm, strlen(task->comm));
	else
		buf_printf(&s->line, "%" PRId32, m->tid);
}

static uint64_t folded_weight(const struct mark *m)
{
	struct value v;
	double d;

	if (!value_find(m->part[PART_EXTRA], "weight", &v))
		return 1;
	if (v.type == VALUE_UINT)
		return v.u;
	return value_number(&v, &d) && d >= 0 && d < 0x1p63 ? (uint64_t)(d + 0.5) : 1;
}

static bool folded_wants(const struct sink_folded *s, const struct mark *m)
{
	struct selection *selection = s->env->selection;
	struct value cpu;

	return selection_has_time(selection, m->ts) &&
	       selection_has_task(selection, m->tid, m->ts) &&
	       (!value_find(m->part[PART_EXTRA], "cpu", &cpu) || cpu.type != VALUE_UINT ||
		selection_has_cpu(selection, (uint32_t)cpu.u));
}

static int folded_add_line(struct sink_folded *s, uint64_t weight, struct error *err)
{
	uint64_t hash = XXH3_64bits_withSeed(s->line.data, s->line.len, hash_secret[0]);
	struct line_slot *slot = line_slots_place(&s->slots, hash, (struct line_key){ s, hash });
	const struct folded_line line = { s->text.len, (uint32_t)s->line.len, weight };

	if (slot && slot->number) {
		struct folded_line *l = &s->lines[slot->number - 1];

		if (__builtin_add_overflow(l->sum, weight, &l->sum))
			l->sum = UINT64_MAX;
		return 0;
	}
	if (s->text.len > LINES_BYTES_MAX) {
		error_set(err, -EOVERFLOW, "too many different stacks to fold");
		return error_hint(err, "select fewer: --comm NAME, --pid PID");
	}
	buf_append(&s->text, s->line.data, s->line.len);
	if (!slot || buf_error(&s->text) < 0 ||
	    vec_push(s->lines, s->line_count, s->line_cap, line) < 0)
		return error_errno(err, -ENOMEM, "can't fold the stacks");
	*slot = (struct line_slot){ hash, (uint32_t)s->line_count };
	s->slots.count++;
	return 0;
}

/* Remembers the name of the first sample's event, and one that differs. */
static void folded_see_event(struct sink_folded *s, struct text name)
{
	if (!s->event.len)
		buf_append(&s->event, name.data, name.len);
	else if (!s->other_event.len &&
		 !text_equal((struct text){ s->event.data, (uint32_t)s->event.len }, name))
		buf_append(&s->other_event, name.data, name.len);
}

static int folded_sample(struct sink_folded *s, const struct mark *m, struct error *err)
{
	struct frame_stack stack;

	if (!folded_wants(s, m)) {
		s->left_out++;
		return 0;
	}
	buf_clear(&s->line);
	folded_put_task(s, m);
	if (!stack_frames_get_stack(&s->frames, m, PART_SF, &stack)) {
		s->stackless++;
		buf_puts(&s->line, ";no stack");
	}
	while (stack.depth) {
		struct text name = stack.frames[--stack.depth].name;

		buf_putc(&s->line, ';');
		folded_put_name(&s->line, name.data, name.len);
	}
	folded_see_event(s, m->part[PART_NAME]);
	if (buf_error(&s->line) < 0)
		return error_errno(err, -ENOMEM, "can't fold the stacks");
	return folded_add_line(s, folded_weight(m), err);
}

static int folded_mark(struct sink *sink, const struct mark *m, struct error *err)
{
	struct sink_folded *s = container_of(sink, struct sink_folded, sink);
	int r = 0;

	if (m->phase == PHASE_GLOBAL_SAMPLE)
		return folded_sample(s, m, err);
	if (m->phase == PHASE_FRAME)
		r = stack_frames_add(&s->frames, m);
	/* shares_warn() reports that there is no room for a frame. */
	return r == -ENOMEM ? error_errno(err, r, "can't keep the stacks") : 0;
}

static int folded_warn(struct sink *sink, struct stream_index *index)
{
	struct sink_folded *s = container_of(sink, struct sink_folded, sink);
	int r = shares_warn(&s->frames.shares, "stack frames", NULL, index);

	if (r == 0)
		r = stream_index_warn_count(index, s->stackless, "sample has no stack",
					    "samples have no stack");
	if (r == 0 && s->other_event.len)
		r = stream_index_warn(index,
				      "the sums mix samples of different events: %.*s and %.*s",
				      (int)MIN(s->event.len, 80U), s->event.data,
				      (int)MIN(s->other_event.len, 80U), s->other_event.data);
	return r;
}

static int folded_explain_nothing(const struct sink_folded *s, struct error *err)
{
	if (s->left_out) {
		error_set(err, -EINVAL, "none of the %" PRIu64 " sample%s matches", s->left_out,
			  plural_s(s->left_out));
		return error_hint(err, "check --from, --to, --pid, --thread, --comm and --cpus");
	}
	error_set(err, -EINVAL, "not one sample was taken");
	return error_hint(err, "tracectl record --sample 997hz --call-graph");
}

static int folded_close(struct sink *sink, const struct export_result *result _unused_,
			struct error *err)
{
	struct sink_folded *s = container_of(sink, struct sink_folded, sink);
	struct output *out = s->env->out;
	int r = 0;

	if (!s->line_count)
		return folded_explain_nothing(s, err);
	for (size_t i = 0; i < s->line_count && r == 0; i++) {
		buf_append(&out->buf, s->text.data + s->lines[i].at, s->lines[i].len);
		buf_printf(&out->buf, " %" PRIu64 "\n", s->lines[i].sum);
		r = output_settle(out);
	}
	if (r == 0)
		r = output_flush(out, true);
	return r < 0 ? error_errno(err, r, "can't write the folded stacks") : 0;
}

static void folded_free(struct sink *sink)
{
	struct sink_folded *s = container_of(sink, struct sink_folded, sink);

	stack_frames_deinit(&s->frames);
	TABLE_DEINIT(&s->slots);
	free(s->lines);
	buf_deinit(&s->text);
	buf_deinit(&s->line);
	buf_deinit(&s->event);
	buf_deinit(&s->other_event);
	free(s);
}

const struct sink_ops sink_folded_ops = {
	.format = {
		.name = "folded",
		.extension = ".folded",
		.summary = "the samples as folded stacks, for flamegraph.pl and speedscope",
		.samples_only = true,
	},
	.keeps_samples = true,
	.open = folded_open,
	.event = sink_skip_event,
	.loss = sink_skip_loss,
	.mark = folded_mark,
	.warn = folded_warn,
	.close = folded_close,
	.free = folded_free,
};
