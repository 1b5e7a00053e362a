/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_message.h"

#include <inttypes.h>
#include <string.h>

#include "marks/json_read.h"

struct message {
	const char *data;
	size_t len, at;
	char serial[24]; /* our order's, as agents write it */
};

static ssize_t message_give(void *userdata, void *data, size_t len)
{
	struct message *m = userdata;
	size_t n = MIN(len, m->len - m->at);

	memcpy(data, m->data + m->at, n);
	m->at += n;
	return (ssize_t)n;
}

/* Copies a text that was read; a longer one is cut. */
static void text_copy(char *to, size_t size, const struct buf *text)
{
	size_t len = MIN(text->len, size - 1);

	memcpy(to, text->data ?: "", len);
	to[len] = '\0';
}

static bool text_equals(const struct buf *text, const char *word)
{
	return text->len == strlen(word) && !memcmp(text->data ?: "", word, text->len);
}

/* An object of "orders"; it counts if it is of our order. */
static int message_read_order(const struct message *m, struct json_read *json,
			      struct board_status *ret, struct error *err)
{
	struct board_status s = *ret;
	bool is_ours = false;
	int token;

	s.reason[0] = s.outcome[0] = '\0';
	while ((token = json_read_next(json, err)) == JSON_KEY) {
		char key[16];

		text_copy(key, sizeof(key), &json->text);
		token = json_read_next(json, err);
		if (token == JSON_NUMBER && !strcmp(key, "serial"))
			is_ours = text_equals(&json->text, m->serial);
		else if (token == JSON_STRING && !strcmp(key, "outcome"))
			text_copy(s.outcome, sizeof(s.outcome), &json->text);
		else if (token == JSON_STRING && !strcmp(key, "reason"))
			text_copy(s.reason, sizeof(s.reason), &json->text);
		else if (token >= 0)
			token = json_read_skip(json, token, err);
		if (token < 0)
			return token;
	}
	if (token == JSON_OBJECT_END && is_ours)
		*ret = s;
	return token;
}

static int message_read_orders(const struct message *m, struct json_read *json,
			       struct board_status *ret, struct error *err)
{
	int token;

	while ((token = json_read_next(json, err)) == JSON_OBJECT) {
		token = message_read_order(m, json, ret, err);
		if (token < 0)
			return token;
	}
	return token < 0 || token == JSON_ARRAY_END
		       ? token
		       : error_set(err, -EBADMSG, "an order is no object");
}

static int message_read(const struct message *m, struct json_read *json, struct board_status *ret,
			struct error *err)
{
	int token = json_read_next(json, err);

	if (token >= 0 && token != JSON_OBJECT)
		return error_set(err, -EBADMSG, "it is no object");
	while (token >= 0 && (token = json_read_next(json, err)) == JSON_KEY) {
		bool is_state = text_equals(&json->text, "state");
		bool is_orders = text_equals(&json->text, "orders");

		token = json_read_next(json, err);
		if (token == JSON_STRING && is_state)
			text_copy(ret->state, sizeof(ret->state), &json->text);
		else if (token == JSON_ARRAY && is_orders)
			token = message_read_orders(m, json, ret, err);
		else if (token >= 0)
			token = json_read_skip(json, token, err);
	}
	return token < 0 ? token : json_read_next(json, err);
}

int board_status_read(struct board_status *ret, uint64_t order, const char *data, size_t len,
		      struct error *err)
{
	struct message message = { .data = data, .len = len };
	struct json_read json;
	int r = json_read_init(&json, message_give, &message, MESSAGE_MAX);

	if (r < 0)
		return error_errno(err, r, "can't read it");
	snprintf(message.serial, sizeof(message.serial), "%" PRIu64, order);
	r = message_read(&message, &json, ret, err);
	json_read_deinit(&json);
	return r;
}
