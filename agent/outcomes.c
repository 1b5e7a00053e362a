/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/outcomes.h"

#include <inttypes.h>
#include <string.h>

#include "base/io.h"

#define OUTCOMES "outcomes"
#define FILE_MAX 4096

int outcomes_save(const struct status *s, int state_fd, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];
	int r;

	for (size_t i = 0; i < s->count; i++)
		if (outcome_is_past(s->orders[i].outcome))
			buf_printf(&text, "%" PRIu64 " %s %s\n", s->orders[i].serial,
				   outcome_name(s->orders[i].outcome), s->orders[i].reason);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/" OUTCOMES, state_fd);
	r = buf_string(&text) ? replace_file(path, text.data, text.len, 0600, true) : -ENOMEM;
	return r < 0 ? error_errno(err, r, "the file " OUTCOMES) : 0;
}

/* line: without its end. */
static bool outcomes_take_line(struct status *s, const char *line)
{
	char name[16];
	uint64_t serial;
	int end = 0;

	if (sscanf(line, "%" SCNu64 " %15[a-z]%n", &serial, name, &end) != 2 || line[end] != ' ')
		return false;
	for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
		if (outcome_is_past(i) && strcmp(name, outcome_name(i)) == 0) {
			status_note(s, serial, i, line + end + 1);
			return true;
		}
	return false;
}

int outcomes_load(struct status *s, int state_fd, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = read_file_at(state_fd, OUTCOMES, FILE_MAX, &text);
	char *line, *end;

	if (r == -ENOENT)
		return 0;
	if (r < 0 || !buf_string(&text))
		return error_errno(err, r < 0 ? r : -ENOMEM, "the file " OUTCOMES);
	for (line = text.data; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (!outcomes_take_line(s, line))
			break;
	}
	if (line < text.data + text.len)
		return error_set(err, -EBADMSG, "the file " OUTCOMES " is damaged");
	return 0;
}

bool outcomes_note_results(struct status *s, const struct spool *spool, uint64_t sending,
			   enum outcome outcome, const char *reason)
{
	bool any = false;

	for (size_t i = s->count; i-- > 0;) {
		const struct status_order *order = &s->orders[i];

		if (order->outcome != OUTCOME_UPLOADING || order->serial == sending ||
		    spool_has(spool, order->serial))
			continue;
		/* A recording that ended early goes on saying so. */
		status_note(s, order->serial, outcome, reason ?: order->reason);
		any = true;
	}
	return any;
}
