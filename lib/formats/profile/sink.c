/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sink for a profile in gperftools' format, for google-pprof and others. It has one address space
 * and no times: each mapped file gets its own address range, shared by all processes that run it.
 * Events are only counted.
 */
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/parse.h"
#include "base/plural.h"
#include "base/secret_hash.h"
#include "base/table.h"
#include "base/vec.h"
#include "export/sink.h"
#include "samples/sample_reader.h"

/* Address of the first file's code, and the range for each file. */
#define PLACE_FIRST UINT64_C(0x10000000000)
#define PLACE_SIZE UINT64_C(0x100000000)
/* Address for code in no known file. */
#define PLACE_UNKNOWN UINT64_C(0x1000)
#define DEPTH_MAX 1024
#define STACKS_BYTES_MAX (256U << 20)

struct known_stack {
	uint64_t count;
	uint32_t at, depth; /* range in the array of addresses */
};

struct stack_slot {
	uint64_t hash;
	uint32_t number; /* the stack's index + 1; 0: free */
};
DECLARE_TABLE(stack_slots, struct stack_slot);

struct sink_profile {
	struct sink sink;
	const struct trace_info *info;
	const struct sample_source *source;
	struct output *out;
	struct selection *selection; /* borrowed; NULL: all */
	bool kernel;		     /* including kernel addresses */
	struct known_stack *stacks;  /* owned; in order of their first sample */
	size_t stack_count, stack_cap;
	struct stack_slots slots;
	struct buf addresses; /* of all stacks; 8 bytes each, host byte order */
	uint64_t samples, left_out, kernel_only;
	uint64_t stack[DEPTH_MAX];
	uint32_t depth;
};

struct stack_key {
	const struct sink_profile *s;
	uint64_t hash;
};

/* Whether k is the stack s->stack. */
static bool profile_sink_is_stack(const struct stack_slot *slot, struct stack_key key)
{
	const struct sink_profile *s = key.s;
	const struct known_stack *k = &s->stacks[slot->number - 1];
	const uint64_t *all = (const uint64_t *)(const void *)s->addresses.data;

	return slot->hash == key.hash && k->depth == s->depth &&
	       !memcmp(all + k->at, s->stack, s->depth * sizeof(*all));
}

DEFINE_TABLE(stack_slots, struct stack_slot, struct stack_key, slot->number != 0, slot->hash,
	     profile_sink_is_stack(slot, key));

static int profile_not_one(struct error *err)
{
	error_set(err, -EINVAL, "not one sample was taken");
	return error_hint(err, "nothing ran long enough on the sampled CPUs");
}

static int profile_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	const struct trace_info *info = env->info;
	const struct export_options *o = env->options;
	struct output *out = env->out;
	struct sink_profile *s;

	if (!env->samples && info->sampler)
		return profile_not_one(err);
	if (!env->samples) {
		error_set(err, -EINVAL, "the recording has no samples for a profile");
		return error_hint(err, "tracectl record --sample 997hz --call-graph");
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_errno(err, -ENOMEM, "can't begin the profile");
	s->info = info;
	s->source = env->samples;
	s->out = out;
	s->selection = env->selection;
	s->kernel = o->raw_addresses;
	*ret = &s->sink;
	return 0;
}

static void profile_sink_free(struct sink *sink)
{
	struct sink_profile *s = container_of(sink, struct sink_profile, sink);

	TABLE_DEINIT(&s->slots);
	free(s->stacks);
	buf_deinit(&s->addresses);
	free(s);
}

static bool profile_wants_sample(const struct sink_profile *s, const struct sample_reader *r,
				 const struct perf_record *p)
{
	uint64_t ts = sample_reader_time(r, p->time);

	return selection_has_time(s->selection, ts) && selection_has_cpu(s->selection, p->cpu) &&
	       selection_has_task(s->selection, p->tid, ts);
}

static void profile_push(struct sink_profile *s, uint64_t address)
{
	if (s->depth < DEPTH_MAX)
		s->stack[s->depth++] = address;
}

