/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/load.h"

#include <stdatomic.h>
#include <string.h>

#include "export/bounds.h"
#include "export/user_places.h"
#include "traced/mark_record.h"
#include "util/parse.h"

#define SYMBOL_CHUNKS_MAX 64
#define SYMBOLS_MAX (2U << 20)

struct loader {
	struct stream_index *index;
	const struct stream_reader *reader;
	struct index_options options;
	struct buf payload;
	bool have_layout, sealed;
	struct error bad_layout; /* why what was to be one is none */
	struct bounds bounds;
	struct budget tasks, clocks, stats, marks, mappings, others;
	bool clocks_full;
	uint32_t left_out;			 /* bit for each type: it was told that some were */
	struct chunk symbols[SYMBOL_CHUNKS_MAX]; /* to be read when one is looked for */
	size_t symbol_chunks, late_symbol_chunks;
	atomic_int symbols_result;
};

/* A million tasks; 25000 readings of all clocks. */
#define TASKS_MEMORY (128U << 20)
#define CLOCKS_MEMORY (16U << 20)
#define STATS_MEMORY (32U << 20)
#define MARKS_MEMORY (128U << 20)
#define MAPPINGS_MEMORY (128U << 20)
#define OTHERS_MEMORY (32U << 20)

/* NULL from unpacking: why. */
static int unpack_error(struct budget *b)
{
	int r = b->failed ?: -EBADMSG;

	b->failed = 0;
	return r;
}

static int add_subbufs(struct loader *l, const struct chunk *chunk, struct error *err)
{
	struct subbufs_header h;
	uint32_t buffer;
	int r;

	if (chunk->cpu > CPU_LIST_MAX)
		return error_set(err, -EBADMSG, "it names CPU %u", chunk->cpu);
	/* Version 1 has them as they came; a compressed one would have to be held whole. */
	if (chunk->flags)
		return error_set(err, -EBADMSG, "it holds compressed sub-buffers");
	if (chunk->length < sizeof(h))
		return error_set(err, -EBADMSG, "it has no header");
	r = stream_reader_load_part(l->reader, chunk, 0, sizeof(h), &l->payload, err);
	if (r < 0)
		return r;
	memcpy(&h, l->payload.data, sizeof(h));
	buffer = le32toh(h.buffer);
	/* A later version may record more rings. */
	if (buffer >= BUFFER_MORE + BUFFER_MORE_MAX)
		return 0;
	r = ring_index_add(&l->index->rings[buffer == BUFFER_TASKS ? BUFFER_TASKS : BUFFER_MAIN],
			   chunk->cpu, buffer,
			   &(struct subbufs_ref){
				   .offset = chunk->offset,
				   .length = chunk->length,
				   .skip = le32toh(h.skip),
			   });
	return r < 0 ? error_errno(err, r, "can't remember a chunk") : 0;
}

static int add_header(struct loader *l, struct error *err)
{
	struct trace_info *info = &l->index->info;
	struct event_table_env env;
	Traced__Capture__Header *h;
	unsigned major, minor;

	if (info->header)
		return error_set(err, -EBADMSG, "a second header");
	h = traced__capture__header__unpack(&l->others.allocator, l->payload.len,
					    (uint8_t *)l->payload.data);
	if (!h)
		return error_set(err, -EBADMSG, "the stream's header can't be understood");
	info->header = h;
	if (h->uuid.len >= 4)
		snprintf(info->sync_id, sizeof(info->sync_id), "traced_%02x%02x%02x%02x",
			 h->uuid.data[0], h->uuid.data[1], h->uuid.data[2], h->uuid.data[3]);
	if (h->version > STREAM_VERSION) {
		error_set(err, -EBADMSG, "the stream has version %u of the format", h->version);
		return error_hint(err, "this traced reads version %d: use a newer one",
				  STREAM_VERSION)
			       ?: -EBADMSG;
	}
	if (h->word_size != 4 && h->word_size != 8)
		return error_set(err, -EBADMSG, "the recorded kernel's word size is %u bytes",
				 h->word_size);
	env = (struct event_table_env){
		.word_size = h->word_size,
		.big_endian = h->big_endian,
		.pointers = l->options.raw_addresses || h->pointers_shown ? POINTER_RAW
									  : POINTER_HASHED,
	};
	text_options_parse(&info->text, l->options.trace_options ?: h->trace_options);
	env.text = info->text;
	if (sscanf(h->release, "%u.%u", &major, &minor) == 2)
		env.kernel = major << 16 | minor;
	if (h->pointer_key.len)
		memcpy(env.pointer_key, h->pointer_key.data,
		       MIN(h->pointer_key.len, sizeof(env.pointer_key)));
	if (event_table_new(&info->events, &env) < 0 || task_table_new(&info->tasks) < 0)
		return error_errno(err, -ENOMEM, "can't begin the export");
	event_table_set_user_places(info->events, user_place_find, info);
	return 0;
}

