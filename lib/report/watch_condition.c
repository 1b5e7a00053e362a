/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/watch_condition.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/parse.h"

static const char blanks[] = " \t";
static const char word_end[] = " \t<>=,\"";

/* The text and the place in it that is read next. */
struct watch_parser {
	const char *text, *at;
	struct error *err;
};

#define NO_EVENTS ((const char *const[]){ NULL })

static const struct watch_word {
	const char *word;
	const char *keys; /* after "for"; NULL: none */
	const char *const *events;
} watch_words[] = {
	[WATCH_DELAY] = { "sched.delay", "comm, tid or cpu",
			  (const char *const[]){ "sched:sched_switch", "sched:sched_waking",
						 "sched:sched_wakeup", "sched:sched_wakeup_new",
						 "sched:sched_process_exec", NULL } },
	[WATCH_IRQ] = { "irq.max", "name or cpu",
			(const char *const[]){ "irq:irq_handler_entry", "irq:irq_handler_exit",
					       NULL } },
	[WATCH_SOFTIRQ] = { "softirq.max", "name or cpu",
			    (const char *const[]){ "irq:softirq_entry", "irq:softirq_exit",
						   NULL } },
	/* Marks need no event. A recording needs one: this one is rare. */
	[WATCH_MARK] = { "mark", "comm or tid",
			 (const char *const[]){ "sched:sched_process_exec", NULL } },
	[WATCH_EVENT] = { "event", NULL, NO_EVENTS },
	[WATCH_LOST] = { "lost", NULL, NO_EVENTS },
};

const char *watch_kind_name(enum watch_kind kind)
{
	return watch_words[kind].word;
}

const char *const *watch_kind_events(enum watch_kind kind)
{
	return watch_words[kind].events;
}

/* Shows the text with a caret under the place. */
static int watch_refuse(const struct watch_parser *p, const char *at, const char *what)
{
	return error_set(p->err, -EINVAL, "%s\n%s\n%*s^", what, p->text, (int)(at - p->text), "");
}

static void watch_skip_blanks(struct watch_parser *p)
{
	p->at += strspn(p->at, blanks);
}

static int watch_copy(const struct watch_parser *p, const char *from, size_t len, char **ret)
{
	char *copy = strndup(from, len);

	if (!copy)
		return error_errno(p->err, -ENOMEM, "condition");
	free(*ret);
	*ret = copy;
	return 0;
}

/* A word, or a text in double quotes. what: for the message, "a name is missing". */
static int watch_take_value(struct watch_parser *p, const char *what, char **ret)
{
	const char *from = p->at, *end;
	size_t len;

	if (*from != '"') {
		len = strcspn(from, word_end);
		if (!len)
			return watch_refuse(p, from, what);
		p->at += len;
		return watch_copy(p, from, len, ret);
	}
	end = strchr(from + 1, '"');
	if (!end)
		return watch_refuse(p, from, "the quote does not end");
	if (end == from + 1)
		return watch_refuse(p, from, what);
	p->at = end + 1;
	return watch_copy(p, from + 1, (size_t)(end - from) - 1, ret);
}

/* The word at the parser's place, if it is this one. */
static bool watch_take_word(struct watch_parser *p, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(p->at, word, len) != 0 || !strchr(word_end, p->at[len]))
		return false;
	p->at += len;
	watch_skip_blanks(p);
	return true;
}

/* *ret: what the number or the time is of. */
static int watch_take_number(struct watch_parser *p, const char *what, uint64_t max, uint64_t *ret)
{
	const char *from = p->at;
	uint64_t n = 0;

	for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
		n = n * 10 + (uint64_t)(*p->at - '0');
		if (n > max)
			return watch_refuse(p, from, "the number is too large");
	}
	if (p->at == from || !strchr(word_end, *p->at))
		return watch_refuse(p, from, what);
	*ret = n;
	return 0;
}

static int watch_take_time(struct watch_parser *p, uint64_t *ret)
{
	const char *from = p->at;
	char time[32];
	size_t len = strcspn(from, word_end);

	if (!len || len >= sizeof(time)) {
		watch_refuse(p, from, "a time is missing");
		return error_hint(p->err, "for example: > 5ms, > 250us or > 1.5s");
	}
	memcpy(time, from, len);
	time[len] = '\0';
	if (strchr("0123456789", time[len - 1])) {
		watch_refuse(p, from, "the time has no unit");
		return error_hint(p->err, "add one: %sms, %sus or %ss", time, time, time);
	}
	if (parse_duration(time, ret, NULL) < 0) {
		watch_refuse(p, from, "this is not a time");
		return error_hint(p->err, "for example: > 5ms, > 250us or > 1.5s");
	}
	p->at += len;
	return 0;
}

static int watch_take_above(struct watch_parser *p)
{
	watch_skip_blanks(p);
	if (*p->at != '>' || p->at[1] == '=') {
		watch_refuse(p, p->at, "a > is missing");
		return error_hint(p->err, "a condition is about values above a limit: > LIMIT");
	}
	p->at++;
	watch_skip_blanks(p);
	return 0;
}

static int watch_take_id(struct watch_parser *p, int32_t least, int32_t *ret)
{
	const char *from = p->at;
	uint64_t n;
	int r = watch_take_number(p, "a number is missing", INT32_MAX, &n);

	if (r < 0)
		return r;
	if ((int32_t)n < least)
		return watch_refuse(p, from, "the number is too small");
	*ret = (int32_t)n;
	return 0;
}

static int watch_refuse_key(const struct watch_parser *p, const char *at, enum watch_kind kind)
{
	watch_refuse(p, at, "this is not a key");
	return error_hint(p->err, "%s has %s", watch_words[kind].word, watch_words[kind].keys);
}

