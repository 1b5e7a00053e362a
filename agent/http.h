/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests over HTTPS, by libcurl: no redirects, no other protocol, no answer beyond its limit.
 * While one lasts, its caller's other business goes on.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/policy.h"
#include "base/buf.h"
#include "base/error.h"

#define HTTP_ETAG_MAX 128

struct http;

/* The business that goes on meanwhile. Neither function may make a request. */
struct http_meanwhile {
	/* Names HTTP_FDS descriptors to poll as well. Returns the longest wait in ms. */
	int (*prepare)(void *data, struct pollfd *fds);
	/* After each poll. False: ends the request. */
	bool (*step)(void *data, const struct pollfd *fds);
	void *data;
};
#define HTTP_FDS 2

struct http_reply {
	long status;
	uint64_t length;	  /* Content-Length; UINT64_MAX: not known */
	uint64_t retry_after_s;	  /* 0: none */
	char etag[HTTP_ETAG_MAX]; /* empty: none, or too long */
};

/* policy, meanwhile: borrowed. */
int http_new(struct http **ret, const struct policy *policy, const struct http_meanwhile *meanwhile,
	     struct error *err);
struct http *http_free(struct http *http);

/*
 * Return 0 if there was an answer, whatever its status; or -EIO: there was none, or a hostile one.
 * etag: of the answer before, or empty. max: bytes of the body.
 */
int http_get(struct http *http, const char *url, const char *etag, struct buf *body, size_t max,
	     struct http_reply *ret, struct error *err);
/* These are of results: they are signed if the policy has a key for S3. */
int http_head(struct http *http, const char *url, struct http_reply *ret, struct error *err);
/* Sends size bytes of fd from its beginning. */
int http_put(struct http *http, const char *url, int fd, uint64_t size, struct http_reply *ret,
	     struct error *err);
