/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "settings/ini_reader.h"

#include <ctype.h>
#include <ini.h>
#include <string.h>

static char *ini_read_line(char *buffer, int size, void *stream)
{
	struct ini_reader *r = stream;
	size_t len;

	if (r->failed || !fgets(buffer, size, r->file))
		return NULL;
	if (!r->ends_within_line)
		r->line++;
	r->is_continued = isspace((unsigned char)buffer[0]);
	len = strlen(buffer);
	r->ends_within_line = len && buffer[len - 1] != '\n' && !feof(r->file);
	if (r->ends_within_line)
		r->failed =
			error_set(r->err, -EINVAL, "%s:%u: the line is too long", r->path, r->line);
	return r->failed ? NULL : buffer;
}

static int ini_take(void *userdata, const char *section, const char *name, const char *value)
{
	struct ini_reader *r = userdata;

	if (r->failed)
		return 0;
	r->failed = r->take(r, section, name, value);
	if (r->failed)
		error_prefix(r->err, "%s:%u: %s", r->path, r->line, name);
	return !r->failed;
}

int ini_read(struct ini_reader *r)
{
	int line = ini_parse_stream(ini_read_line, r, ini_take, r);

	if (r->failed)
		return r->failed;
	if (ferror(r->file))
		return error_errno(r->err, -EIO, "%s", r->path);
	if (line < 0)
		return error_errno(r->err, -ENOMEM, "%s", r->path);
	if (line > 0)
		return error_set(r->err, -EINVAL, "%s:%d: neither a [section] nor \"key = value\"",
				 r->path, line);
	return 0;
}
