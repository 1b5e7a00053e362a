/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/load.h"

#include <string.h>

#include "base/parse.h"
#include "base/search.h"
#include "trace/bounds.h"
#include "trace/info_messages.h"
#include "trace/kallsyms.h"
#include "trace/last_boot.h"
#include "traced/mark_record.h"

#define MARKS_MEMORY MARK_RINGS_BYTES

struct loader {
	struct stream_index *index;
	const struct stream_reader *reader;
	struct index_options options;
	struct buf payload;
	bool have_layout, sealed;
	struct error bad_layout; /* why header_page describes no usable layout */
	struct bounds bounds;
	struct budget marks;
	struct info_messages messages;
	struct kallsyms kallsyms;
	struct last_boot last_boot;
	uint32_t left_out; /* bit per type: a warning about its excess was given */
};

/* A later version may record more rings. */
static int loader_leave_ring_out(struct loader *l)
{
	const uint32_t bit = UINT32_C(1) << CHUNK_SUBBUFS;

	l->index->incomplete = true;
	if (l->left_out & bit)
		return 0;
	l->left_out |= bit;
	return stream_index_warn(l->index,
				 "sub-buffers of rings unknown to this version are left out");
}

static int loader_add_subbufs(struct loader *l, const struct chunk *chunk, struct error *err)
{
	struct subbufs_header h;
	struct ring_index *ring;
	uint32_t buffer;
	int r;

	if (chunk->cpu > CPU_LIST_MAX)
		return error_set(err, -EBADMSG, "CPU %u is out of range", chunk->cpu);
	/*
	 * Version 1 stores sub-buffers uncompressed: a compressed chunk would have to be held
	 * whole.
	 */
	if (chunk->flags)
		return error_set(err, -EBADMSG, "it holds compressed sub-buffers");
	if (chunk->length < sizeof(h))
		return error_set(err, -EBADMSG, "it has no header");
	r = stream_reader_load_part(l->reader, chunk, 0, sizeof(h), &l->payload, err);
	if (r < 0)
		return r;
	memcpy(&h, l->payload.data, sizeof(h));
	buffer = le32toh(h.buffer);
	if (buffer >= BUFFER_MORE + BUFFER_MORE_MAX) {
		/* Nothing else would notice that it is damaged. */
		r = stream_reader_verify(l->reader, chunk, &l->payload, err);
		return r < 0 ? r : loader_leave_ring_out(l);
	}
	ring = &l->index->rings[buffer == BUFFER_TASKS ? BUFFER_TASKS : BUFFER_MAIN];
	ring->hole = l->reader->hole;
	if (buffer != BUFFER_TASKS && !ring->count)
		ring->first_hole = ring->hole;
	r = ring_index_add(ring, chunk->cpu, buffer,
			   &(struct chunk_ref){
				   .offset = chunk->offset,
				   .length = chunk->length,
				   .skip = le32toh(h.skip),
			   });
	return r < 0 ? error_errno(err, r, "can't index a chunk") : 0;
}

/* Like find_vma(): the mapping with the address, or else the next one. */
static const Traced__Capture__Mapping *mapping_at(const Traced__Capture__ProcessMappings *process,
						  uint64_t address)
{
	size_t at = lower_bound(i, process->n_mappings, process->mappings[i]->end <= address);

	return at < process->n_mappings ? process->mappings[at] : NULL;
}

/* "[vdso]" and "[heap]" are no files. */
static bool mapping_file(const Traced__Capture__Mapping *m, struct user_place *ret)
{
	if (!m || !m->path.len || m->path.data[0] == '[')
		return false;
	*ret = (struct user_place){ .path = (const char *)m->path.data,
				    .path_len = m->path.len,
				    .start = m->start };
	return true;
}

/*
 * A user_place_source_t for a struct trace_info. The latest reading counts first. Like the kernel,
 * which does not check that the mapping starts before the address, it assigns an unmapped address
 * to the next mapping. Stacks walked by frame pointers that do not exist are full of such
 * addresses.
 */
static bool user_place_find(const void *userdata, int32_t tgid, uint64_t address,
			    struct user_place *ret)
{
	const struct trace_info *info = userdata;
	const Traced__Capture__Mapping *next = NULL;
	bool asked = false;

