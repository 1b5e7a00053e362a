/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/trace_event.h"

#include <inttypes.h>
#include <limits.h>

static void event_set_part(struct file_reader *l, enum mark_part part, const struct buf *from)
{
	buf_clear(&l->part[part]);
	buf_append(&l->part[part], from->data, from->len);
	if (!l->part[part].data)
		buf_reserve(&l->part[part], 1);
}

/* Parses a decimal number of microseconds into ns; finer digits are cut off. */
static bool parse_us(struct buf *spelled, uint64_t *ret)
{
	const char *p = buf_string(spelled);
	uint64_t value = 0;
	int digits = 0;

	if (!p || *p < '0' || *p > '9')
		return false;
	if (strpbrk(p, "eE")) {
		double d = strtod(p, NULL) * 1000;

		*ret = d < 9e18 ? (uint64_t)d : 0;
		return d < 9e18;
	}
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return false;
	if (*p == '.')
		p++;
	for (; digits < 3; digits++) {
		uint64_t digit = *p >= '0' && *p <= '9' ? (uint64_t)(*p++ - '0') : 0;

		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return value <= INT64_MAX;
}

/* A number, or a string with a number. */
static bool is_spelled(int token)
{
	return token == JSON_NUMBER || token == JSON_STRING;
}

static bool event_take_us(struct file_reader *l, int token, uint64_t *to)
{
	return is_spelled(token) && parse_us(&l->json.text, to);
}

static bool event_take_count(struct file_reader *l, int token, uint64_t *to)
{
	const char *text = buf_string(&l->json.text);
	char *end;

	if (!is_spelled(token) || !text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*to = strtoull(text, &end, 10);
	return !errno;
}

static bool event_take_number(struct file_reader *l, int token, int32_t *to)
{
	const char *text = buf_string(&l->json.text);
	char *end;
	long long v;

	if (!is_spelled(token) || !text || !*text)
		return false;
	errno = 0;
	v = strtoll(text, &end, 10);
	/* Some programs write a 64-bit thread handle: its low bits identify the thread. */
	*to = (int32_t)(v >= INT32_MIN && v <= INT32_MAX ? v : v & INT32_MAX);
	return !errno && (!*end || *end == '.');
}

/* Accepts a string, or a number; ids become hexadecimal, as all readers take them. */
bool file_reader_text(struct file_reader *l, int token, enum mark_part part)
{
	bool id = part == PART_ID;
	uint64_t v;

	if (!is_spelled(token))
		return false;
	if (id && token == JSON_NUMBER && event_take_count(l, token, &v)) {
		buf_clear(&l->part[part]);
		buf_printf(&l->part[part], "0x%" PRIx64, v);
		return true;
	}
	event_set_part(l, part, &l->json.text);
	return true;
}

bool file_reader_frame(struct file_reader *l, int token, enum mark_part part)
{
	const struct buf *t = &l->json.text;

	if (!is_spelled(token))
		return false;
	buf_clear(&l->part[part]);
	if (t->len && (t->data[0] == '+' || frame_id_is_spelled(text_of(t))))
		buf_putc(&l->part[part], '+');
	buf_append(&l->part[part], t->data, t->len);
	return true;
}

static bool event_take_char(struct file_reader *l, int token, const char *allowed, char *to)
{
	const struct buf *t = &l->json.text;

	if (token != JSON_STRING || t->len != 1 || !t->data[0] || !strchr(allowed, t->data[0]))
		return false;
	*to = t->data[0];
	return true;
}

static bool event_take_phase(struct file_reader *l, int token)
{
	char phase;

	if (!event_take_char(l, token, MARK_PHASES "ISTpF", &phase))
		return false;
	l->mark.phase = mark_phase_of(phase);
	l->mark.was = (uint8_t)phase == l->mark.phase ? 0 : phase;
	l->seen |= SEEN_PH;
	return true;
}

static bool event_take_bind(struct file_reader *l, int token)
{
	char bp;

	if (!event_take_char(l, token, "e", &bp))
		return false;
	l->mark.has |= HAS_BIND_ENCLOSING;
	return true;
}

static bool event_take_has(struct file_reader *l, bool good, enum mark_has bit)
{
	if (good)
		l->mark.has = (uint8_t)(l->mark.has | bit);
	return good;
}

static bool event_take_seen(struct file_reader *l, bool good, enum seen bit)
{
	if (good)
		l->seen |= bit;
	return good;
}

/* {"local": "0x1"} or {"global": "0x1"} */
static int event_take_id2(struct file_reader *l, int token, struct error *err)
{
	uint8_t kind = ID_NONE;

	if (token != JSON_OBJECT)
		return json_read_skip(&l->json, token, err);
	while ((token = json_read_next(&l->json, err)) > 0 && token != JSON_OBJECT_END) {
		if (token == JSON_KEY) {
			const char *key = buf_string(&l->json.text) ?: "";

			kind = !strcmp(key, "local")	? ID_LOCAL
			       : !strcmp(key, "global") ? ID_GLOBAL
							: ID_NONE;
			continue;
		}
		if (kind && file_reader_text(l, token, PART_ID)) {
			l->mark.id_kind = kind;
			continue;
		}
		token = json_read_skip(&l->json, token, err);
		if (token < 0)
			break;
	}
	return token < 0 ? token : 0;
}

enum member {
	MEMBER_NAME,
	MEMBER_CAT,
	MEMBER_PH,
	MEMBER_TS,
	MEMBER_PID,
	MEMBER_TID,
	MEMBER_ARGS,
	MEMBER_DUR,
	MEMBER_TTS,
	MEMBER_TDUR,
	MEMBER_TICOUNT,
	MEMBER_TIDELTA,
	MEMBER_ID,
	MEMBER_ID2,
	MEMBER_SCOPE,
	MEMBER_S,
	MEMBER_BP,
	MEMBER_SF,
	MEMBER_ESF,
	MEMBER_STACK,
	MEMBER_ESTACK,
	MEMBER_CNAME,
	MEMBER_OTHER,
};

static const char *const member_names[] = {
	[MEMBER_NAME] = "name",	  [MEMBER_CAT] = "cat",		[MEMBER_PH] = "ph",
	[MEMBER_TS] = "ts",	  [MEMBER_PID] = "pid",		[MEMBER_TID] = "tid",
	[MEMBER_ARGS] = "args",	  [MEMBER_DUR] = "dur",		[MEMBER_TTS] = "tts",
	[MEMBER_TDUR] = "tdur",	  [MEMBER_TICOUNT] = "ticount", [MEMBER_TIDELTA] = "tidelta",
	[MEMBER_ID] = "id",	  [MEMBER_ID2] = "id2",		[MEMBER_SCOPE] = "scope",
	[MEMBER_S] = "s",	  [MEMBER_BP] = "bp",		[MEMBER_SF] = "sf",
	[MEMBER_ESF] = "esf",	  [MEMBER_STACK] = "stack",	[MEMBER_ESTACK] = "estack",
	[MEMBER_CNAME] = "cname",
};

static enum member event_find_member(struct buf *key)
{
	const char *name = buf_string(key);

	for (size_t i = 0; name && i < ARRAY_SIZE(member_names); i++)
		if (strcmp(name, member_names[i]) == 0)
			return (enum member)i;
	return MEMBER_OTHER;
}

void file_reader_forget(struct file_reader *l)
{
	l->mark = (struct mark){ .source = l->source, .instant = 't' };
	l->seen = 0;
	for (int i = 0; i < PART_PARTS; i++)
		buf_clear(&l->part[i]);
	buf_clear(&l->stack[0]);
	buf_clear(&l->stack[1]);
}

/* Stores a member whose value is one token. False: wrong type or value. */
static bool event_take_member(struct file_reader *l, enum member m, int token)
{
	struct mark *mark = &l->mark;

	switch (m) {
	case MEMBER_NAME:
		return event_take_seen(l, file_reader_text(l, token, PART_NAME), SEEN_NAME);
	case MEMBER_CAT:
		return file_reader_text(l, token, PART_CAT);
	case MEMBER_PH:
		return event_take_phase(l, token);
	case MEMBER_TS:
		return event_take_seen(l, event_take_us(l, token, &mark->ts), SEEN_TS);
	case MEMBER_PID:
		return event_take_seen(l, event_take_number(l, token, &mark->pid), SEEN_PID);
	case MEMBER_TID:
		return event_take_seen(l, event_take_number(l, token, &mark->tid), SEEN_TID);
	case MEMBER_DUR:
		return event_take_has(l, event_take_us(l, token, &mark->dur), HAS_DUR);
	case MEMBER_TTS:
		return event_take_has(l, event_take_us(l, token, &mark->tts), HAS_TTS);
	case MEMBER_TDUR:
		return event_take_has(l, event_take_us(l, token, &mark->tdur), HAS_TDUR);
	case MEMBER_TICOUNT:
		return event_take_has(l, event_take_count(l, token, &mark->ticount), HAS_TICOUNT);
	case MEMBER_TIDELTA:
		return event_take_has(l, event_take_count(l, token, &mark->tidelta), HAS_TIDELTA);
	case MEMBER_ID:
		mark->id_kind = file_reader_text(l, token, PART_ID) ? ID_PLAIN : ID_NONE;
		return mark->id_kind;
	case MEMBER_SCOPE:
		return file_reader_text(l, token, PART_SCOPE);
	case MEMBER_S:
		return event_take_char(l, token, "tpg", &mark->instant);
	case MEMBER_BP:
		return event_take_bind(l, token);
	case MEMBER_SF:
		return file_reader_frame(l, token, PART_SF);
	case MEMBER_ESF:
		return file_reader_frame(l, token, PART_ESF);
	case MEMBER_CNAME:
		return file_reader_text(l, token, PART_CNAME);
	default:
		return false;
	}
}

int file_reader_member(struct file_reader *l, struct error *err)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	enum member m = event_find_member(&l->json.text);
	struct text key;
	int token;

	if (m == MEMBER_OTHER)
		buf_append(&name, l->json.text.data, l->json.text.len);
	key = text_of(&name);
	token = json_read_next(&l->json, err);
	if (token < 0)
		return token;
	switch (m) {
	case MEMBER_ID2:
		return event_take_id2(l, token, err);
	case MEMBER_STACK:
	case MEMBER_ESTACK:
		return json_value_read(&l->json, token, NULL, false, &l->stack[m == MEMBER_ESTACK],
				       err);
	case MEMBER_ARGS:
		buf_clear(&l->part[PART_ARGS]);
		if (token == JSON_OBJECT)
			return json_value_read(&l->json, token, NULL, true, &l->part[PART_ARGS],
					       err);
		key = TEXT("args");
		if (token == JSON_NULL)
			return 0;
		return json_value_read(&l->json, token, &key, false, &l->part[PART_ARGS], err);
	case MEMBER_OTHER:
		return json_value_read(&l->json, token, &key, false, &l->part[PART_EXTRA], err);
	default:
		if (token != JSON_NULL && !event_take_member(l, m, token))
			l->seen |= SEEN_BAD;
		return json_read_skip(&l->json, token, err);
	}
}
