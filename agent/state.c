/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <sys/file.h>

#include "base/io.h"

#define TAKEN "taken"
#define TODAY "today"
#define FILE_MAX 16384
#define SECONDS_A_DAY 86400

static int state_write(const struct state *s, const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", s->dirfd, name);
	return replace_file(path, text, strlen(text), 0600, true);
}

static int state_write_taken(const struct state *s, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char digest[DIGEST_SIZE * 2 + 1];
	int r;

	for (size_t i = 0; i < s->taken_count; i++) {
		sodium_bin2hex(digest, sizeof(digest), s->taken[i].digest, DIGEST_SIZE);
		buf_printf(&text, "taken %s %" PRIu64 " %s\n", s->taken[i].group,
			   s->taken[i].serial, digest);
	}
	for (size_t i = 0; i < s->open_count; i++)
		buf_printf(&text, "%s %" PRIu64 "\n", s->open[i].waits ? "wait" : "open",
			   s->open[i].serial);
	r = buf_string(&text) ? state_write(s, TAKEN, text.data) : -ENOMEM;
	return r < 0 ? error_errno(err, r, "the file %s", TAKEN) : 0;
}

static int state_write_today(const struct state *s, struct error *err)
{
	char text[128];
	int r;

	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s->day,
		 s->orders, s->uploads, s->bytes);
	r = state_write(s, TODAY, text);
	return r < 0 ? error_errno(err, r, "the file %s", TODAY) : 0;
}

static int state_read_file(const struct state *s, const char *name, struct buf *text,
			   struct error *err)
{
	int r = read_file_at(s->dirfd, name, FILE_MAX, text);

	if (r == -ENOENT)
		return 0;
	if (r < 0 || !buf_string(text))
		return error_errno(err, r < 0 ? r : -ENOMEM, "the file %s", name);
	return 1;
}

static int state_damaged(const char *name, const char *hint, struct error *err)
{
	error_set(err, -EBADMSG, "the file %s is damaged", name);
	return error_hint(err, "%s", hint);
}

static int state_taken_damaged(struct error *err)
{
	return state_damaged(TAKEN,
			     "without it, orders of the past could be taken again; remove it once "
			     "they have expired",
			     err);
}

/* One line, with its end. */
static bool state_read_line(struct state *s, const char *line, size_t len)
{
	struct state_taken *taken = &s->taken[s->taken_count];
	struct state_open *open = &s->open[s->open_count];
	char digest[DIGEST_SIZE * 2 + 1];
	size_t decoded;
	int end = 0;

	if (s->open_count < STATE_OPEN_MAX &&
	    (sscanf(line, "open %" SCNu64 "%n", &open->serial, &end) == 1 ||
	     sscanf(line, "wait %" SCNu64 "%n", &open->serial, &end) == 1)) {
		open->waits = line[0] == 'w';
		s->open_count++;
	} else if (s->taken_count < STATE_GROUPS_MAX &&
		   sscanf(line, "taken %64[A-Za-z0-9._-] %" SCNu64 " %64[0-9a-f]%n", taken->group,
			  &taken->serial, digest, &end) == 3 &&
		   sodium_hex2bin(taken->digest, DIGEST_SIZE, digest, strlen(digest), NULL,
				  &decoded, NULL) == 0 &&
		   decoded == DIGEST_SIZE) {
		s->taken_count++;
	} else {
		return false;
	}
	return (size_t)end + 1 == len && line[end] == '\n';
}

static int state_read_taken(struct state *s, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = state_read_file(s, TAKEN, &text, err);

	if (r <= 0)
		return r;
	if (strlen(text.data) != text.len)
		return state_taken_damaged(err);
	for (const char *line = text.data; *line;) {
		size_t len = strcspn(line, "\n") + 1;

		if (len > (size_t)(text.data + text.len - line) || !state_read_line(s, line, len))
			return state_taken_damaged(err);
		line += len;
	}
	return s->taken_count ? 0 : state_taken_damaged(err);
}

static int state_read_today(struct state *s, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = state_read_file(s, TODAY, &text, err);

	if (r <= 0)
		return r;
	if (sscanf(text.data, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &s->day, &s->orders,
		   &s->uploads, &s->bytes) != 4)
		return state_damaged(TODAY, "remove it: today's limits begin anew", err);
	return 0;
}

int state_load(struct state *ret, const char *folder, struct error *err)
{
	_cleanup_(state_deinit) struct state s = STATE_INIT;
	int r;

	s.dirfd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (s.dirfd < 0)
		return error_errno(err, -errno, "%s", folder);
	s.lock_fd = openat(s.dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s.lock_fd < 0)
		return error_errno(err, -errno, "%s", folder);
	if (flock(s.lock_fd, LOCK_EX | LOCK_NB) < 0)
		return error_set(err, -EBUSY, "another agent uses %s", folder);
	r = state_read_taken(&s, err);
	if (r >= 0)
		r = state_read_today(&s, err);
	if (r < 0) {
		error_prefix(err, "%s", folder);
		return r;
	}
	*ret = s;
	s = STATE_INIT;
	return 0;
}