/* The number in the line "ID: number", as event_table_add takes it; -1: none that can be. */
static int format_id(const char *text, size_t len)
{
	const char *p = memmem(text, len, "\nID:", 4), *end = text + len;
	int id = 0;

	if (!p)
		return -1;
	for (p += 4; p < end && *p == ' ';)
		p++;
	if (p == end || *p < '0' || *p > '9')
		return -1;
	for (; p < end && *p >= '0' && *p <= '9' && id <= UINT16_MAX; p++)
		id = id * 10 + (*p - '0');
	return id <= UINT16_MAX ? id : -1;
}

/* Parsing is dear: what would not be used is not parsed. */
static int add_format(struct loader *l, struct error *err)
{
	const char *system = l->payload.data;
	size_t n = l->payload.len ? strnlen(system, l->payload.len) : 0;
	int id, r;

	if (n == l->payload.len)
		return error_set(err, -EBADMSG, "an event format without a system");
	id = format_id(system + n + 1, l->payload.len - n - 1);
	if (id < 0)
		return error_set(err, -EBADMSG, "an event format without a number");
	if (event_table_find(l->index->info.events, (uint16_t)id))
		return 0;
	r = bounds_take(&l->bounds, CHUNK_FORMAT, l->payload.len);
	if (r < 0)
		return r;
	return event_table_add(l->index->info.events, system, system + n + 1,
			       l->payload.len - n - 1, err);
}

static bool has_more_lines(const char *text, size_t len, size_t max)
{
	const char *end = text + len;

	while (text < end && (text = memchr(text, '\n', (size_t)(end - text)))) {
		text++;
		if (max-- == 0)
			return true;
	}
	return false;
}

static int read_symbols(struct loader *l, const struct chunk *chunk, struct buf *text,
			struct symbols **all)
{
	int r = stream_reader_load_max(l->reader, chunk, bounds_payload_max(CHUNK_KALLSYMS), text,
				       NULL);

	if (r == 0)
		r = bounds_take(&l->bounds, CHUNK_KALLSYMS, text->len);
	if (r == 0 && has_more_lines(text->data, text->len, SYMBOLS_MAX))
		r = -EFBIG;
	if (r < 0)
		return r;
	/* What modules brought stands behind the first one. */
	return *all ? symbols_add(*all, text->data, text->len)
		    : symbols_new(all, text->data, text->len);
}

/* A symbol_source_t. */
static struct symbols *load_symbols(void *userdata)
{
	struct loader *l = userdata;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct symbols *all = NULL;

	for (size_t i = 0; i < l->symbol_chunks; i++) {
		int r = read_symbols(l, &l->symbols[i], &text, &all);

		if (r < 0)
			l->symbols_result = r;
	}
	return all;
}

static int add_kallsyms(struct loader *l, const struct chunk *chunk, struct error *err)
{
	int r = l->symbol_chunks == SYMBOL_CHUNKS_MAX
			? -EFBIG
			: stream_reader_verify(l->reader, chunk, &l->payload, err);

	if (r < 0)
		return r;
	l->symbols[l->symbol_chunks++] = *chunk;
	event_table_set_symbols(l->index->info.events, load_symbols, l);
	return 0;
}