static void profile_push_user(struct sink_profile *s, const struct address_spaces *spaces,
			      int32_t pid, uint64_t address, bool caller)
{
	/*
	 * The return address of a call that ends a program lies outside: look up the call itself.
	 */
	const struct code_mapping *m = address_spaces_find(spaces, pid, address - caller);
	uint64_t offset = m ? address - m->start + m->offset : 0;

	if (m && offset < PLACE_SIZE)
		profile_push(s, PLACE_FIRST + m->file * PLACE_SIZE + offset);
	else if (!s->depth)
		profile_push(s, PLACE_UNKNOWN);
}

/* Keeps the frames that profile readers can name: program code, and the kernel's on request. */
static void profile_take_stack(struct sink_profile *s, const struct sample_reader *r,
			       const struct perf_record *p)
{
	const struct perf_format *f = sample_reader_format(r);
	uint64_t context = p->kernel ? PERF_CHAIN_KERNEL : PERF_CHAIN_USER;
	bool caller = false;

	s->depth = 0;
	for (uint32_t i = 0; i < MAX(p->sample.count, UINT32_C(1)); i++) {
		uint64_t address = p->sample.count ? perf_record_chain(p, f, i) : p->sample.ip;

		if (address >= PERF_CHAIN_CONTEXT) {
			context = address;
			caller = false;
			continue;
		}
		if (context == PERF_CHAIN_KERNEL && s->kernel)
			profile_push(s, address);
		else if (context == PERF_CHAIN_USER && address)
			profile_push_user(s, sample_reader_spaces(r), p->pid, address, caller);
		caller = true;
	}
}

static int profile_sink_add_stack(struct sink_profile *s, struct error *err)
{
	uint64_t hash =
		XXH3_64bits_withSeed(s->stack, s->depth * sizeof(*s->stack), hash_secret[0]);
	struct stack_slot *slot = stack_slots_place(&s->slots, hash, (struct stack_key){ s, hash });
	const struct known_stack stack = {
		.count = 1,
		.at = (uint32_t)(s->addresses.len / sizeof(*s->stack)),
		.depth = s->depth,
	};

	if (slot && slot->number) {
		s->stacks[slot->number - 1].count++;
		return 0;
	}
	if (s->addresses.len > STACKS_BYTES_MAX) {
		error_set(err, -EOVERFLOW, "too many different stacks for a profile");
		return error_hint(err, "select fewer: --comm NAME, --pid PID");
	}
	if (!slot || vec_push(s->stacks, s->stack_count, s->stack_cap, stack) < 0)
		return error_errno(err, -ENOMEM, "can't make the profile");
	*slot = (struct stack_slot){ hash, (uint32_t)s->stack_count };
	s->slots.count++;
	buf_append(&s->addresses, s->stack, s->depth * sizeof(*s->stack));
	return buf_error(&s->addresses) < 0 ? error_errno(err, -ENOMEM, "can't make the profile")
					    : 0;
}

static int profile_collect(struct sink_profile *s, struct sample_reader *r, struct error *err)
{
	struct perf_record p;
	int n;

	while ((n = sample_reader_next(r, &p)) > 0) {
		if (!profile_wants_sample(s, r, &p)) {
			s->left_out++;
			continue;
		}
		profile_take_stack(s, r, &p);
		if (!s->depth) {
			s->kernel_only++;
			continue;
		}
		s->samples++;
		n = profile_sink_add_stack(s, err);
		if (n < 0)
			return n;
	}
	return n < 0 ? error_errno(err, n, "can't read the samples") : 0;
}

static void profile_put_slot(struct sink_profile *s, uint64_t value)
{
	value = s->info->header->big_endian ? htobe64(value) : htole64(value);
	buf_append(&s->out->buf, &value, sizeof(value));
}

static void profile_put_slots(struct sink_profile *s, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		profile_put_slot(s, values[i]);
}

/* Newlines in a file's name must be replaced. */
static void profile_put_mappings(struct sink_profile *s, const struct address_spaces *spaces)
{
	for (uint32_t i = 0; i < spaces->file_count; i++) {
		uint64_t start = PLACE_FIRST + i * PLACE_SIZE;
		const char *path = spaces->files[i].path;

		buf_printf(&s->out->buf, "%" PRIx64 "-%" PRIx64 " r-xp 00000000 00:00 0          ",
			   start, start + PLACE_SIZE);
		buf_append(&s->out->buf, path, strcspn(path, "\n"));
		buf_putc(&s->out->buf, '\n');
	}
}

