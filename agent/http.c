/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/http.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "base/io.h"

#define CONNECT_S 30L
/* For a request without a body. */
#define ANSWER_S 60L
/* A transfer slower than that ends. */
#define SLOW_BYTES_A_S 64L
#define SLOW_S 60L
/* And an upload that takes longer than at that speed: others wait behind it. */
#define SLOW_UPLOAD_BYTES_A_S 1024
/* An upload's answer may have so many bytes; nobody reads them. */
#define DISCARD_MAX (64U << 10)

struct http {
	CURLM *multi;
	CURL *curl;
	const struct policy *policy;
	const struct http_meanwhile *meanwhile;
	char message[CURL_ERROR_SIZE];
	/* The request in progress: */
	struct http_reply *reply;
	struct buf *body; /* NULL: no body is wanted */
	size_t body_max, discarded;
	int fd;
	uint64_t at, size;
};

int http_new(struct http **ret, const struct policy *policy, const struct http_meanwhile *meanwhile,
	     struct error *err)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h)
		return error_errno(err, -ENOMEM, "HTTPS");
	h->policy = policy;
	h->meanwhile = meanwhile;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(h->curl = curl_easy_init()) ||
	    !(h->multi = curl_multi_init())) {
		http_free(h);
		return error_set(err, -ENOMEM, "libcurl does not start");
	}
	*ret = h;
	return 0;
}

struct http *http_free(struct http *h)
{
	if (!h)
		return NULL;
	curl_easy_cleanup(h->curl);
	curl_multi_cleanup(h->multi);
	curl_global_cleanup();
	free(h);
	return NULL;
}

static size_t http_take_body(char *data, size_t size, size_t count, void *userdata)
{
	struct http *h = userdata;

	size *= count;
	if (!h->body) {
		h->discarded += size;
		return h->discarded <= DISCARD_MAX ? size : 0;
	}
	if (size > h->body_max - h->body->len)
		return 0;
	buf_append(h->body, data, size);
	return h->body->failed ? 0 : size;
}

static size_t http_give_body(char *data, size_t size, size_t count, void *userdata)
{
	struct http *h = userdata;
	uint64_t want = MIN((uint64_t)size * count, h->size - h->at);
	ssize_t n = pread_full(h->fd, data, (size_t)want, (off_t)h->at);

	/* A shorter file would leave the store waiting. */
	if (n < 0 || (uint64_t)n < want)
		return CURL_READFUNC_ABORT;
	h->at += (uint64_t)n;
	return (size_t)n;
}

/* Keeps an ETag that can go into a header again. */
static size_t http_take_header(char *line, size_t size, size_t count, void *userdata)
{
	static const char name[] = "etag:";
	struct http_reply *reply = ((struct http *)userdata)->reply;
	size_t len = size * count, at = sizeof(name) - 1, end = len;

	if (len <= at || strncasecmp(line, name, at) != 0)
		return len;
	reply->etag[0] = '\0';
	while (at < end && line[at] == ' ')
		at++;
	while (end > at && strchr("\r\n ", line[end - 1]))
		end--;
	if (end - at >= sizeof(reply->etag))
		return len;
	for (size_t i = at; i < end; i++)
		if (line[i] < ' ' || line[i] > '~')
			return len;
	memcpy(reply->etag, line + at, end - at);
	reply->etag[end - at] = '\0';
	return len;
}

/* A child shall not have our connections. */
static int http_take_socket(void *userdata _unused_, curl_socket_t fd,
			    curlsocktype purpose _unused_)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