/* Of modules, while the recording is followed: its place in the stream may be given back any time.
 */
static int add_late_kallsyms(struct loader *l, const struct chunk *chunk, struct error *err)
{
	struct event_table *events = l->index->info.events;
	int r;

	if (!event_table_has_symbols(events) || l->late_symbol_chunks == SYMBOL_CHUNKS_MAX)
		return error_set(err, event_table_has_symbols(events) ? -EFBIG : -EBADMSG,
				 "symbols of modules, and none of the kernel before them");
	r = stream_reader_load_max(l->reader, chunk, bounds_payload_max(CHUNK_KALLSYMS),
				   &l->payload, err);
	if (r == 0)
		r = bounds_take(&l->bounds, CHUNK_KALLSYMS, l->payload.len);
	if (r == 0 && has_more_lines(l->payload.data, l->payload.len, SYMBOLS_MAX))
		r = -EFBIG;
	if (r < 0)
		return r;
	l->late_symbol_chunks++;
	return event_table_add_symbols(events, l->payload.data, l->payload.len);
}

/*
 * Unpacks a message and adds it to one of trace_info's arrays, which have room for the next power
 * of two at least, also once some were taken out.
 */
#define ADD_MESSAGE(l, budget, name, array, count)                                                 \
	({                                                                                         \
		void *_m = traced__capture__##name##__unpack(                                      \
			&(budget)->allocator, (l)->payload.len, (uint8_t *)(l)->payload.data);     \
		void *_p = NULL;                                                                   \
		if (_m)                                                                            \
			_p = (count) & ((count)-1)                                                 \
				     ? (array)                                                     \
				     : reallocarray((array), (count)*2 + 1, sizeof(*(array)));     \
		if (_p) {                                                                          \
			(array) = _p;                                                              \
			(array)[(count)++] = _m;                                                   \
		} else if (_m) {                                                                   \
			traced__capture__##name##__free_unpacked(_m, &(budget)->allocator);        \
		}                                                                                  \
		_p ? 0 : _m ? -ENOMEM : unpack_error(budget);                                      \
	})

#define PHASE_PERIODIC 1

/* Every second one goes: they are as good a scale for days as they were for hours. */
static void thin_clocks(struct loader *l)
{
	struct trace_info *info = &l->index->info;
	size_t kept = 0, count = info->clock_count;

	for (size_t i = 0; i < count; i++) {
		if (i % 2 && info->clocks[i]->phase == PHASE_PERIODIC)
			traced__capture__clocks__free_unpacked(info->clocks[i],
							       &l->clocks.allocator);
		else
			info->clocks[kept++] = info->clocks[i];
	}
	info->clock_count = kept;
	/* Little came of it: then it is not to be done for each chunk that follows. */
	l->clocks_full = kept > count / 4 * 3;
}

static int add_clocks(struct loader *l)
{
	struct trace_info *info = &l->index->info;
	int r = ADD_MESSAGE(l, &l->clocks, clocks, info->clocks, info->clock_count);

	if (r != -EFBIG || l->clocks_full)
		return r;
	thin_clocks(l);
	return ADD_MESSAGE(l, &l->clocks, clocks, info->clocks, info->clock_count);
}

/* Of the periodic counts the last one is enough: it stands in for an end that never came. */
static int add_stats(struct loader *l)
{
	struct trace_info *info = &l->index->info;
	int r = ADD_MESSAGE(l, &l->stats, stats, info->stats, info->stats_count);
	size_t n = info->stats_count;

	if (r < 0)
		return r;
	if (info->stats[n - 1]->buffer != BUFFER_MAIN) {
		traced__capture__stats__free_unpacked(info->stats[--info->stats_count],
						      &l->stats.allocator);
	} else if (n > 1 && info->stats[n - 2]->phase == PHASE_PERIODIC) {
		traced__capture__stats__free_unpacked(info->stats[n - 2], &l->stats.allocator);
		info->stats[n - 2] = info->stats[n - 1];
		info->stats_count--;
	}
	return 0;
}

