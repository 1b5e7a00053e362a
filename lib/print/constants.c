/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/constants.h"

#include <string.h>

/* Kernel ABI constants for streams that lack them; headers are those of include/uapi. */
static const struct {
	const char *name;
	int64_t value;
} known[] = {
	/* linux/ioprio.h */
	{ "IOPRIO_CLASS_NONE", 0 },
	{ "IOPRIO_CLASS_RT", 1 },
	{ "IOPRIO_CLASS_BE", 2 },
	{ "IOPRIO_CLASS_IDLE", 3 },
	{ "IOPRIO_CLASS_INVALID", 7 },
	/* net/tcp_states.h, shown to user space by sock_diag */
	{ "TCP_ESTABLISHED", 1 },
	{ "TCP_SYN_SENT", 2 },
	{ "TCP_SYN_RECV", 3 },
	{ "TCP_FIN_WAIT1", 4 },
	{ "TCP_FIN_WAIT2", 5 },
	{ "TCP_TIME_WAIT", 6 },
	{ "TCP_CLOSE", 7 },
	{ "TCP_CLOSE_WAIT", 8 },
	{ "TCP_LAST_ACK", 9 },
	{ "TCP_LISTEN", 10 },
	{ "TCP_CLOSING", 11 },
	{ "TCP_NEW_SYN_RECV", 12 },
};

static uint64_t constant_hash(const char *name, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3;
	return h;
}

struct constant_key {
	const char *name;
	size_t len;
};
DEFINE_TABLE(constant_slots, struct constant, struct constant_key, slot->name,
	     constant_hash(slot->name, strlen(slot->name)),
	     !strncmp(slot->name, key.name, key.len) && !slot->name[key.len]);

void constants_deinit(struct constants *c)
{
	TABLE_FOR_EACH(constant_slots, &c->all, slot)
	free(slot->name);
	TABLE_DEINIT(&c->all);
}

int constants_add(struct constants *c, const char *name, size_t len, int64_t value)
{
	struct constant *slot = constant_slots_place(&c->all, constant_hash(name, len),
						     (struct constant_key){ name, len });

	if (!slot)
		return -ENOMEM;
	if (slot->name)
		return 0;
	slot->name = strndup(name, len);
	if (!slot->name)
		return -ENOMEM;
	slot->value = value;
	c->all.count++;
	return 0;
}

static bool constant_parse_line(const char *line, size_t len, size_t *ret_name_len, int64_t *ret)
{
	char text[32], *end;
	const char *space = memchr(line, ' ', len);
	size_t n;

	if (!space || space == line || memchr(line, '\0', (size_t)(space - line)))
		return false;
	n = len - (size_t)(space + 1 - line);
	if (!n || n >= sizeof(text))
		return false;
	memcpy(text, space + 1, n);
	text[n] = '\0';
	errno = 0;
	*ret = text[0] == '-' ? strtoll(text, &end, 0) : (int64_t)strtoull(text, &end, 0);
	*ret_name_len = (size_t)(space - line);
	return !errno && end != text && !*end;
}

int constants_add_text(struct constants *c, const char *text, size_t len)
{
	while (len) {
		const char *nl = memchr(text, '\n', len);
		size_t line = nl ? (size_t)(nl - text) : len, name_len, used = line + (nl != NULL);
		int64_t value;

		if (constant_parse_line(text, line, &name_len, &value) &&
		    constants_add(c, text, name_len, value) < 0)
			return -ENOMEM;
		text += used;
		len -= used;
	}
	return 0;
}

bool constants_find(const struct constants *c, const char *name, size_t len, int64_t *ret)
{
	const struct constant *slot = constant_slots_find(&c->all, constant_hash(name, len),
							  (struct constant_key){ name, len });

	if (slot) {
		*ret = slot->value;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i].name) == len && !memcmp(known[i].name, name, len)) {
			*ret = known[i].value;
			return true;
		}
	return false;
}

int constants_put_text(const struct constants *c, struct buf *out)
{
	TABLE_FOR_EACH(constant_slots, &c->all, slot)
	buf_printf(out, "%s %lld\n", slot->name, (long long)slot->value);
	return buf_error(out);
}