static CURLcode http_set_up(struct http *h, const char *url)
{
	CURL *c = h->curl;
	CURLcode r = CURLE_OK;

	/* Open connections stay. */
	curl_easy_reset(c);
	h->discarded = 0;
#define SET(option, value) (r = r == CURLE_OK ? curl_easy_setopt(c, option, value) : r)
	SET(CURLOPT_PROTOCOLS_STR, "https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (h->policy->ca) {
		SET(CURLOPT_CAINFO, h->policy->ca);
		SET(CURLOPT_CAPATH, NULL);
	}
	if (h->policy->certificate) {
		SET(CURLOPT_SSLCERT, h->policy->certificate);
		SET(CURLOPT_SSLKEY, h->policy->key);
	}
	SET(CURLOPT_URL, url);
	SET(CURLOPT_USERAGENT, "traced-agent/" TRACED_VERSION);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	SET(CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_A_S);
	SET(CURLOPT_LOW_SPEED_TIME, SLOW_S);
	SET(CURLOPT_ERRORBUFFER, h->message);
	SET(CURLOPT_WRITEFUNCTION, http_take_body);
	SET(CURLOPT_WRITEDATA, h);
	SET(CURLOPT_HEADERFUNCTION, http_take_header);
	SET(CURLOPT_HEADERDATA, h);
	SET(CURLOPT_SOCKOPTFUNCTION, http_take_socket);
#undef SET
	return r;
}

/* The hash of size bytes of fd as S3 wants it; fd -1: of no bytes. */
static int http_hash(int fd, uint64_t size, char ret[crypto_hash_sha256_BYTES * 2 + 1])
{
	unsigned char hash[crypto_hash_sha256_BYTES], piece[16384];
	crypto_hash_sha256_state state;
	ssize_t n = 0;

	crypto_hash_sha256_init(&state);
	for (uint64_t at = 0; at < size; at += (uint64_t)n) {
		n = pread_full(fd, piece, (size_t)MIN(size - at, (uint64_t)sizeof(piece)),
			       (off_t)at);
		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		crypto_hash_sha256_update(&state, piece, (size_t)n);
	}
	crypto_hash_sha256_final(&state, hash);
	sodium_bin2hex(ret, crypto_hash_sha256_BYTES * 2 + 1, hash, sizeof(hash));
	return 0;
}

/*
 * Signs the request with S3's key, if there is one. libcurl 7.88 does not know that S3 wants the
 * body's hash. ret_headers: freed by the caller, after the request.
 */
static CURLcode http_sign(struct http *h, int fd, uint64_t size, struct curl_slist **ret_headers)
{
	static const char name[] = "x-amz-content-sha256: ";
	char provider[96], header[sizeof(name) + crypto_hash_sha256_BYTES * 2] = "";
	CURLcode r;

	if (!h->policy->s3_region)
		return CURLE_OK;
	memcpy(header, name, sizeof(name));
	if (http_hash(fd, size, header + sizeof(name) - 1) < 0)
		return CURLE_READ_ERROR;
	*ret_headers = curl_slist_append(NULL, header);
	if (!*ret_headers)
		return CURLE_OUT_OF_MEMORY;
	snprintf(provider, sizeof(provider), "aws:amz:%s:s3", h->policy->s3_region);
	r = curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, *ret_headers);
	if (r == CURLE_OK)
		r = curl_easy_setopt(h->curl, CURLOPT_AWS_SIGV4, provider);
	if (r == CURLE_OK)
		r = curl_easy_setopt(h->curl, CURLOPT_USERNAME, h->policy->s3_key.id);
	if (r == CURLE_OK)
		r = curl_easy_setopt(h->curl, CURLOPT_PASSWORD, h->policy->s3_key.secret);
	return r;
}

static int http_failed(const struct http *h, const char *url, CURLcode code, struct error *err)
{
	/* A query is a signature. */
	return error_set(err, -EIO, "%.*s: %s", (int)strcspn(url, "?"), url,
			 h->message[0] ? h->message : curl_easy_strerror(code));
}

_Static_assert(CURL_WAIT_POLLIN == POLLIN && CURL_WAIT_POLLOUT == POLLOUT, "as poll() has them");

