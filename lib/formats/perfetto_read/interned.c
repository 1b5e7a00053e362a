/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/interned.h"

#include "formats/perfetto/numbers.h"

#define TEXT_MAX 4096U	   /* bytes: many events may have it */
#define STACK_MAX 256	   /* frames: the innermost ones */
#define TIMEBASE_MAX 1024U /* bytes */

/* InternedData, and in each of its messages */
static const struct {
	uint32_t field, content;
} fields[INTERNED_KINDS] = {
	[INTERNED_CATEGORY] = { INTERNED_CATEGORIES, 2 },
	[INTERNED_NAME] = { INTERNED_NAMES, 2 },
	[INTERNED_KEY] = { INTERNED_KEYS, 2 },
	[INTERNED_FUNCTION] = { INTERNED_FUNCTION_NAMES, 2 },
	[INTERNED_PATH] = { INTERNED_MAPPING_PATHS, 2 },
	[INTERNED_FRAME] = { INTERNED_FRAMES, 0 },
	[INTERNED_MAPPING] = { INTERNED_MAPPINGS, MAPPING_PATH },
	[INTERNED_STACK] = { INTERNED_CALLSTACKS, CALLSTACK_FRAMES },
};
struct interned_text {
	uint32_t len;
	char text[];
};

struct interned_frame {
	uint64_t function, mapping; /* 0: none */
};

void interned_clear(struct interned *in, struct known_room *room)
{
	for (unsigned i = 0; i < INTERNED_KINDS; i++)
		known_deinit(&in->kinds[i], room);
	known_deinit(&in->timebase, room);
}

void interned_deinit(struct interned_all *a, struct known_room *room)
{
	for (unsigned i = 0; i < a->count; i++)
		interned_clear(&a->sequences[i], room);
	a->count = 0;
}

struct interned *interned_of(struct interned_all *a, uint32_t sequence)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->sequences[i].sequence == sequence)
			return &a->sequences[i];
	if (a->count == INTERNED_SEQUENCES_MAX)
		return NULL;
	a->sequences[a->count] = (struct interned){ .sequence = sequence };
	return &a->sequences[a->count++];
}

static bool keep_text(struct known_table *t, struct known_room *room, uint64_t iid,
		      const void *data, size_t len)
{
	struct interned_text *text = known_add(t, room, iid, sizeof(*text) + len);

	if (!text)
		return false;
	text->len = (uint32_t)len;
	if (len)
		memcpy(text->text, data, len);
	return true;
}

static bool keep_stack(struct known_table *t, struct known_room *room, uint64_t iid,
		       struct wire_reader message)
{
	struct wire_reader again = message;
	struct interned_stack *stack;
	struct wire_field f;
	size_t count = 0, skip;

	while (wire_read(&again, &f))
		count += f.number == fields[INTERNED_STACK].content && f.type == WIRE_VARINT;
	skip = count - MIN(count, (size_t)STACK_MAX);
	count -= skip;
	stack = known_add(t, room, iid, sizeof(*stack) + count * sizeof(*stack->frames));
	if (!stack)
		return false;
	while (wire_read(&message, &f)) {
		if (f.number != fields[INTERNED_STACK].content || f.type != WIRE_VARINT)
			continue;
		if (skip)
			skip--;
		else
			stack->frames[stack->depth++] = f.value;
	}
	return true;
}

static bool keep_frame(struct known_table *t, struct known_room *room, uint64_t iid,
		       struct interned_frame frame)
{
	struct interned_frame *to = known_add(t, room, iid, sizeof(*to));

	if (to)
		*to = frame;
	return to;
}

static bool keep(struct interned *in, enum interned_kind kind, const struct wire_field *message,
		 struct known_room *room)
{
	struct wire_reader r = wire_reader_in(message);
	struct wire_field f, content = { 0 };
	struct interned_frame frame = { 0 };
	uint64_t iid = 0;

	while (wire_read(&r, &f)) {
		if (f.number == 1 && f.type == WIRE_VARINT)
			iid = f.value;
		else if (f.number == fields[kind].content)
			content = f;
		if (f.number == FRAME_FUNCTION && f.type == WIRE_VARINT)
			frame.function = f.value;
		else if (f.number == FRAME_MAPPING && f.type == WIRE_VARINT)
			frame.mapping = f.value;
	}
	if (r.bad || !iid)
		return false;
	switch (kind) {
	case INTERNED_STACK:
		return keep_stack(&in->kinds[kind], room, iid, wire_reader_in(message));
	case INTERNED_MAPPING:
		return keep_frame(&in->kinds[kind], room, iid,
				  (struct interned_frame){ .mapping = content.value });
	case INTERNED_FRAME:
		return keep_frame(&in->kinds[kind], room, iid, frame);
	default:
		return content.type == WIRE_BYTES && content.len <= TEXT_MAX &&
		       keep_text(&in->kinds[kind], room, iid, content.data, content.len);
	}
}

uint64_t interned_take(struct interned *in, const struct wire_field *data, struct known_room *room)
{
	struct wire_reader r = wire_reader_in(data);
	uint64_t refused = 0;
	struct wire_field f;

	while (wire_read(&r, &f)) {
		for (unsigned kind = 0; kind < INTERNED_KINDS; kind++)
			if (f.number == fields[kind].field && f.type == WIRE_BYTES)
				refused += !keep(in, (enum interned_kind)kind, &f, room);
	}
	return refused + r.bad;
}

/* The last field of that number that is a message or a string; false: there is none. */
static bool enter(struct wire_field *message, uint32_t number)
{
	struct wire_reader r = wire_reader_in(message);
	struct wire_field f;
	bool found = false;

	while (wire_read(&r, &f)) {
		if (f.number != number || f.type != WIRE_BYTES)
			continue;
		*message = f;
		found = true;
	}
	return found;
}

uint64_t interned_take_defaults(struct interned *in, const struct wire_field *defaults,
				struct known_room *room)
{
	struct wire_field f = *defaults;

	if (!enter(&f, DEFAULTS_PERF) || !enter(&f, PERF_TIMEBASE) || !enter(&f, TIMEBASE_NAME))
		return 0;
	return !keep_text(&in->timebase, room, 0, f.data, MIN(f.len, (size_t)TIMEBASE_MAX));
}

static struct text find_text(const struct known_table *t, uint64_t iid)
{
	const struct interned_text *text = known_find(t, iid);

	return text ? (struct text){ text->text, text->len } : (struct text){ 0 };
}

struct text interned_text(const struct interned *in, enum interned_kind kind, uint64_t iid)
{
	return in ? find_text(&in->kinds[kind], iid) : (struct text){ 0 };
}

struct text interned_timebase(const struct interned *in)
{
	return in ? find_text(&in->timebase, 0) : (struct text){ 0 };
}

struct interned_stack *interned_stack(const struct interned *in, uint64_t iid)
{
	return in ? known_find(&in->kinds[INTERNED_STACK], iid) : NULL;
}

bool interned_frame(const struct interned *in, uint64_t iid, struct text *ret_function,
		    struct text *ret_path)
{
	const struct interned_frame *frame = known_find(&in->kinds[INTERNED_FRAME], iid), *mapping;

	*ret_function = *ret_path = (struct text){ 0 };
	if (!frame)
		return false;
	*ret_function = interned_text(in, INTERNED_FUNCTION, frame->function);
	mapping = known_find(&in->kinds[INTERNED_MAPPING], frame->mapping);
	if (mapping)
		*ret_path = interned_text(in, INTERNED_PATH, mapping->mapping);
	return (ret_function->data || !frame->function) && (ret_path->data || !frame->mapping);
}
