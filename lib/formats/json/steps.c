/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/steps.h"

#include <xxhash.h>

#include "base/secret_hash.h"
#include "marks/value_json.h"

/* Slices followed at one time; steps of further ones stay instants. */
#define STEPS_OPEN_MAX 65536

DEFINE_TABLE(json_step_slots, struct json_step, uint64_t, slot->key != 0, hash_number(slot->key),
	     slot->key == key);

void json_steps_deinit(struct json_steps *s)
{
	TABLE_FOR_EACH(json_step_slots, &s->open, slot)
	free(slot->open);
	TABLE_DEINIT(&s->open);
	shares_deinit(&s->shares);
	buf_deinit(&s->name);
	free(s->closed);
}

static uint64_t steps_key_of(const struct mark *m)
{
	static const enum mark_part parts[] = { PART_CAT, PART_NAME, PART_ID, PART_SCOPE };
	uint64_t key = m->id_kind == ID_LOCAL ? 1 + (uint64_t)(uint32_t)m->pid : 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		key = XXH3_64bits_withSeed(m->part[parts[i]].data, m->part[parts[i]].len, key);
	return key ?: 1;
}

static int steps_begin(struct json_steps *s, const struct mark *m)
{
	uint64_t key = steps_key_of(m);
	const struct share_owner owner = mark_owner_of(m);
	struct json_step *slot = json_step_slots_place(&s->open, hash_number(key), key);
	int r = 0;

	if (!slot)
		return -ENOMEM;
	if (!slot->key) {
		s->shares.max = STEPS_OPEN_MAX;
		r = shares_take(&s->shares, &owner, 1);
		if (r < 0)
			return r == -ENOSPC ? 0 : r;
		*slot = (struct json_step){ .key = key, .owner = owner };
		s->open.count++;
	}
	free(TAKE_PTR(slot->open));
	slot->last_ts = m->ts;
	return 0;
}

/* Spells NAME:STEP. False: the mark names no step. */
static bool steps_spell(struct json_steps *s, const struct mark *m)
{
	struct value v;

	if (!value_find(m->part[PART_ARGS], "step", &v) || v.type == VALUE_LIST ||
	    v.type == VALUE_DICT)
		return false;
	buf_clear(&s->name);
	buf_append(&s->name, m->part[PART_NAME].data, m->part[PART_NAME].len);
	buf_putc(&s->name, ':');
	if (v.type == VALUE_STRING)
		buf_append(&s->name, v.text.data, v.text.len);
	else
		json_put_value(&s->name, &v);
	return !buf_error(&s->name);
}

/* The end or begin of a step at the mark's time. */
static struct mark steps_mark(const struct mark *m, uint8_t phase, const char *name, size_t len)
{
	struct mark step = *m;

	step.phase = phase;
	step.part[PART_NAME] = (struct text){ name, (uint32_t)len };
	if (phase == PHASE_ASYNC_END)
		step.part[PART_ARGS] = step.part[PART_EXTRA] = (struct text){ 0 };
	return step;
}

/* Ends the step that lasts, if there is one. Returns the number of marks. */
static int steps_close(struct json_steps *s, struct json_step *slot, const struct mark *m,
		       struct mark *ret)
{
	if (!slot->open)
		return 0;
	free(s->closed);
	s->closed = slot->open;
	slot->open = NULL;
	*ret = steps_mark(m, PHASE_ASYNC_END, s->closed, strlen(s->closed));
	return 1;
}

int json_steps_take(struct json_steps *s, const struct mark *m, struct mark ret[static 2])
{
	uint64_t key = steps_key_of(m);
	struct json_step *slot = json_step_slots_find(&s->open, hash_number(key), key);
	bool step = slot && strchr("Tp", m->was) && steps_spell(s, m);
	int n;

	ret[0] = *m;
	if (m->was == 'S')
		return steps_begin(s, m) ?: 1;
	if (!slot || (m->was != 'F' && !step))
		return 1;
	if (m->was == 'p') {
		ret[0] = steps_mark(m, PHASE_ASYNC_BEGIN, s->name.data, s->name.len);
		ret[0].ts = MIN(slot->last_ts, m->ts);
		ret[1] = steps_mark(m, PHASE_ASYNC_END, s->name.data, s->name.len);
		slot->last_ts = m->ts;
		return 2;
	}
	n = steps_close(s, slot, m, &ret[0]);
	if (m->was == 'F') {
		ret[n++] = *m;
		shares_return(&s->shares, &slot->owner, 1);
		json_step_slots_remove(&s->open, slot);
		return n;
	}
	ret[n++] = steps_mark(m, PHASE_ASYNC_BEGIN, s->name.data, s->name.len);
	slot->open = strndup(s->name.data, s->name.len);
	slot->last_ts = m->ts;
	return slot->open ? n : -ENOMEM;
}