void state_deinit(struct state *s)
{
	s->dirfd = close_fd(s->dirfd);
	s->lock_fd = close_fd(s->lock_fd);
}

/* A clock that goes back to yesterday starts no new day. One that was years ahead ends there. */
static bool state_is_new_day(const struct state *s, uint64_t now)
{
	uint64_t day = now / SECONDS_A_DAY;

	return day > s->day || day + 1 < s->day;
}

static void state_turn_day(struct state *s, uint64_t now)
{
	if (!state_is_new_day(s, now))
		return;
	s->day = now / SECONDS_A_DAY;
	s->orders = s->uploads = s->bytes = 0;
}

/* The index of the group, or taken_count. */
static size_t state_find_group(const struct state *s, const char *group)
{
	size_t i = 0;

	while (i < s->taken_count && strcmp(s->taken[i].group, group) != 0)
		i++;
	return i;
}

uint64_t state_serial(const struct state *s, const char *group)
{
	size_t i = state_find_group(s, group);

	return i < s->taken_count ? s->taken[i].serial : 0;
}

uint64_t state_last_serial(const struct state *s)
{
	uint64_t serial = 0;

	for (size_t i = 0; i < s->taken_count; i++)
		serial = MAX(serial, s->taken[i].serial);
	return serial;
}

uint64_t state_serial_after(const struct state *s, uint64_t serial)
{
	uint64_t next = 0;

	for (size_t i = 0; i < s->taken_count; i++)
		if (s->taken[i].serial > serial && (!next || s->taken[i].serial < next))
			next = s->taken[i].serial;
	return next;
}

bool state_knows(const struct state *s, const char *group, uint64_t serial,
		 const unsigned char digest[DIGEST_SIZE])
{
	size_t i = state_find_group(s, group);

	return i < s->taken_count && s->taken[i].serial == serial &&
	       memcmp(s->taken[i].digest, digest, DIGEST_SIZE) == 0;
}

static int state_too_many(struct error *err, const char *what)
{
	return error_set(err, -ENOSPC, "there were too many %s", what);
}

int state_pass_over(struct state *s, const struct state_taken *order, struct error *err)
{
	size_t i = state_find_group(s, order->group);
	struct state next = *s;
	int r;

	if (i == STATE_GROUPS_MAX)
		return state_too_many(err, "groups");
	if (i < s->taken_count && s->taken[i].serial >= order->serial)
		return 0;
	next.taken_count = MAX(next.taken_count, i + 1);
	next.taken[i] = *order;
	r = state_write_taken(&next, err);
	if (r >= 0)
		*s = next;
	return r;
}

int state_take(struct state *s, const char *group, uint64_t serial,
	       const unsigned char digest[DIGEST_SIZE], uint64_t now, struct error *err)
{
	size_t i = state_find_group(s, group);
	struct state next = *s;
	int r;

	/* A group is never forgotten: its orders of the past could be taken again. */
	if (i == STATE_GROUPS_MAX || s->open_count == STATE_OPEN_MAX)
		return state_too_many(err, i == STATE_GROUPS_MAX ? "groups" : "orders at once");
	state_turn_day(&next, now);
	next.orders++;
	next.taken_count = MAX(next.taken_count, i + 1);
	snprintf(next.taken[i].group, sizeof(next.taken[i].group), "%s", group);
	next.taken[i].serial = serial;
	memcpy(next.taken[i].digest, digest, DIGEST_SIZE);
	next.open[next.open_count++] = (struct state_open){ .serial = serial, .waits = true };
	/* The quota first: an order that is counted but not taken does no harm. */
	r = state_write_today(&next, err);
	if (r >= 0)
		r = state_write_taken(&next, err);
	if (r >= 0)
		*s = next;
	return r;
}

int state_begin(struct state *s, uint64_t serial, struct error *err)
{
	for (size_t i = 0; i < s->open_count; i++)
		if (s->open[i].serial == serial && s->open[i].waits) {
			s->open[i].waits = false;
			return state_write_taken(s, err);
		}
	return 0;
}

int state_close(struct state *s, uint64_t serial, struct error *err)
{
	for (size_t i = 0; i < s->open_count; i++)
		if (s->open[i].serial == serial) {
			s->open[i] = s->open[--s->open_count];
			return state_write_taken(s, err);
		}
	return 0;
}

int state_add_upload(struct state *s, uint64_t bytes, uint64_t now, struct error *err)
{
	state_turn_day(s, now);
	s->uploads++;
	s->bytes += bytes;
	return state_write_today(s, err);
}

static uint64_t state_count(const struct state *s, uint64_t count, uint64_t now)
{
	return state_is_new_day(s, now) ? 0 : count;
}

uint64_t state_orders(const struct state *s, uint64_t now)
{
	return state_count(s, s->orders, now);
}

uint64_t state_uploads(const struct state *s, uint64_t now)
{
	return state_count(s, s->uploads, now);
}

uint64_t state_bytes(const struct state *s, uint64_t now)
{
	return state_count(s, s->bytes, now);
}