/* Readers skip lines that are no mappings. */
static void profile_put_losses(struct sink_profile *s, const struct sample_sum *sum)
{
	for (size_t i = 0; i < sum->cpu_count; i++)
		if (sum->cpus[i].lost)
			buf_printf(&s->out->buf, "# CPU %u lost %" PRIu64 " records of samples\n",
				   sum->cpus[i].cpu, sum->cpus[i].lost);
}

static int profile_write(struct sink_profile *s, const struct address_spaces *spaces,
			 const struct sample_sum *sum)
{
	const uint64_t *all = (const uint64_t *)(const void *)s->addresses.data;
	uint64_t hz = MAX(s->info->sampler->hz, UINT32_C(1));
	const uint64_t header[] = { 0, 3, 0, MAX((1000000 + hz / 2) / hz, UINT64_C(1)), 0 };
	const uint64_t trailer[] = { 0, 1, 0 };
	int r;

	profile_put_slots(s, header, ARRAY_SIZE(header));
	for (size_t i = 0; i < s->stack_count; i++) {
		const struct known_stack *k = &s->stacks[i];

		profile_put_slot(s, k->count);
		profile_put_slot(s, k->depth);
		profile_put_slots(s, all + k->at, k->depth);
		r = output_settle(s->out);
		if (r < 0)
			return r;
	}
	profile_put_slots(s, trailer, ARRAY_SIZE(trailer));
	profile_put_mappings(s, spaces);
	profile_put_losses(s, sum);
	return output_flush(s->out, true);
}

/* Sets the error for a profile without samples. */
static int profile_explain_nothing(const struct sink_profile *s, const struct sample_reader *reader,
				   struct error *err)
{
	const char *wanted = s->left_out ? " that were asked for" : "";
	struct sample_sum sum;

	sample_reader_sum(reader, &sum);
	if (s->kernel_only) {
		error_set(err, -EINVAL, "all samples%s were taken in the kernel", wanted);
		return error_hint(err, "--raw-addresses has its addresses in the profile");
	}
	if (s->left_out) {
		error_set(err, -EINVAL, "none of the %" PRIu64 " sample%s matches", s->left_out,
			  plural_s(s->left_out));
		return error_hint(err, "check --from, --to, --pid, --thread, --comm and --cpus");
	}
	if (sum.damaged) {
		error_set(err, -EINVAL, "the samples can't be read: the recording is damaged");
		return error_hint(err, "its events may be whole: write it as .json or .txt");
	}
	return profile_not_one(err);
}

static int profile_close(struct sink *sink, const struct export_result *result _unused_,
			 struct error *err)
{
	struct sink_profile *s = container_of(sink, struct sink_profile, sink);
	_cleanup_(sample_reader_freep) struct sample_reader *reader = NULL;
	struct sample_sum sum;
	int r = sample_reader_new(&reader, s->source->index, s->source->stream);

	if (r < 0)
		return error_errno(err, r, "can't read the samples");
	r = profile_collect(s, reader, err);
	if (r < 0)
		return r;
	if (!s->samples)
		return profile_explain_nothing(s, reader, err);
	sample_reader_sum(reader, &sum);
	r = profile_write(s, sample_reader_spaces(reader), &sum);
	if (r < 0)
		return error_errno(err, r, "can't write the profile");
	r = sample_sum_warn(&sum, s->source->index);
	return r < 0 ? error_errno(err, r, "can't sum up the samples") : 0;
}

const struct sink_ops sink_profile_ops = {
	.format = {
		.name = "prof",
		.extension = ".prof",
		.summary = "the samples as a profile for google-pprof",
		.samples_only = true,
	},
	.keeps_samples = true,
	.open = profile_open,
	.event = sink_skip_event,
	.loss = sink_skip_loss,
	.close = profile_close,
	.free = profile_sink_free,
};