static int add_end(struct loader *l)
{
	struct trace_info *info = &l->index->info;

	if (info->end)
		return -EBADMSG;
	info->end = traced__capture__end__unpack(&l->others.allocator, l->payload.len,
						 (uint8_t *)l->payload.data);
	return info->end ? 0 : unpack_error(&l->others);
}

static int add_layout(struct loader *l, struct error *err)
{
	const Traced__Capture__Header *h = l->index->info.header;
	struct page_layout *layout = &l->index->info.layout, *tasks = &l->index->info.tasks_layout;
	int r;

	if (h->time_shift > 63)
		return error_set(err, -EBADMSG, "the stream's clock can't be");
	r = page_layout_parse(layout, l->payload.data, l->payload.len, h->word_size, h->big_endian,
			      h->subbuf_size, err);
	if (r == 0)
		r = page_layout_parse(tasks, l->payload.data, l->payload.len, h->word_size,
				      h->big_endian, h->tasks_subbuf_size ?: layout->subbuf_size,
				      err);
	if (r < 0)
		return r;
	layout->clock = (struct page_clock){
		.differs = h->time_mult || h->time_offset,
		.mult = h->time_mult,
		.shift = h->time_shift,
		.offset = h->time_offset,
	};
	tasks->clock = layout->clock;
	l->have_layout = true;
	return 0;
}

/* Those come once. */
#define ADD_ONCE(l, name, to)                                                                      \
	({                                                                                         \
		if (!(to))                                                                         \
			(to) = traced__capture__##name##__unpack(&(l)->others.allocator,           \
								 (l)->payload.len,                 \
								 (uint8_t *)(l)->payload.data);    \
		(to) ? 0 : unpack_error(&(l)->others);                                             \
	})

static int add_samples(struct loader *l, const struct chunk *chunk, struct error *err)
{
	if (chunk->cpu > CPU_LIST_MAX || chunk->flags)
		return error_set(err, -EBADMSG, "samples that can't be");
	return ring_index_add(
		&l->index->samples, chunk->cpu, 0,
		&(struct subbufs_ref){ .offset = chunk->offset, .length = chunk->length });
}

/* A chunk whose payload was loaded. */
static int add_loaded(struct loader *l, const struct chunk *chunk, struct error *err)
{
	struct trace_info *info = &l->index->info;
	const char *text = l->payload.data;
	size_t len = l->payload.len;
	/* Of formats only those that are new count. */
	int r = chunk->type == CHUNK_FORMAT ? 0 : bounds_take(&l->bounds, chunk->type, len);

	if (r < 0)
		return r;
	switch (chunk->type) {
	case CHUNK_HEADER_PAGE:
		return add_layout(l, err);
	case CHUNK_FORMAT:
		return add_format(l, err);
	case CHUNK_PRINTK:
		return event_table_add_printk(info->events, text, len);
	case CHUNK_ENUMS:
		return event_table_add_enums(info->events, text, len);
	case CHUNK_ARGUMENTS:
		return event_table_add_arguments(info->events, text, len);
	case CHUNK_TASKS:
		return ADD_MESSAGE(l, &l->tasks, tasks, info->task_readings,
				   info->task_reading_count);
	case CHUNK_CLOCKS:
		return add_clocks(l);
	case CHUNK_STATS:
		return add_stats(l);
	case CHUNK_NOTE:
		return ADD_MESSAGE(l, &l->others, note, info->notes, info->note_count);
	case CHUNK_END:
		return add_end(l);
	case CHUNK_SAMPLER:
		return ADD_ONCE(l, sampler, info->sampler);
	case CHUNK_SAMPLE_COUNTS:
		return ADD_ONCE(l, sample_counts, info->sample_counts);
	case CHUNK_MAPPINGS:
		return ADD_MESSAGE(l, &l->mappings, mappings, info->mappings, info->mapping_count);
	case CHUNK_PRODUCER:
		r = mark_ring_list_add(&l->index->marks, &l->marks.allocator, (const uint8_t *)text,
				       len);
		return r == -EBADMSG ? unpack_error(&l->marks) : r;
	default:
		return 0;
	}
}

