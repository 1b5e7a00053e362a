/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/s3_key.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/trusted.h"
#include "base/io.h"
#include "fleet/keys.h"

static const struct setting settings[] = {
	{ "default", "aws_access_key_id", offsetof(struct s3_key, id), setting_string },
	{ "default", "aws_secret_access_key", offsetof(struct s3_key, secret), setting_string },
};

static int s3_key_check(const struct s3_key *k, FILE *file, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fileno(file), &st) < 0)
		return error_errno(err, -errno, "%s", path);
	if (st.st_mode & S_IROTH) {
		error_set(err, -EPERM, "%s can be read by everybody", path);
		return error_hint(err, "chgrp traced-agent %s; chmod 640 %s", path, path);
	}
	if (!k->id || !*k->id || !k->secret || !*k->secret)
		return error_set(err, -EINVAL,
				 "%s: [default] needs aws_access_key_id and aws_secret_access_key",
				 path);
	return 0;
}

int s3_key_load(struct s3_key *ret, const char *path, uid_t owner, struct error *err)
{
	_cleanup_(s3_key_deinit) struct s3_key key = { 0 };
	_cleanup_fclose_ FILE *file = NULL;
	int r = trusted_open(AT_FDCWD, path, owner, &file, err);

	if (r >= 0)
		r = keys_read(file, path, settings, ARRAY_SIZE(settings), &key, err);
	if (r >= 0)
		r = s3_key_check(&key, file, path, err);
	if (r < 0)
		return r;
	*ret = key;
	key = (struct s3_key){ 0 };
	return 0;
}

void s3_key_deinit(struct s3_key *k)
{
	free(k->id);
	free(k->secret);
	*k = (struct s3_key){ 0 };
}