	for (size_t i = info->mapping_count; i-- > 0;) {
		const Traced__Capture__Mappings *all = info->mappings[i];

		for (size_t k = 0; k < all->n_processes; k++) {
			const Traced__Capture__Mapping *m;

			if (all->processes[k]->pid != tgid)
				continue;
			m = mapping_at(all->processes[k], address);
			if (m && m->start <= address)
				return mapping_file(m, ret);
			if (!asked && all->all)
				next = m;
			asked = true;
		}
	}
	return mapping_file(next, ret);
}

static int loader_add_header(struct loader *l, struct error *err)
{
	struct trace_info *info = &l->index->info;
	struct event_table_env env;
	Traced__Capture__Header *h;
	unsigned major, minor;
	int r;

	if (info->header)
		return error_set(err, -EBADMSG, "a second header");
	r = info_messages_add(&l->messages, info, CHUNK_HEADER, l->payload.data, l->payload.len);
	if (r < 0)
		return error_set(err, -EBADMSG, "the stream's header can't be decoded");
	h = info->header;
	if (h->uuid.len >= 4)
		snprintf(info->sync_id, sizeof(info->sync_id), "traced_%02x%02x%02x%02x",
			 h->uuid.data[0], h->uuid.data[1], h->uuid.data[2], h->uuid.data[3]);
	if (h->version > STREAM_VERSION) {
		error_set(err, -EBADMSG, "the stream has version %u of the format", h->version);
		return error_hint(err, "this traced reads version %d: use a newer one",
				  STREAM_VERSION);
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

/* The number in the line "ID: number", as event_table_add() takes it; -1: not a valid one. */
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

/* Parsing is expensive: skip formats that would not be used. */
static int loader_add_format(struct loader *l, struct error *err)
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

static int loader_add_layout(struct loader *l, struct error *err)
{
	const Traced__Capture__Header *h = l->index->info.header;
	struct page_layout *layout = &l->index->info.layout, *tasks = &l->index->info.tasks_layout;
	int r;

	if (h->time_shift > 63)
		return error_set(err, -EBADMSG, "the stream's clock conversion is invalid");
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

static int loader_add_samples(struct loader *l, const struct chunk *chunk, struct error *err)
{
	if (chunk->cpu > CPU_LIST_MAX || chunk->flags)
		return error_set(err, -EBADMSG, "invalid samples");
	return ring_index_add(
		&l->index->samples, chunk->cpu, 0,
		&(struct chunk_ref){ .offset = chunk->offset, .length = chunk->length });
}

static int loader_add_polls(struct loader *l, const struct chunk *chunk, struct error *err)
{
	if (chunk->flags || chunk->length > bounds_payload_max(CHUNK_POLLS))
		return error_set(err, -EBADMSG, "invalid readings of files");
	return chunk_list_add(&l->index->polls, &(struct chunk_ref){ .offset = chunk->offset,
								     .length = chunk->length });
}

/* Bytes of names of modules that are gone. */
#define GONE_MAX 200

static int loader_warn_gone(struct loader *l)
{
	const struct last_boot *b = &l->last_boot;
	const bool one = b->gone_count == 1;
	_cleanup_buf_ struct buf names = BUF_INIT;
	size_t i;

	for (i = 0; i < b->gone_count && names.len <= GONE_MAX; i++)
		buf_printf(&names, "%s%.*s", i ? ", " : "",
			   (int)MIN(b->gone[i].name_len, (size_t)GONE_MAX), b->gone[i].name);
	return stream_index_warn(
		l->index,
		"%zu module%s of the crashed boot %s not loaded now, so %s functions have no "
		"names: %s%s. Load %s with modprobe and extract again",
		b->gone_count, one ? "" : "s", one ? "is" : "are", one ? "its" : "their",
		buf_string(&names) ?: "?", i < b->gone_count ? ", ..." : "", one ? "it" : "them");
}

/* It precedes the addresses that it moves. */
static int loader_add_last_boot(struct loader *l)
{
	struct trace_info *info = &l->index->info;
	int r;

	if (info->last_boot)
		return -EBADMSG;
	r = info_messages_add(&l->messages, info, CHUNK_LAST_BOOT, l->payload.data, l->payload.len);
	if (r == 0)
		r = last_boot_read(&l->last_boot, info->last_boot);
	if (r < 0)
		return r;
	l->kallsyms.moved = &l->last_boot;
	if (!l->last_boot.known)
		return stream_index_warn(l->index,
					 "kernel functions have no names: the kernel does not "
					 "say where they were before it started anew");
	return l->last_boot.gone_count ? loader_warn_gone(l) : 0;
}

/* Adds a chunk whose payload is loaded. */
static int loader_add_loaded(struct loader *l, const struct chunk *chunk, struct error *err)
{
	struct trace_info *info = &l->index->info;
	const char *text = l->payload.data;
	size_t len = l->payload.len;
	/* Repeated formats do not count against the bounds. */
	int r = chunk->type == CHUNK_FORMAT ? 0 : bounds_take(&l->bounds, chunk->type, len);

	if (r < 0)
		return r;
	switch (chunk->type) {
	case CHUNK_HEADER_PAGE:
		return loader_add_layout(l, err);
	case CHUNK_FORMAT:
		return loader_add_format(l, err);
	case CHUNK_PRINTK:
		if (l->kallsyms.moved)
			last_boot_move_printk(&l->last_boot, &l->payload);
		return event_table_add_printk(info->events, l->payload.data, l->payload.len);
	case CHUNK_ENUMS:
		return event_table_add_enums(info->events, text, len);
	case CHUNK_ARGUMENTS:
		return event_table_add_arguments(info->events, text, len);
	case CHUNK_KALLSYMS_EXCERPT:
		if (l->kallsyms.moved)
			last_boot_move_symbols(&l->last_boot, &l->payload);
		return event_table_add_excerpt(info->events, l->payload.data, l->payload.len);
	case CHUNK_LAST_BOOT:
		return loader_add_last_boot(l);
	case CHUNK_PRODUCER:
		r = mark_ring_list_add(&l->index->marks, &l->marks.allocator, (const uint8_t *)text,
				       len);
		if (r == -ENOSPC)
			l->index->incomplete = true;
		return r == -EBADMSG ? budget_error(&l->marks) : r == -ENOSPC ? 0 : r;
	default:
		return info_messages_add(&l->messages, info, chunk->type, text, len);
	}
}

/* Warns once per type. */
static int loader_leave_out(struct loader *l, unsigned type)
{
	uint32_t bit = type < BOUNDED_TYPES ? UINT32_C(1) << type : 1;

	l->index->incomplete = true;
	if (l->left_out & bit)
		return 0;
	l->left_out |= bit;
	return stream_index_warn(l->index,
				 "some %s are left out: there are more than this version accepts",
				 bounds_name(type));
}

int loader_settle(struct loader *l)
{
	int r = kallsyms_take_result(&l->kallsyms);

	if (r == -EFBIG)
		return loader_leave_out(l, CHUNK_KALLSYMS);
	if (r == 0)
		return 0;
	l->index->incomplete = true;
	return stream_index_warn(l->index, "kernel symbols are left out: %s",
				 r == -EBADMSG ? "they are damaged" : strerror(-r));
}

/* Format metadata must not change once events are decoded: sinks keep pointers into it. */
static bool is_format_metadata(unsigned type)
{
	return type == CHUNK_HEADER_PAGE || type == CHUNK_FORMAT || type == CHUNK_PRINTK ||
	       type == CHUNK_ENUMS || type == CHUNK_ARGUMENTS || type == CHUNK_KALLSYMS_EXCERPT ||
	       type == CHUNK_LAST_BOOT;
}

static int loader_add_marks(struct loader *l, const struct chunk *chunk, struct error *err)
{
	int r;

	if (chunk->flags || chunk->length < sizeof(struct marks_header))
		return error_set(err, -EBADMSG, "invalid marks");
	r = stream_reader_load_part(l->reader, chunk, 0, sizeof(struct marks_header), &l->payload,
				    err);
	if (r < 0)
		return r;
	r = mark_ring_list_chunk(&l->index->marks, chunk, (const uint8_t *)l->payload.data);
	return r == -EBADMSG ? error_set(err, r, "marks of a ring that was not announced") : r;
}

static int loader_add_symbols(struct loader *l, const struct chunk *chunk, struct error *err)
{
	struct event_table *events = l->index->info.events;

	return l->sealed ? kallsyms_add_late(&l->kallsyms, events, chunk, &l->payload, err)
			 : kallsyms_add(&l->kallsyms, events, chunk, &l->payload, err);
}

/* Loads any chunk but sub-buffers and marks. Later versions may have types unknown here. */
static int loader_load(struct loader *l, const struct chunk *chunk, struct error *err)
{
	size_t max = bounds_payload_max(chunk->type);
	int r;

	if (!max) {
		r = stream_reader_verify(l->reader, chunk, &l->payload, err);
		if (r == 0 && chunk->type == CHUNK_FLUSH)
			stream_index_flushed(l->index, chunk->offset);
		return r;
	}
	if (l->sealed && is_format_metadata(chunk->type))
		return error_set(err, -EBADMSG, "it changes metadata that is already in use");
	if (chunk->type == CHUNK_KALLSYMS)
		return loader_add_symbols(l, chunk, err);
	r = stream_reader_load_max(l->reader, chunk, max, &l->payload, err);
	return r < 0 ? r : loader_add_loaded(l, chunk, err);
}

static int loader_warn(struct loader *l, const struct chunk *chunk, const char *why)
{
	char name[48];

	/* The stream was converted from another file: its offsets mean nothing to the reader. */
	if (l->reader->pages_fd)
		return stream_index_warn(l->index, "one of its %s is left out: %s",
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

	/* The header says how to decode everything else. */
	if (!l->index->info.header || chunk->type == CHUNK_HEADER) {
		if (chunk->type != CHUNK_HEADER)
			return error_set(err, -EBADMSG, "the stream does not begin with a header");
		r = stream_reader_load_max(l->reader, chunk, bounds_payload_max(CHUNK_HEADER),
					   &l->payload, &why);
		if (r == -EFBIG)
			return error_set(err, -EBADMSG, "the stream's header is too long");
		return r < 0 ? error_move(err, &why) : loader_add_header(l, err);
	}
	if (chunk->type == CHUNK_SUBBUFS)
		r = loader_add_subbufs(l, chunk, &why);
	else if (chunk->type == CHUNK_MARKS)
		r = loader_add_marks(l, chunk, &why);
	else if (chunk->type == CHUNK_SAMPLES)
		r = loader_add_samples(l, chunk, &why);
	else if (chunk->type == CHUNK_POLLS)
		r = loader_add_polls(l, chunk, &why);
	else
		r = loader_load(l, chunk, &why);
	if (r == -EFBIG)
		return loader_leave_out(l, chunk->type);
	if (r == -ENOMEM)
		return error_errno(err, r, "can't load the capture stream");
	if (r < 0) {
		l->index->incomplete = true;
		r = loader_warn(l, chunk, why.message ?: strerror(-r));
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
	budget_init(&l->marks, MARKS_MEMORY);
	info_messages_init(&l->messages);
	kallsyms_init(&l->kallsyms, reader, &l->bounds);
	*ret = l;
	return 0;
}

struct loader *loader_free(struct loader *l)
{
	if (!l)
		return NULL;
	buf_deinit(&l->payload);
	error_deinit(&l->bad_layout);
	last_boot_deinit(&l->last_boot);
	free(l);
	return NULL;
}

static int loader_cant_begin(const struct loader *l, struct error *err)
{
	if (!l->index->info.header)
		error_set(err, -EBADMSG, "the capture stream ends before its header does");
	else if (l->bad_layout.message)
		error_set(err, -EBADMSG, "the layout of its sub-buffers is unknown: %s",
			  l->bad_layout.message);
	else
		error_set(err, -EBADMSG,
			  "the capture stream ends before the layout of its sub-buffers");
	return error_hint(err, "nothing can be read from it: record again");
}

int loader_seal(struct loader *l, struct error *err)
{
	if (!l->index->info.header || !l->have_layout)
		return loader_cant_begin(l, err);
	if (l->sealed)
		return 0;
	l->sealed = true;
	return event_table_seal(l->index->info.events, err);
}

void loader_forget_readings(struct loader *l)
{
	info_messages_forget_readings(&l->messages, &l->index->info);
}
