/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/signature.h"

#include <dirent.h>
#include <sodium.h>
#include <string.h>

#include "agent/trusted.h"
#include "base/io.h"

#define COMMENT "untrusted comment: "
/* The longest comment that signify writes or reads. */
#define COMMENT_MAX 1024
#define KEY_FILE_MAX 4096

struct signed_head {
	unsigned char algorithm[2], number[8];
};

struct key_bytes {
	struct signed_head head;
	unsigned char key[crypto_sign_PUBLICKEYBYTES];
};

struct signature_bytes {
	struct signed_head head;
	unsigned char signature[crypto_sign_BYTES];
};

/* Decodes the two lines at data into exactly size bytes. Returns what follows them, or NULL. */
static const char *signature_decode(const char *data, size_t len, void *ret, size_t size)
{
	const char *end = data + len, *line, *rest;
	size_t decoded;

	if (len < sizeof(COMMENT) || memcmp(data, COMMENT, sizeof(COMMENT) - 1) != 0)
		return NULL;
	line = memchr(data, '\n', MIN(len, sizeof(COMMENT) + COMMENT_MAX));
	if (!line)
		return NULL;
	line++;
	rest = memchr(line, '\n', (size_t)(end - line));
	if (!rest ||
	    sodium_base642bin(ret, size, line, (size_t)(rest - line), NULL, &decoded, NULL,
			      sodium_base64_VARIANT_ORIGINAL) < 0 ||
	    decoded != size)
		return NULL;
	return rest + 1;
}

static int public_keys_add(struct public_keys *keys, int dirfd, const char *name, uid_t owner,
			   struct error *err)
{
	_cleanup_fclose_ FILE *file = NULL;
	struct public_key *key = &keys->keys[keys->count];
	char data[KEY_FILE_MAX];
	struct key_bytes bytes;
	ssize_t len;
	int r;

	if (keys->count == SIGNATURE_KEYS_MAX)
		return error_set(err, -E2BIG, "there are more than %d keys", SIGNATURE_KEYS_MAX);
	r = trusted_open(dirfd, name, owner, &file, err);
	if (r < 0)
		return r;
	len = read_full(fileno(file), data, sizeof(data));
	if (len < 0)
		return error_errno(err, (int)len, "%s", name);
	if (!signature_decode(data, (size_t)len, &bytes, sizeof(bytes)) ||
	    memcmp(bytes.head.algorithm, "Ed", 2) != 0)
		return error_set(err, -EINVAL, "%s is not a public key of signify", name);
	key->name = strdup(name);
	if (!key->name)
		return error_errno(err, -ENOMEM, "%s", name);
	memcpy(key->number, bytes.head.number, sizeof(key->number));
	memcpy(key->key, bytes.key, sizeof(key->key));
	keys->count++;
	return 0;
}

static bool signature_is_key_name(const char *name)
{
	size_t len = strlen(name);

	return name[0] != '.' && len > 4 && strcmp(name + len - 4, ".pub") == 0;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

int public_keys_load(struct public_keys *ret, const char *folder, uid_t owner, struct error *err)
{
	_cleanup_(public_keys_deinit) struct public_keys keys = { 0 };
	_cleanup_(closedirp) DIR *dir = NULL;
	struct dirent *e;
	int fd, r = 0;

	fd = trusted_open_folder(folder, owner, err);
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return error_errno(err, -ENOMEM, "%s", folder);
	}
	while (r >= 0 && (e = readdir(dir)))
		if (signature_is_key_name(e->d_name))
			r = public_keys_add(&keys, fd, e->d_name, owner, err);
	if (r < 0) {
		error_prefix(err, "%s", folder);
		return r;
	}
	if (!keys.count) {
		error_set(err, -ENOENT, "%s has no public key", folder);
		return error_hint(err, "signify -G -n -p order.pub -s order.sec makes a pair; put "
				       "the .pub there");
	}
	*ret = keys;
	keys = (struct public_keys){ 0 };
	return 0;
}

void public_keys_deinit(struct public_keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		free(keys->keys[i].name);
	*keys = (struct public_keys){ 0 };
}

int signature_check(const struct public_keys *keys, const char *data, size_t len,
		    const char **ret_message, const char **ret_signer, struct error *err)
{
	struct signature_bytes bytes;
	const char *message = signature_decode(data, len, &bytes, sizeof(bytes));
	size_t message_len;
	bool is_known = false;

	if (!message || memcmp(bytes.head.algorithm, "Ed", 2) != 0)
		return error_set(err, -EBADMSG, "it has no signature of signify in front");
	message_len = len - (size_t)(message - data);
	for (size_t i = 0; i < keys->count; i++) {
		const struct public_key *key = &keys->keys[i];

		if (memcmp(key->number, bytes.head.number, sizeof(key->number)) != 0)
			continue;
		is_known = true;
		if (crypto_sign_verify_detached(bytes.signature, (const unsigned char *)message,
						message_len, key->key) == 0) {
			*ret_message = message;
			*ret_signer = key->name;
			return 0;
		}
	}
	return error_set(err, -EBADMSG, "%s",
			 is_known ? "its signature is wrong"
				  : "it is signed with a key that this board does not have");
}
