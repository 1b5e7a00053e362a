/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_presign.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "fleet/keys.h"
#include "fleet/result_name.h"
#include "fleet_hash.h"

/* How long results may wait for a network. A board begins to record before the order expires. */
#define UPLOAD_S (7 * UINT64_C(86400))

struct presign {
	char *url, *key;
};

static const struct setting settings[] = {
	{ "swift", "url", offsetof(struct presign, url), setting_string },
	{ "swift", "key", offsetof(struct presign, key), setting_string },
};

static void presign_deinit(struct presign *p)
{
	free(p->url);
	free(p->key);
}

/* libinih cuts a value at a blank and ';'. */
static bool presign_has_comment(FILE *file)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	rewind(file);
	while (getline(&line, &size, file) > 0)
		if (line[0] != ';' && (strstr(line, " ;") || strstr(line, "\t;")))
			return true;
	return false;
}

static int presign_read(struct presign *p, FILE *file, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fileno(file), &st) < 0)
		return error_errno(err, -errno, "%s", path);
	if (st.st_mode & S_IROTH) {
		error_set(err, -EPERM, "%s can be read by everybody", path);
		return error_hint(err, "chmod 600 %s", path);
	}
	if (presign_has_comment(file))
		return error_set(err, -EINVAL, "%s: ';' behind a blank begins a comment", path);
	rewind(file);
	return keys_read(file, path, settings, ARRAY_SIZE(settings), p, err);
}

static int presign_load(struct presign *p, const char *path, struct error *err)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	int r = file ? presign_read(p, file, path, err) : error_errno(err, -errno, "%s", path);

	if (r == 0 && (!p->url || !p->key))
		return error_set(err, -EINVAL, "%s: [swift] needs url and key", path);
	return r;
}

/* The path of the URL, and the name of its container's first object behind it. */
static const char *presign_find_object(const char *url, const char **ret_path)
{
	const char *at = strncmp(url, "https://", 8) == 0 ? strchr(url + 8, '/') : NULL;

	*ret_path = at;
	/* "/v1", "/ACCOUNT" and "/CONTAINER" */
	if (!at || strncmp(at, "/v1/", 4) != 0 || strpbrk(at, "?#% "))
		return NULL;
	for (int i = 0; i < 3; i++) {
		size_t len = strcspn(at + 1, "/");

		if (*at != '/' || !len)
			return NULL;
		at += 1 + len;
	}
	return at + (*at == '/');
}

static int presign_put_words(const unsigned char *hash, uint64_t expires, const char *prefix,
			     struct buf *text, struct error *err)
{
	_cleanup_buf_ struct buf sig = BUF_INIT, until = BUF_INIT, below = BUF_INIT;

	buf_puts(&sig, "temp_url_sig=");
	for (size_t i = 0; i < PRESIGN_HASH_SIZE; i++)
		buf_printf(&sig, "%02x", hash[i]);
	buf_printf(&until, "temp_url_expires=%" PRIu64, expires);
	buf_puts(&below, "temp_url_prefix=");
	for (; *prefix; prefix++)
		buf_printf(&below, *prefix == '=' ? "%%3D" : "%c", *prefix);
	if (!buf_string(&sig) || !buf_string(&until) || !buf_string(&below))
		return error_errno(err, -ENOMEM, "the signature");
	return order_put_words(text, "presigned",
			       (const char *const[]){ sig.data, until.data, below.data }, 3, err);
}

int fleet_presign(const char *file, const struct order *order, struct buf *text, struct error *err)
{
	_cleanup_(presign_deinit) struct presign p = { 0 };
	_cleanup_buf_ struct buf prefix = BUF_INIT, signed_ = BUF_INIT;
	uint64_t expires = order->expires + order->duration_ns / NSEC_PER_SEC + UPLOAD_S;
	unsigned char hash[PRESIGN_HASH_SIZE];
	int r = presign_load(&p, file, err);
	const char *path, *object;
	size_t len;

	if (r < 0)
		return r;
	object = presign_find_object(p.url, &path);
	if (!object) {
		error_set(err, -EINVAL, "%s: the url is not one of Swift", file);
		return error_hint(err, "https://HOST/v1/ACCOUNT/CONTAINER/PREFIX");
	}
	len = strlen(object);
	while (len && object[len - 1] == '/')
		len--;
	buf_printf(&prefix, "%.*s%s", (int)len, object, len ? "/" : "");
	result_folder_put(order->fleet, order->serial, NULL, &prefix);
	buf_putc(&prefix, '/');
	buf_printf(&signed_, "PUT\n%" PRIu64 "\nprefix:%.*s%s%s", expires, (int)(object - path),
		   path, object[-1] == '/' ? "" : "/", buf_string(&prefix) ?: "");
	if (!buf_string(&prefix) || !buf_string(&signed_))
		return error_errno(err, -ENOMEM, "the signature");
	r = fleet_sign(p.key, signed_.data, signed_.len, hash, err);
	return r < 0 ? r : presign_put_words(hash, expires, prefix.data, text, err);
}