/* Of each type it is said once. */
static int leave_out(struct loader *l, unsigned type)
{
	uint32_t bit = type < BOUNDED_TYPES ? UINT32_C(1) << type : 1;

	l->index->incomplete = true;
	if (l->left_out & bit)
		return 0;
	l->left_out |= bit;
	return stream_index_warn(
		l->index, "some %s are left out: there are more of them than this version takes",
		bounds_name(type));
}

int loader_settle(struct loader *l)
{
	int r = l->symbols_result;

	l->symbols_result = 0;
	if (r == -EFBIG)
		return leave_out(l, CHUNK_KALLSYMS);
	if (r == 0)
		return 0;
	l->index->incomplete = true;
	return stream_index_warn(l->index, "kernel symbols are left out: %s", strerror(-r));
}

/* What decodes must not change under those who decode: sinks keep pointers into it. */
static bool decodes(unsigned type)
{
	return type == CHUNK_HEADER_PAGE || type == CHUNK_FORMAT || type == CHUNK_PRINTK ||
	       type == CHUNK_ENUMS || type == CHUNK_ARGUMENTS;
}

static int add_marks(struct loader *l, const struct chunk *chunk, struct error *err)
{
	int r;

	if (chunk->flags || chunk->length < sizeof(struct marks_header))
		return error_set(err, -EBADMSG, "marks that can't be");
	r = stream_reader_load_part(l->reader, chunk, 0, sizeof(struct marks_header), &l->payload,
				    err);
	if (r < 0)
		return r;
	r = mark_ring_list_chunk(&l->index->marks, chunk, (const uint8_t *)l->payload.data);
	return r == -EBADMSG ? error_set(err, r, "marks of a ring that was not announced") : r;
}

/* Everything but sub-buffers and marks. Later versions may have types of chunks that are not known
 * here. */
static int load_chunk(struct loader *l, const struct chunk *chunk, struct error *err)
{
	size_t max = bounds_payload_max(chunk->type);
	int r;

	if (!max) {
		r = stream_reader_verify(l->reader, chunk, &l->payload, err);
		if (r == 0 && chunk->type == CHUNK_FLUSH)
			stream_index_flushed(l->index, chunk->offset);
		return r;
	}
	if (l->sealed && decodes(chunk->type))
		return error_set(err, -EBADMSG, "what it describes was in use already");
	if (chunk->type == CHUNK_KALLSYMS)
		return l->sealed ? add_late_kallsyms(l, chunk, err) : add_kallsyms(l, chunk, err);
	r = stream_reader_load_max(l->reader, chunk, max, &l->payload, err);
	return r < 0 ? r : add_loaded(l, chunk, err);
}

static int warn_of_chunk(struct loader *l, const struct chunk *chunk, const char *why)
{
	char name[48];

	/* Where it lies in what was made of the file is of no use to anybody. */
	if (l->reader->pages_fd)
		return stream_index_warn(l->index, "of its %s one is left out: %s",
					 bounds_name(chunk->type), why);
	snprintf(name, sizeof(name), "the chunk at byte %llu ", (unsigned long long)chunk->offset);
	if (strncmp(why, name, strlen(name)) == 0)
		return stream_index_warn(l->index, "%s: it is left out", why);
	return stream_index_warn(l->index, "%sis left out: %s", name, why);
}

