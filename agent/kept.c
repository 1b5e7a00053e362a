/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "fleet/order.h"

#define FOLDER "orders"
/* Bytes of the first line. */
#define HEAD_MAX 512
#define NO_PLACE "-"

void kept_deinit(struct kept *k)
{
	free(k->place);
	buf_deinit(&k->order);
	*k = (struct kept){ .order = BUF_INIT };
}

int kept_open(int state_fd, struct error *err)
{
	if (mkdirat(state_fd, FOLDER, 0700) < 0 && errno != EEXIST)
		return error_errno(err, -errno, FOLDER);
	return 0;
}

int kept_put(int state_fd, uint64_t serial, uint64_t start_s, const char *place, const char *data,
	     size_t len, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[96];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/" FOLDER "/%" PRIu64, state_fd, serial);
	buf_printf(&text, "%" PRIu64 " %s\n", start_s, place ?: NO_PLACE);
	buf_append(&text, data, len);
	r = buf_error(&text) ?: replace_file(path, text.data, text.len, 0600, true);
	return r < 0 ? error_errno(err, r, "the file " FOLDER "/%" PRIu64, serial) : 0;
}

static int kept_parse(struct kept *k, const struct buf *text)
{
	char *end = memchr(text->data, '\n', text->len), *place;

	errno = 0;
	k->start_s = strtoull(text->data, &place, 10);
	if (!end || errno || place == text->data || *place != ' ' || ++place >= end)
		return -EBADMSG;
	k->place = strndup(place, (size_t)(end - place));
	if (!k->place)
		return -ENOMEM;
	if (strcmp(k->place, NO_PLACE) == 0) {
		free(k->place);
		k->place = NULL;
	}
	buf_append(&k->order, end + 1, text->len - (size_t)(end + 1 - text->data));
	return buf_string(&k->order) ? 0 : -ENOMEM;
}

int kept_get(int state_fd, uint64_t serial, struct kept *ret, struct error *err)
{
	_cleanup_kept_ struct kept kept = { .order = BUF_INIT };
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];
	int r;

	snprintf(path, sizeof(path), FOLDER "/%" PRIu64, serial);
	r = read_file_at(state_fd, path, HEAD_MAX + ORDER_MAX, &text);
	if (r >= 0)
		r = buf_string(&text) ? kept_parse(&kept, &text) : -ENOMEM;
	if (r < 0)
		return error_errno(err, r, "the file %s", path);
	*ret = kept;
	kept = (struct kept){ .order = BUF_INIT };
	return 0;
}

void kept_sweep(int state_fd, bool (*is_wanted)(uint64_t serial, const void *data),
		const void *data)
{
	DIR *dir = folder_at(state_fd, FOLDER);
	struct dirent *e;

	if (!dir)
		return;
	/* A name that is no serial is a file that was being written. */
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' && (e->d_name[strspn(e->d_name, "0123456789")] ||
					    !is_wanted(strtoull(e->d_name, NULL, 10), data)))
			unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
}
