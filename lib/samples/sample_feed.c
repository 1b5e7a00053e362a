/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/sample_feed.h"

#include <string.h>

#include "marks/frame_ids.h"
#include "samples/sample_names.h"

struct sample_feed {
	const struct trace_info *info;
	struct sample_reader *reader; /* owned */
	struct sample_names names;
	struct frame_ids frames;
	bool by_address;
	struct frame_code code; /* of the frame given last */
	uint32_t source;
	struct perf_record sample;
	bool in_sample;
	/*
	 * The frame returned last, and the entries of the chain left; the outermost is last in the
	 * chain.
	 */
	uint32_t frame, left;
	char id[16], above[16];
	struct buf extra;
	uint64_t cut;
};

struct sample_feed *sample_feed_free(struct sample_feed *f)
{
	if (!f)
		return NULL;
	sample_reader_free(f->reader);
	sample_names_deinit(&f->names);
	frame_ids_deinit(&f->frames);
	buf_deinit(&f->extra);
	free(f);
	return NULL;
}

int sample_feed_see_tasks(struct sample_feed *f, const struct stream_index *index,
			  const struct stream_reader *stream)
{
	_cleanup_(sample_reader_freep) struct sample_reader *r = NULL;
	struct perf_record p;
	int32_t last = 0;
	int n = sample_reader_new(&r, index, stream);

	while (n == 0 && (n = sample_reader_next(r, &p)) > 0) {
		struct task *t = p.tid == last ? NULL
					       : task_table_find(f->info->tasks, p.tid,
								 sample_reader_time(r, p.time));

		last = p.tid;
		if (t && t->tid)
			t->seen = true;
		n = 0;
	}
	return n;
}

int sample_feed_new(struct sample_feed **ret, const struct stream_index *index,
		    const struct stream_reader *stream, const struct export_symbols *symbols,
		    bool raw_addresses, bool by_address, uint32_t source)
{
	_cleanup_(sample_feed_freep) struct sample_feed *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->info = &index->info;
	f->source = source;
	f->by_address = by_address;
	f->names = (struct sample_names){
		.kernel = event_table_symbols(index->info.events),
		.symbols = symbols,
		.raw_addresses = raw_addresses,
	};
	r = sample_reader_new(&f->reader, index, stream);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(f);
	return 0;
}

/* True if entry i is a kernel address: the nearest marker before it decides. */
static bool feed_is_kernel(const struct sample_feed *f, uint32_t i)
{
	const struct perf_format *format = sample_reader_format(f->reader);

	while (i-- > 0) {
		uint64_t context = perf_record_chain(&f->sample, format, i);

		if (context >= PERF_CHAIN_CONTEXT)
			return context == PERF_CHAIN_KERNEL;
	}
	return f->sample.kernel;
}

/* An entry right after a marker is the sampled address; all others are return addresses. */
static bool feed_is_caller(const struct sample_feed *f, uint32_t i)
{
	return i > 0 && perf_record_chain(&f->sample, sample_reader_format(f->reader), i - 1) <
				PERF_CHAIN_CONTEXT;
}

static int feed_name_place(struct sample_feed *f, bool kernel, uint64_t address,
			   struct place_name *ret)
{
	return kernel ? sample_names_kernel(&f->names, address, ret)
		      : sample_names_user(&f->names, sample_reader_spaces(f->reader), f->sample.pid,
					  address, ret);
}

/* 1: ret is a new frame; 0: it is known. */
static int feed_put_frame(struct sample_feed *f, bool kernel, uint64_t address, struct mark *ret)
{
	uint32_t parent = f->frame;
	struct place_name name;
	int r = feed_name_place(f, kernel, address, &name);

	if (r == 0)
		r = frame_ids_get(&f->frames, parent, name.function, name.module,
				  f->by_address ? name.offset : 0, &f->frame);
	if (r == -ENOSPC) {
		f->frame = parent;
		f->left = 0;
		f->cut++;
		return 0;
	}
	if (r <= 0)
		return r;
	*ret = (struct mark){
		.phase = PHASE_FRAME,
		.has = HAS_OWN_FRAMES,
		.source = f->source,
		.uid = UINT32_MAX, /* nobody's */
		.code = &f->code,
	};
	f->code = (struct frame_code){ .kernel = kernel, .offset = name.offset };
	if (name.file) {
		f->code.path = (struct text){ name.file->path, (uint32_t)strlen(name.file->path) };
		f->code.build_id =
			(struct text){ (const char *)name.file->build_id, name.file->build_id_len };
	}
	ret->part[PART_ID] = (struct text){ f->id, frame_id_spell(f->id, f->frame) };
	ret->part[PART_NAME] = name.function;
	ret->part[PART_CAT] = name.module;
	if (parent)
		ret->part[PART_SF] = (struct text){ f->above, frame_id_spell(f->above, parent) };
	return 1;
}

/* Starts at the chain's end, the outermost frame. */
static int feed_next_frame(struct sample_feed *f, struct mark *ret)
{
	while (f->left) {
		uint32_t i = --f->left;
		uint64_t address = f->sample.sample.ip;
		bool kernel = f->sample.kernel;
		int r;

		if (f->sample.sample.count) {
			address = perf_record_chain(&f->sample, sample_reader_format(f->reader), i);
			/* A chain of frame pointers may end with a null one. */
			if (address >= PERF_CHAIN_CONTEXT || !address)
				continue;
			kernel = feed_is_kernel(f, i);
			address -= feed_is_caller(f, i) && address;
		}
		r = feed_put_frame(f, kernel, address, ret);
		if (r)
			return r;
	}
	return 0;
}

static int feed_put_sample(struct sample_feed *f, struct mark *ret)
{
	const char *event = f->info->sampler->event;

	*ret = (struct mark){
		.phase = PHASE_GLOBAL_SAMPLE,
		.cpu_mode = f->sample.cpu_mode,
		.has = HAS_OWN_FRAMES,
		.source = f->source,
		.pid = f->sample.pid,
		.tid = f->sample.tid,
		.ts = sample_reader_time(f->reader, f->sample.time),
		.part[PART_NAME] = { event, (uint32_t)strlen(event) },
	};
	buf_clear(&f->extra);
	value_put_u64(&f->extra, &TEXT("cpu"), VALUE_UINT, f->sample.cpu);
	value_put_u64(&f->extra, &TEXT("weight"), VALUE_UINT, f->sample.sample.period);
	ret->part[PART_EXTRA] = (struct text){ f->extra.data, (uint32_t)f->extra.len };
	if (f->frame)
		ret->part[PART_SF] = (struct text){ f->id, frame_id_spell(f->id, f->frame) };
	f->in_sample = false;
	return buf_error(&f->extra) ?: 1;
}

int sample_feed_next(struct sample_feed *f, struct mark *ret)
{
	int r;

	if (!f->in_sample) {
		r = sample_reader_next(f->reader, &f->sample);
		if (r <= 0)
			return r;
		f->in_sample = true;
		f->frame = 0;
		f->left = f->sample.sample.count ?: 1;
	}
	r = feed_next_frame(f, ret);
	return r ?: feed_put_sample(f, ret);
}

void sample_feed_sum(const struct sample_feed *f, struct sample_feed_sum *ret)
{
	*ret = (struct sample_feed_sum){
		.unnamed = f->names.unnamed,
		.cut = f->cut,
	};
	sample_reader_sum(f->reader, &ret->samples);
	ret->untied = sample_reader_tie(f->reader, &ret->bound) < 0;
}