int loader_add(struct loader *l, const struct chunk *chunk, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	int r;

	/* Everything else is decoded by what the header says. */
	if (!l->index->info.header || chunk->type == CHUNK_HEADER) {
		if (chunk->type != CHUNK_HEADER)
			return error_set(err, -EBADMSG, "the stream does not begin with a header");
		r = stream_reader_load_max(l->reader, chunk, bounds_payload_max(CHUNK_HEADER),
					   &l->payload, &why);
		if (r == -EFBIG)
			return error_set(err, -EBADMSG, "the stream's header is too long");
		return r < 0 ? error_move(err, &why) : add_header(l, err);
	}
	if (chunk->type == CHUNK_SUBBUFS)
		r = add_subbufs(l, chunk, &why);
	else if (chunk->type == CHUNK_MARKS)
		r = add_marks(l, chunk, &why);
	else if (chunk->type == CHUNK_SAMPLES)
		r = add_samples(l, chunk, &why);
	else
		r = load_chunk(l, chunk, &why);
	if (r == -EFBIG)
		return leave_out(l, chunk->type);
	if (r == -ENOMEM)
		return error_errno(err, r, "can't load the capture stream");
	if (r < 0) {
		l->index->incomplete = true;
		r = warn_of_chunk(l, chunk, why.message ?: strerror(-r));
		if (chunk->type == CHUNK_HEADER_PAGE && !l->have_layout)
			error_move(&l->bad_layout, &why);
		return r;
	}
	return 0;
}

int loader_new(struct loader **ret, struct stream_index *index, const struct stream_reader *reader,
	       const struct index_options *options)
{
	struct loader *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->index = index;
	l->reader = reader;
	l->options = *options;
	budget_init(&l->tasks, TASKS_MEMORY);
	budget_init(&l->clocks, CLOCKS_MEMORY);
	budget_init(&l->stats, STATS_MEMORY);
	budget_init(&l->marks, MARKS_MEMORY);
	budget_init(&l->mappings, MAPPINGS_MEMORY);
	budget_init(&l->others, OTHERS_MEMORY);
	*ret = l;
	return 0;
}

struct loader *loader_free(struct loader *l)
{
	if (!l)
		return NULL;
	buf_deinit(&l->payload);
	error_deinit(&l->bad_layout);
	free(l);
	return NULL;
}

static int cant_begin(const struct loader *l, struct error *err)
{
	if (!l->index->info.header)
		error_set(err, -EBADMSG, "the capture stream ends before its header does");
	else if (l->bad_layout.message)
		error_set(err, -EBADMSG, "what its sub-buffers look like can't be known: %s",
			  l->bad_layout.message);
	else
		error_set(err, -EBADMSG,
			  "the capture stream ends before it tells what its sub-buffers look "
			  "like");
	return error_hint(err, "nothing can be read from it: record again") ?: -EBADMSG;
}

int loader_seal(struct loader *l, struct error *err)
{
	if (!l->index->info.header || !l->have_layout)
		return cant_begin(l, err);
	if (l->sealed)
		return 0;
	l->sealed = true;
	return event_table_seal(l->index->info.events, err);
}

void loader_forget_readings(struct loader *l)
{
	struct trace_info *info = &l->index->info;

	for (size_t i = 0; i < info->task_reading_count; i++)
		traced__capture__tasks__free_unpacked(info->task_readings[i], &l->tasks.allocator);
	info->task_reading_count = 0;
}

#define FREE_MESSAGES(name, array, count)                                                          \
	do {                                                                                       \
		for (size_t _i = 0; _i < (count); _i++)                                            \
			traced__capture__##name##__free_unpacked((array)[_i], NULL);               \
		free(array);                                                                       \
	} while (0)

void trace_info_deinit(struct trace_info *info)
{
	event_table_free(info->events);
	task_table_free(info->tasks);
	FREE_MESSAGES(tasks, info->task_readings, info->task_reading_count);
	FREE_MESSAGES(clocks, info->clocks, info->clock_count);
	FREE_MESSAGES(stats, info->stats, info->stats_count);
	FREE_MESSAGES(note, info->notes, info->note_count);
	FREE_MESSAGES(mappings, info->mappings, info->mapping_count);
	traced__capture__sampler__free_unpacked(info->sampler, NULL);
	traced__capture__sample_counts__free_unpacked(info->sample_counts, NULL);
	traced__capture__end__free_unpacked(info->end, NULL);
	traced__capture__header__free_unpacked(info->header, NULL);
}
