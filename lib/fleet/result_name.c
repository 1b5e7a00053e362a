/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/result_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 4
#define HEX "0123456789abcdef"

/* Copies the text behind KEY=, up to the slash or the end, if it is a name. */
static bool result_take_part(const char *part, const char *key, char ret[WORD_NAME_MAX + 1])
{
	size_t key_len = strlen(key), len = strcspn(part, "/");

	if (strncmp(part, key, key_len) != 0 || len - key_len > WORD_NAME_MAX)
		return false;
	memcpy(ret, part + key_len, len - key_len);
	ret[len - key_len] = '\0';
	return word_is_name(ret);
}

static bool result_take_order(const char *part, uint64_t *ret)
{
	char text[WORD_NAME_MAX + 1], *end;

	if (!result_take_part(part, "order=", text) || text[0] < '1' || text[0] > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && !*end;
}

bool result_is_segment_format(const char *format)
{
	static const char *const formats[] = { "pftrace", "pftrace.gz", "json",	 "json.gz",
					       "html",	  "txt",	"txt.gz" };

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(format, formats[i]))
			return true;
	return false;
}

unsigned result_segment_parse(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long number = digits <= 7 ? strtoul(text, NULL, 10) : 0;

	/* `record --rotate` writes four digits, and more only if it needs them. */
	if (!number || digits < 4 || (digits > 4 && text[0] == '0') || text[digits] != '.' ||
	    !result_is_segment_format(text + digits + 1))
		return 0;
	return (unsigned)number;
}

static bool result_take_file(const char *part, struct result_name *ret)
{
	const char *suffix = part + strspn(part, HEX);

	if (suffix - part != RESULT_HASH_LEN)
		return false;
	ret->segment = 0;
	ret->is_packed = !strcmp(suffix, ".ndjson.zst");
	if (ret->is_packed || !strcmp(suffix, ".json"))
		ret->kind = RESULT_REPORTS;
	else if (!strcmp(suffix, ".traced") ||
		 (*suffix == '.' && (ret->segment = result_segment_parse(suffix + 1))))
		ret->kind = RESULT_CAPTURE;
	else
		return false;
	strcpy(ret->file, part);
	return true;
}

bool result_name_parse(const char *path, struct result_name *ret)
{
	const char *parts[PARTS], *at = path + strlen(path);

	for (int i = PARTS - 1; i >= 0; i--) {
		const char *from = at;

		while (from > path && from[-1] != '/')
			from--;
		parts[i] = from;
		at = from > path ? from - 1 : from;
	}
	return result_take_part(parts[0], "fleet=", ret->fleet) &&
	       result_take_order(parts[1], &ret->order) &&
	       result_take_part(parts[2], "board=", ret->board) && result_take_file(parts[3], ret);
}

void result_folder_put(const char *fleet, uint64_t order, const char *board, struct buf *out)
{
	buf_printf(out, "fleet=%s/order=%" PRIu64, fleet, order);
	if (board)
		buf_printf(out, "/board=%s", board);
}

bool result_name_fits(const struct result_name *name, const unsigned char hash[RESULT_HASH_SIZE])
{
	char text[RESULT_HASH_LEN];

	for (size_t i = 0; i < RESULT_HASH_SIZE; i++) {
		text[2 * i] = HEX[hash[i] >> 4];
		text[2 * i + 1] = HEX[hash[i] & 15];
	}
	return memcmp(name->file, text, sizeof(text)) == 0;
}
