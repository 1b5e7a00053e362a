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
/* Bytes of curl's messages. */
#define SAID_MAX (64U << 10)
/* curl's exit status for a file above --max-filesize. */
#define STATUS_TOO_LARGE 63
/* curl writes it behind its messages. */
#define HTTP_STATUS(code) "\nHTTP " code "\n"

struct curl_words {
	const char *argv[WORDS_MAX];
	size_t count;
	char max[24];
};

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
static void curl_begin(struct curl_words *w, const char *config)
{
	static const char *const ours[] = { "--proto",	    "=https",
					    "--globoff",    "--fail",
					    "--silent",	    "--no-progress-meter",
					    "--show-error", "--connect-timeout",
					    CONNECT_S };

	curl_add(w, "curl");
	curl_add(w, "--disable");
	if (config) {
		curl_add(w, "--config");
		curl_add(w, config);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		curl_add(w, ours[i]);
}

static int curl_run(struct curl_words *w, int in, int out, int folder, uint64_t file_max,
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

/* Its message, "curl: (22) The requested URL returned error: 404", without the number. */
static const char *curl_find_reason(char *said)
{
	char *reason = said ? strstr(said, "curl: (") : NULL;

	reason = reason ? strstr(reason, ") ") : NULL;
	if (!reason)
		return NULL;
	reason += 2;
	reason[strcspn(reason, "\n")] = '\0';
	return *reason ? reason : NULL;
}

static int curl_explain(int status, const char *url, int said_fd, struct error *err)
{
	_cleanup_buf_ struct buf said = BUF_INIT;
	int e = status == STATUS_TOO_LARGE ? -EFBIG : -EIO;
	const char *reason;

	lseek(said_fd, 0, SEEK_SET);
	if (read_to_end(said_fd, SAID_MAX, &said) < 0)
		buf_clear(&said);
	/* curl_find_reason() cuts the text. */
	if (buf_string(&said) &&
	    (strstr(said.data, HTTP_STATUS("404")) || strstr(said.data, HTTP_STATUS("403"))))
		e = -ENOENT;
	reason = curl_find_reason(buf_string(&said));
	if (!reason)
		error_set(err, -EIO, "%s: curl ended with status %d", url, status);
	else
		error_set(err, -EIO, "%s: %s", url, reason);
	return e;
}

/* Exchanges one file, which is curl's standard input. What curl says becomes the error. */
static int curl_run_one(struct curl_words *w, const char *url, int fd, uint64_t file_max,
			struct error *err)
{
	_cleanup_close_ int said = input_create_temp();
	int r;

	if (said < 0)
		return error_errno(err, said, "%s", input_temp_place());
	curl_add(w, "--stderr");
	curl_add(w, "-");
	curl_add(w, "--write-out");
	curl_add(w, HTTP_STATUS("%{http_code}"));
	curl_add(w, "--url");
	curl_add(w, url);
	r = curl_run(w, fd, said, -EBADF, file_max, err);
	return r > 0 ? curl_explain(r, url, said, err) : r;
}

int curl_get(const char *config, const char *url, size_t max, struct buf *ret, struct error *err)
{
	struct curl_words w = { 0 };
	_cleanup_close_ int fd = -EBADF;
	int r = curl_check(url, err);

	if (r < 0)
		return r;
	curl_begin(&w, config);
	fd = input_create_temp();
	if (fd < 0)
		return error_errno(err, fd, "%s", input_temp_place());
	curl_add_max(&w, max);
	curl_add(&w, "--output");
	curl_add(&w, "/dev/fd/0");
	r = curl_run_one(&w, url, fd, max + 1, err);
	/* Without a length in the header, curl before 8.4 says only that it can't write. */
	if (r == -EFBIG || (r == -EIO && lseek(fd, 0, SEEK_END) > (off_t)max))
		return error_set(err, -EFBIG, "%s: the answer has more than %zu bytes", url, max);
	if (r < 0)
		return r;
	lseek(fd, 0, SEEK_SET);
	r = read_to_end(fd, max, ret);
	return r < 0 ? error_errno(err, r, "%s", url) : 0;
}

int curl_put(const char *config, const char *url, int fd, struct error *err)
{
	struct curl_words w = { 0 };
	int r = curl_check(url, err);

	if (r < 0)
		return r;
	curl_begin(&w, config);
	/* A file has a length, which stores want to know. */
	curl_add(&w, "--upload-file");
	curl_add(&w, "/dev/fd/0");
	curl_add(&w, "--output");
	curl_add(&w, "/dev/null");
	return curl_run_one(&w, url, fd, 0, err);
}

int curl_get_all(const char *config, int list_fd, uint64_t file_max, int folder, struct error *err)
{
	static const char *const more[] = { "--parallel",     "--parallel-max",	   "16",
					    "--create-dirs",  "--remove-on-error", "--output-dir",
					    TOOL_FOLDER_PATH, "--config",	   "-" };
	struct curl_words w = { 0 };
	int r;

	curl_begin(&w, config);
	curl_add_max(&w, file_max);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		curl_add(&w, more[i]);
	r = curl_run(&w, list_fd, -EBADF, folder, file_max, err);
	return r < 0 ? r : r > 0;
}
