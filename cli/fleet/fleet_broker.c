/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_broker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "confined.h"
#include "fleet/order.h"
#include "fleet/word.h"
#include "fleet_listen.h"
#include "input.h"
#include "tool.h"

#define ANSWER_MAX (64U << 20)
/* An order's line: its topic, and its content in hexadecimal digits. */
#define ORDER_LINE_MAX (512 + 2 * ORDER_MAX)

struct hearing {
	const char *topic; /* of the boards, up to their names */
	uint64_t order;
	struct buf answer;
	size_t refused;
	int out; /* struct board_status, one behind the other */
};

void board_statuses_deinit(struct board_statuses *s)
{
	free(s->items);
	*s = (struct board_statuses){ 0 };
}

void broker_put_topic(const char *fleet, const char *group, struct buf *out)
{
	buf_printf(out, "traced/%s/%s/orders", fleet, group ?: "all");
}

int broker_publish(const char *broker, const char *topic, int fd, struct error *err)
{
	_cleanup_buf_ struct buf url = BUF_INIT;
	int r = broker_put_url(broker, topic, &url, err);

	if (r == 0) {
		const char *const argv[] = {
			"mosquitto_pub",      "-V", "5", "-q", "1", "-r", "-L", url.data,
			fd < 0 ? "-n" : "-s", NULL
		};

		if (fd >= 0)
			lseek(fd, 0, SEEK_SET);
		r = broker_explain(tool_run(argv, fd, -EBADF, -EBADF, 0, err), argv[0], err);
	}
	return r;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Appends what the digits stand for. False: they are none. */
static bool hex_decode(const char *hex, size_t max, struct buf *ret)
{
	for (; hex[0]; hex += 2) {
		if (ret->len == max || hex_digit(hex[0]) < 0 || hex_digit(hex[1]) < 0)
			return false;
		buf_putc(ret, (char)(hex_digit(hex[0]) << 4 | hex_digit(hex[1])));
	}
	return !buf_error(ret);
}

int broker_order(const char *broker, const char *fleet, const char *topic, struct buf *ret,
		 struct error *err)
{
	const struct listening l = { .broker = broker,
				     .fleet = fleet,
				     .topic = topic,
				     .is_one = true,
				     .max = ORDER_LINE_MAX };
	_cleanup_buf_ struct buf line = BUF_INIT;
	int r = broker_listen(&l, &line, err);
	char *text = buf_string(&line), *hex;

	if (r < 0)
		return r;
	if (!text)
		return error_errno(err, -ENOMEM, "%s", topic);
	text[strcspn(text, "\n")] = '\0';
	hex = strchr(text, ' ');
	if (hex && !hex_decode(hex + 1, ORDER_MAX, ret))
		return error_errno(err, -EFBIG, "%s", topic);
	return r;
}

/* "traced/doors/all/status/door-17 7b22..." False: it is no board's status. */
static bool hearing_read_line(struct hearing *h, char *line, struct board_status *ret)
{
	_cleanup_error_ struct error unused = ERROR_INIT;
	_cleanup_buf_ struct buf message = BUF_INIT;
	size_t len = strlen(h->topic);
	char *hex;

	*ret = (struct board_status){ 0 };
	if (strncmp(line, h->topic, len) != 0)
		return false;
	hex = strchr(line, ' ');
	if (!hex)
		return false;
	*hex++ = '\0';
	if (!word_is_name(line + len) || !hex_decode(hex, MESSAGE_MAX, &message) || !message.len)
		return false;
	strcpy(ret->board, line + len);
	return board_status_read(ret, h->order, message.data, message.len, &unused) == 0;
}

static int hearing_work(void *userdata, struct export_result *ret, struct error *err)
{
	struct hearing *h = userdata;
	char *rest = buf_string(&h->answer), *line;
	int r = rest ? 0 : -ENOMEM;

	while (r == 0 && (line = strsep(&rest, "\n"))) {
		struct board_status status;

		if (!*line)
			continue;
		if (hearing_read_line(h, line, &status))
			r = write_full(h->out, &status, sizeof(status));
		else
			ret->lost++;
	}
	return r < 0 ? error_errno(err, r, "can't read what boards say") : 0;
}

static int compare_messages(const void *a, const void *b)
{
	const struct board_status *x = a, *y = b;
	int r = strcmp(x->board, y->board);

	return r ?: (x->number > y->number) - (x->number < y->number);
}

/* A board that says something while we listen has several messages: the last one counts. */
static void hearing_keep_last(struct board_statuses *s)
{
	size_t kept = 0;

	if (s->count)
		qsort(s->items, s->count, sizeof(*s->items), compare_messages);
	for (size_t i = 0; i < s->count; i++)
		if (i + 1 == s->count || strcmp(s->items[i].board, s->items[i + 1].board) != 0)
			s->items[kept++] = s->items[i];
	s->count = kept;
}

/* The process that read the messages is not trusted with ends of texts either. */
static int hearing_take(const struct buf *bytes, struct board_statuses *ret)
{
	size_t count = bytes->len / sizeof(*ret->items);

	ret->items = calloc(count + 1, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	memcpy(ret->items, bytes->data ?: "", count * sizeof(*ret->items));
	for (size_t i = 0; i < count; i++) {
		struct board_status *s = &ret->items[i];

		s->board[sizeof(s->board) - 1] = s->state[sizeof(s->state) - 1] = '\0';
		s->outcome[sizeof(s->outcome) - 1] = s->reason[sizeof(s->reason) - 1] = '\0';
		s->number = i;
		if (word_is_name(s->board))
			ret->items[ret->count++] = *s;
	}
	hearing_keep_last(ret);
	return 0;
}

static int hearing_parse(struct hearing *h, struct board_statuses *ret, struct error *err)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	_cleanup_close_ int fd = input_create_temp();
	int r;

	if (fd < 0)
		return error_errno(err, fd, "%s", input_temp_place());
	h->out = fd;
	r = confined_run(hearing_work, h, &result, err);
	if (r < 0)
		return r;
	ret->refused = (size_t)result.lost;
	lseek(fd, 0, SEEK_SET);
	r = read_to_end(fd, ANSWER_MAX, &bytes);
	if (r == 0)
		r = hearing_take(&bytes, ret);
	return r < 0 ? error_errno(err, r, "what boards say") : 0;
}

int broker_statuses(const char *broker, const char *fleet, uint64_t order, uint64_t most_ns,
		    struct board_statuses *ret, struct error *err)
{
	_cleanup_buf_ struct buf topic = BUF_INIT, all = BUF_INIT;
	struct hearing h = { .order = order };
	struct listening l = {
		.broker = broker, .fleet = fleet, .most_ns = most_ns, .max = ANSWER_MAX
	};
	int r;

	buf_printf(&topic, "traced/%s/all/status/", fleet);
	buf_printf(&all, "%s+", buf_string(&topic) ?: "");
	h.topic = topic.data;
	l.topic = buf_string(&all) ?: "";
	r = broker_listen(&l, &h.answer, err);
	ret->is_cut = r == 0;
	if (r >= 0)
		r = hearing_parse(&h, ret, err);
	buf_deinit(&h.answer);
	return r;
}