/* KEY=VALUE */
static int watch_take_key(struct watch_parser *p, struct watch_condition *c)
{
	const char *from = p->at;
	size_t len = strcspn(from, word_end);
	const bool named = c->kind == WATCH_IRQ || c->kind == WATCH_SOFTIRQ;

	if (from[len] != '=' || !len)
		return watch_refuse_key(p, from, c->kind);
	p->at += len + 1;
	if (len == 4 && !strncmp(from, "comm", 4) && !named)
		return watch_take_value(p, "a name is missing", &c->comm);
	if (len == 4 && !strncmp(from, "name", 4) && named)
		return watch_take_value(p, "a name is missing", &c->name);
	if (len == 3 && !strncmp(from, "tid", 3) && !named)
		return watch_take_id(p, 1, &c->tid);
	if (len == 3 && !strncmp(from, "cpu", 3) && c->kind != WATCH_MARK)
		return watch_take_id(p, 0, &c->cpu);
	return watch_refuse_key(p, from, c->kind);
}

/* Nothing, or "for KEY=VALUE,KEY=VALUE". */
static int watch_take_for(struct watch_parser *p, struct watch_condition *c)
{
	int r;

	watch_skip_blanks(p);
	if (!*p->at)
		return 0;
	if (!watch_take_word(p, "for")) {
		watch_refuse(p, p->at, "the condition ends here");
		return error_hint(p->err, "it may go on with: for KEY=VALUE");
	}
	for (;;) {
		r = watch_take_key(p, c);
		if (r < 0)
			return r;
		watch_skip_blanks(p);
		if (!*p->at)
			return 0;
		if (*p->at != ',') {
			watch_refuse(p, p->at, "a comma is missing");
			return error_hint(p->err, "several keys: for KEY=VALUE,KEY=VALUE");
		}
		p->at++;
		watch_skip_blanks(p);
	}
}

/* "SYSTEM:EVENT", and maybe "if FILTER". */
static int watch_take_event(struct watch_parser *p, struct watch_condition *c)
{
	const char *from = p->at, *colon;
	size_t len = strcspn(from, blanks);
	int r;

	colon = memchr(from, ':', len);
	if (!colon || colon == from || colon + 1 == from + len ||
	    strcspn(from, "*?[]\"<>=,") < len ||
	    memchr(colon + 1, ':', (size_t)(from + len - colon - 1))) {
		watch_refuse(p, from, "an event is missing");
		return error_hint(p->err, "one event: event sched:sched_process_exit");
	}
	r = watch_copy(p, from, (size_t)(colon - from), &c->system);
	if (r == 0)
		r = watch_copy(p, colon + 1, (size_t)(from + len - colon - 1), &c->event);
	if (r < 0)
		return r;
	p->at += len;
	watch_skip_blanks(p);
	if (!*p->at)
		return 0;
	if (!watch_take_word(p, "if")) {
		watch_refuse(p, p->at, "the condition ends here");
		return error_hint(p->err, "it may go on with: if FILTER, as of -f");
	}
	if (!*p->at)
		return watch_refuse(p, p->at, "a filter is missing");
	return watch_copy(p, p->at, strlen(p->at), &c->filter);
}

static int watch_take_lost(struct watch_parser *p, struct watch_condition *c)
{
	int r = watch_take_above(p);

	if (r == 0)
		r = watch_take_number(p, "a number of events is missing", INT64_MAX, &c->above);
	if (r < 0)
		return r;
	watch_skip_blanks(p);
	return *p->at ? watch_refuse(p, p->at, "the condition ends here") : 0;
}

static int watch_take_kind(struct watch_parser *p, enum watch_kind *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(watch_words); i++)
		if (watch_take_word(p, watch_words[i].word)) {
			*ret = (enum watch_kind)i;
			return 0;
		}
	watch_refuse(p, p->at,
		     *p->at ? "nothing of this name can be watched" : "the condition is empty");
	return error_hint(p->err, "a condition begins with sched.delay, irq.max, softirq.max, "
				  "mark, event or lost");
}

static int watch_take_condition(struct watch_parser *p, struct watch_condition *c)
{
	int r;

	watch_skip_blanks(p);
	r = watch_take_kind(p, &c->kind);
	if (r < 0)
		return r;
	if (c->kind == WATCH_EVENT)
		return watch_take_event(p, c);
	if (c->kind == WATCH_LOST)
		return watch_take_lost(p, c);
	if (c->kind == WATCH_MARK) {
		r = watch_take_value(p, "the name of a slice is missing", &c->name);
		if (r < 0)
			return r;
	}
	r = watch_take_above(p);
	if (r == 0)
		r = watch_take_time(p, &c->above);
	return r < 0 ? r : watch_take_for(p, c);
}

int watch_condition_parse(const char *text, struct watch_condition *ret, struct error *err)
{
	_cleanup_error_ struct error unwanted = ERROR_INIT;
	struct watch_parser p = { text, text, err ?: &unwanted };
	struct watch_condition c = { .cpu = -1 };
	int r;

	if (strlen(text) > WATCH_TEXT_MAX)
		return error_set(err, -EINVAL, "the condition has more than %d bytes",
				 WATCH_TEXT_MAX);
	for (const unsigned char *b = (const unsigned char *)text; *b; b++)
		if ((*b < 0x20 && *b != '\t') || *b == 0x7f)
			return error_set(err, -EINVAL, "the condition has a control character");
	r = watch_take_condition(&p, &c);
	if (r < 0) {
		watch_condition_deinit(&c);
		return r;
	}
	*ret = c;
	return 0;
}

void watch_condition_deinit(struct watch_condition *c)
{
	free(c->name);
	free(c->comm);
	free(c->system);
	free(c->event);
	free(c->filter);
	*c = (struct watch_condition){ .cpu = -1 };
}
