/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process's marks as the kernel's user event traced_mark, for perf, trace-cmd and the like
 * (Linux 6.4, CONFIG_USER_EVENTS); no BPF program gets them (7.2). Only if TRACED_USER_EVENTS is
 * set: registering needs the right to write into tracefs, and everybody can see the event's name.
 * The kernel sets a bit in traced_listeners while somebody listens; then each mark costs system
 * calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "internal.h"

#define USER_EVENTS_FILE "/sys/kernel/tracing/user_events_data"
#define USER_EVENT                                                                                 \
	"traced_mark char[4] phase; __rel_loc char[] category; __rel_loc char[] name; "            \
	"__rel_loc char[] args; u64 duration"
#define TEXT_MAX 256
#define ARGS_TEXT_MAX 1024

/* include/uapi/linux/user_events.h, which older systems lack */
struct user_reg {
	uint32_t size;
	uint8_t enable_bit;  /* to set in *enable_addr while somebody listens */
	uint8_t enable_size; /* bytes of *enable_addr */
	uint16_t flags;
	uint64_t enable_addr;
	uint64_t name_args;
	uint32_t write_index; /* output: each write begins with it */
} __attribute__((packed));
#define DIAG_IOCSREG _IOWR('*', 0, struct user_reg *)

uint32_t traced_listeners;

static int event_file; /* the descriptor + 1; 0: none */
static dev_t event_device;
static ino_t event_inode;
static uint32_t event_index;

/* Avoids low numbers: some programs expect to get them. */
static int user_event_open(void)
{
	int fd = open(USER_EVENTS_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW), high;

	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, 256);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static bool user_event_try(void)
{
	struct user_reg reg = {
		.size = sizeof(reg),
		.enable_size = sizeof(traced_listeners),
		.enable_addr = (uint64_t)(uintptr_t)&traced_listeners,
		.name_args = (uint64_t)(uintptr_t)USER_EVENT,
	};
	int fd = user_event_open();
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || ioctl(fd, DIAG_IOCSREG, &reg) < 0) {
		close(fd);
		return false;
	}
	event_device = st.st_dev;
	event_inode = st.st_ino;
	event_index = reg.write_index;
	event_file = fd + 1;
	return true;
}

__attribute__((constructor)) static void user_event_register(void)
{
	const char *wanted = secure_getenv("TRACED_USER_EVENTS");
	int saved = errno;

	if (wanted && strcmp(wanted, "1") == 0)
		user_event_try();
	errno = saved;
}

/* Programs may close unknown descriptors, and their numbers are reused. */
static bool user_event_is_open(void)
{
	struct stat st;

	return event_file && fstat(event_file - 1, &st) == 0 && st.st_dev == event_device &&
	       st.st_ino == event_inode;
}

/* A terminated text; what does not fit is cut. */
struct line {
	char *text;
	size_t len, room;
};

static void line_add(struct line *l, const char *text, size_t length)
{
	size_t left = l->room - 1 - l->len;

	length = length < left ? length : left;
	memcpy(l->text + l->len, text, length);
	l->len += length;
	l->text[l->len] = '\0';
}

static void line_add_value(struct line *l, const struct traced_arg *a)
{
	char number[64] = "null";

	switch ((enum traced_type)a->type) {
	case TRACED_TYPE_STRING:
	case TRACED_TYPE_JSON:
		line_add(l, a->value.text, strnlen(a->value.text, a->length));
		return;
	case TRACED_TYPE_INT:
		snprintf(number, sizeof(number), "%" PRId64, a->value.i);
		break;
	case TRACED_TYPE_UINT:
		snprintf(number, sizeof(number), "%" PRIu64, a->value.u);
		break;
	case TRACED_TYPE_DOUBLE:
		snprintf(number, sizeof(number), "%.17g", a->value.d);
		break;
	case TRACED_TYPE_BOOL:
		strcpy(number, a->value.u ? "true" : "false");
		break;
	case TRACED_TYPE_POINTER:
	case TRACED_TYPE_REF:
		snprintf(number, sizeof(number), "0x%" PRIx64, a->value.u);
		break;
	case TRACED_TYPE_NULL:
		break;
	}
	line_add(l, number, strlen(number));
}

static void line_add_key(struct line *l, const char *key)
{
	if (l->len)
		line_add(l, " ", 1);
	line_add(l, key, strlen(key));
	line_add(l, "=", 1);
}

static void line_add_args(struct line *l, const struct traced_mark *m)
{
	for (size_t i = 0; i < m->arg_count; i++) {
		const struct traced_arg *a = &m->args[i];
		const char *label = a->key.label ? a->key.label->name : NULL;

		line_add_key(l, (a->named ? a->key.text : label) ?: "");
		line_add_value(l, a);
	}
	if (m->id.kind == TRACED_ID_NONE)
		return;
	line_add_key(l, "id");
	if (m->id.text)
		line_add(l, m->id.text, strlen(m->id.text));
	else
		line_add_value(l, &(struct traced_arg){ .type = TRACED_TYPE_REF,
							.value.u = m->id.number });
}

/* The value of a __rel_loc field whose end is `end`, for a text at `at`. */
static uint32_t user_event_place(uint32_t end, size_t at, size_t size)
{
	return (uint32_t)size << 16 | (uint32_t)(at - end);
}

static void user_event_send(char phase, const struct traced_mark *m)
{
	struct {
		char phase[4];
		uint32_t category, name, args;
		uint64_t duration;
	} fields = { .phase = { phase } };
	char texts[2 * TEXT_MAX + ARGS_TEXT_MAX];
	struct line category = { texts, 0, TEXT_MAX }, name, args;
	const char *of_category = m->label ? m->label->category : m->category,
		   *of_name = m->label ? m->label->name : m->name;
	size_t at = sizeof(fields);
	struct iovec parts[] = {
		{ &event_index, sizeof(event_index) },
		{ &fields, sizeof(fields) },
		{ texts, 0 },
	};

	line_add(&category, of_category ?: "", strlen(of_category ?: ""));
	name = (struct line){ category.text + category.len + 1, 0, TEXT_MAX };
	line_add(&name, of_name ?: "", strlen(of_name ?: ""));
	args = (struct line){ name.text + name.len + 1, 0, ARGS_TEXT_MAX };
	args.text[0] = '\0';
	line_add_args(&args, m);
	fields.category = user_event_place(8, at, category.len + 1);
	at += category.len + 1;
	fields.name = user_event_place(12, at, name.len + 1);
	at += name.len + 1;
	fields.args = user_event_place(16, at, args.len + 1);
	if (m->start)
		fields.duration = (m->time ?: traced_now()) - m->start;
	parts[2].iov_len = (size_t)(args.text + args.len + 1 - texts);
	/* It fails if nobody listens any more. */
	if (writev(event_file - 1, parts, 3) < 0)
		return;
}

void user_event_write(char phase, const struct traced_mark *m)
{
	int saved = errno;

	if (user_event_is_open())
		user_event_send(phase, m);
	errno = saved;
}
