/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "curl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "input.h"
#include "tool.h"

#define WORDS_MAX 32
#define CONNECT_S "30"

struct curl_words {
	const char *argv[WORDS_MAX];
	size_t count;
	char *config; /* owned */
	char max[24];
};

static void curl_words_deinit(struct curl_words *w)
{
	free(w->config);
}
#define _cleanup_curl_words_ _cleanup_(curl_words_deinit)

static void curl_add(struct curl_words *w, const char *word)
{
	w->argv[w->count++] = word;
}

/* It refuses a larger file by its header; where there is none, before 8.4, it writes on. */
static void curl_add_max(struct curl_words *w, uint64_t max)
{
	snprintf(w->max, sizeof(w->max), "%" PRIu64, max);
	curl_add(w, "--max-filesize");
	curl_add(w, w->max);
}

/* The configuration comes first: later options count. */
static int curl_begin(struct curl_words *w, const char *config, struct error *err)
{
	static const char *const ours[] = { "--proto",	    "=https",
					    "--globoff",    "--fail",
					    "--silent",	    "--no-progress-meter",
					    "--show-error", "--connect-timeout",
					    CONNECT_S };

	curl_add(w, "curl");
	curl_add(w, "--disable");
	if (config) {
		/* curl runs in another folder, perhaps. */
		w->config = realpath(config, NULL);
		if (!w->config)
			return error_errno(err, -errno, "%s", config);
		curl_add(w, "--config");
		curl_add(w, w->config);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		curl_add(w, ours[i]);
	return 0;
}

static int curl_run(struct curl_words *w, int in, int out, const char *folder, uint64_t file_max,
		    struct error *err)
{
	int r;

	if (in >= 0)
		lseek(in, 0, SEEK_SET);
	r = tool_run(w->argv, in, out, folder, file_max, err);
	return r == -ENOENT ? error_hint(err, "install the program curl") : r;
}

static int curl_check(const char *url, struct error *err)
{
	if (!strncmp(url, "https://", 8) && url[8])
		return 0;
	error_set(err, -EINVAL, "'%s' is no URL of HTTPS", url);
	return error_hint(err, "for example https://fleet.example/orders/doors");
}

int curl_get(const char *config, const char *url, size_t max, struct buf *ret, struct error *err)
{
	_cleanup_curl_words_ struct curl_words w = { 0 };
	_cleanup_close_ int fd = -EBADF;
	int r = curl_check(url, err);

	if (r == 0)
		r = curl_begin(&w, config, err);
	if (r < 0)
		return r;
	fd = input_create_temp();
	if (fd < 0)
		return error_errno(err, fd, "%s", input_temp_place());
	curl_add_max(&w, max);
	curl_add(&w, "--url");
	curl_add(&w, url);
	r = curl_run(&w, -EBADF, fd, NULL, max + 1, err);
	if (r > 0)
		return error_set(err, -EIO, "%s: curl ended with status %d", url, r);
	if (r == 0) {
		lseek(fd, 0, SEEK_SET);
		r = read_to_end(fd, max, ret);
		if (r < 0)
			error_errno(err, r, "%s", url);
	}
	return r < 0 ? r : 0;
}

int curl_put(const char *config, const char *url, int fd, struct error *err)
{
	_cleanup_curl_words_ struct curl_words w = { 0 };
	int r = curl_check(url, err);

	if (r == 0)
		r = curl_begin(&w, config, err);
	if (r < 0)
		return r;
	/* A file has a length, which stores want to know. */
	curl_add(&w, "--upload-file");
	curl_add(&w, "/dev/fd/0");
	curl_add(&w, "--output");
	curl_add(&w, "/dev/null");
	curl_add(&w, "--url");
	curl_add(&w, url);
	r = curl_run(&w, fd, -EBADF, NULL, 0, err);
	return r > 0 ? error_set(err, -EIO, "%s: curl ended with status %d", url, r) : r;
}

int curl_get_all(const char *config, int list_fd, uint64_t file_max, const char *folder,
		 struct error *err)
{
	static const char *const more[] = {
		"--parallel",	     "--parallel-max", "16", "--create-dirs",
		"--remove-on-error", "--config",       "-"
	};
	_cleanup_curl_words_ struct curl_words w = { 0 };
	int r = curl_begin(&w, config, err);

	if (r < 0)
		return r;
	curl_add_max(&w, file_max);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		curl_add(&w, more[i]);
	r = curl_run(&w, list_fd, -EBADF, folder, file_max, err);
	return r < 0 ? r : r > 0;
}