/* Waits for the transfer or for what else there is to do. False: the transfer shall end. */
static bool http_wait(struct http *h)
{
	const struct http_meanwhile *m = h->meanwhile;
	struct pollfd fds[HTTP_FDS];
	struct curl_waitfd wait[HTTP_FDS];
	int ms = m->prepare(m->data, fds);

	for (size_t i = 0; i < HTTP_FDS; i++)
		wait[i] = (struct curl_waitfd){ .fd = fds[i].fd, .events = fds[i].events };
	if (curl_multi_poll(h->multi, wait, HTTP_FDS, ms, NULL) != CURLM_OK)
		return false;
	for (size_t i = 0; i < HTTP_FDS; i++)
		fds[i].revents = wait[i].revents;
	return m->step(m->data, fds);
}

static CURLcode http_transfer(struct http *h)
{
	CURLcode r = CURLE_ABORTED_BY_CALLBACK;
	const CURLMsg *message;
	int running, left;

	if (curl_multi_add_handle(h->multi, h->curl) != CURLM_OK)
		return CURLE_FAILED_INIT;
	while (curl_multi_perform(h->multi, &running) == CURLM_OK && running && http_wait(h))
		;
	message = curl_multi_info_read(h->multi, &left);
	if (message && message->msg == CURLMSG_DONE)
		r = message->data.result;
	curl_multi_remove_handle(h->multi, h->curl);
	return r;
}

static int http_perform(struct http *h, const char *url, CURLcode set_up, struct http_reply *ret,
			struct error *err)
{
	curl_off_t length = -1, retry_after = 0;
	CURLcode r = set_up;

	*ret = (struct http_reply){ 0 };
	h->reply = ret;
	h->message[0] = '\0';
	if (r == CURLE_OK)
		r = http_transfer(h);
	h->reply = NULL;
	h->body = NULL;
	if (r != CURLE_OK)
		return http_failed(h, url, r, err);
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &ret->status);
	curl_easy_getinfo(h->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &retry_after);
	ret->length = length < 0 ? UINT64_MAX : (uint64_t)length;
	ret->retry_after_s = retry_after > 0 ? (uint64_t)retry_after : 0;
	return 0;
}

int http_get(struct http *h, const char *url, const char *etag, struct buf *body, size_t max,
	     struct http_reply *ret, struct error *err)
{
	char header[HTTP_ETAG_MAX + 32];
	struct curl_slist *headers = NULL;
	CURLcode set_up = http_set_up(h, url);
	int r;

	h->body = body;
	h->body_max = max;
	if (*etag) {
		snprintf(header, sizeof(header), "If-None-Match: %s", etag);
		headers = curl_slist_append(NULL, header);
	}
	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, ANSWER_S);
	r = http_perform(h, url, set_up, ret, err);
	curl_slist_free_all(headers);
	return r;
}

int http_head(struct http *h, const char *url, struct http_reply *ret, struct error *err)
{
	struct curl_slist *headers = NULL;
	CURLcode set_up = http_set_up(h, url);
	int r;

	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_NOBODY, 1L);
	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, ANSWER_S);
	if (set_up == CURLE_OK)
		set_up = http_sign(h, -EBADF, 0, &headers);
	r = http_perform(h, url, set_up, ret, err);
	curl_slist_free_all(headers);
	return r;
}

int http_put(struct http *h, const char *url, int fd, uint64_t size, struct http_reply *ret,
	     struct error *err)
{
	struct curl_slist *headers = NULL;
	CURLcode set_up = http_set_up(h, url);
	int r;

	h->fd = fd;
	h->at = 0;
	h->size = size;
	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_UPLOAD, 1L);
	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_READFUNCTION, http_give_body);
	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_READDATA, h);
	if (set_up == CURLE_OK)
		set_up = curl_easy_setopt(h->curl, CURLOPT_TIMEOUT,
					  ANSWER_S + (long)(size / SLOW_UPLOAD_BYTES_A_S));
	if (set_up == CURLE_OK)
		set_up = http_sign(h, fd, size, &headers);
	r = http_perform(h, url, set_up, ret, err);
	curl_slist_free_all(headers);
	return r;
}
