/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/upload.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/log.h"
#include "fleet/result_name.h"

#define FIRST_RETRY_NS (30 * NSEC_PER_SEC)
/* The wait when today's limit is reached. */
#define LIMIT_NS (300 * NSEC_PER_SEC)

static int upload_url(const struct policy *policy, const struct spool_entry *entry, struct buf *ret,
		      struct error *err)
{
	size_t len = strlen(policy->results_url);
	_cleanup_buf_ struct buf folder = BUF_INIT;

	while (len && policy->results_url[len - 1] == '/')
		len--;
	buf_printf(&folder, "%.*s/", (int)len, policy->results_url);
	result_folder_put(policy->fleet, entry->serial, policy->id, &folder);
	/* S3 signs the path with '=' escaped, and libcurl signs it as it is. */
	for (const char *c = buf_string(&folder); c && *c; c++)
		if (*c == '=' && policy->s3_region)
			buf_puts(ret, "%3D");
		else
			buf_putc(ret, *c);
	buf_printf(ret, "/%s", entry->remote);
	return !buf_error(&folder) && buf_string(ret) ? 0 : error_errno(err, -ENOMEM, "the URL");
}

static int upload_fail(const char *url, const char *verb, const struct http_reply *reply,
		       struct error *err)
{
	/* A query is a signature. */
	return error_set(err, -EIO, "%s %.*s: status %ld", verb, (int)strcspn(url, "?"), url,
			 reply->status);
}

/* 1: the store has the file; 0: it has not, or has only a part. */
static int upload_is_there(struct http *http, const char *url, const struct spool_entry *entry,
			   struct http_reply *reply, struct error *err)
{
	int r = http_head(http, url, reply, err);

	if (r < 0)
		return r;
	if (reply->status == 200)
		return reply->length == entry->size;
	return reply->status == 404 ? 0 : upload_fail(url, "HEAD", reply, err);
}

static int upload_send(struct http *http, const char *url, int fd, const struct spool_entry *entry,
		       struct http_reply *reply, struct error *err)
{
	int r = http_put(http, url, fd, entry->size, reply, err);

	if (r >= 0 && (reply->status < 200 || reply->status > 299))
		r = upload_fail(url, "PUT", reply, err);
	return r;
}

/* A disk that is full gets room by uploads. They count all the same until the agent ends. */
static void upload_note(struct state *state, const struct spool_entry *entry)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (state_add_upload(state, entry->size, now_ns(CLOCK_REALTIME) / NSEC_PER_SEC, &err) < 0)
		log_warning("the upload of order %" PRIu64 " is not noted: %s", entry->serial,
			    err.message);
}

static int upload_one(struct upload *u, struct http *http, const struct policy *policy,
		      const struct spool *spool, const struct spool_entry *entry,
		      struct state *state, struct http_reply *reply, struct error *err)
{
	_cleanup_close_ int fd = spool_open_entry(spool, entry);
	_cleanup_buf_ struct buf url = BUF_INIT;
	int r;

	if (fd < 0)
		return error_errno(err, fd, "%s", entry->name);
	r = upload_url(policy, entry, &url, err);
	if (r < 0)
		return r;
	if (u->put_query)
		u->put_query(u->data, entry->serial, &url);
	if (!buf_string(&url))
		return error_errno(err, -ENOMEM, "the URL");
	r = upload_is_there(http, url.data, entry, reply, err);
	if (r > 0)
		u->present++;
	if (r != 0)
		return r;
	upload_note(state, entry);
	r = upload_send(http, url.data, fd, entry, reply, err);
	if (r >= 0)
		r = upload_is_there(http, url.data, entry, reply, err);
	if (r)
		return r;
	u->unconfirmed++;
	return error_set(err, -EIO, "%.*s: the store accepted it, but does not have it",
			 (int)strcspn(url.data, "?"), url.data);
}

static bool upload_has_quota(const struct policy *policy, const struct state *state, uint64_t size)
{
	uint64_t now = now_ns(CLOCK_REALTIME) / NSEC_PER_SEC, sent = state_bytes(state, now);

	return state_uploads(state, now) < policy->uploads_a_day && sent <= policy->bytes_a_day &&
	       size <= policy->bytes_a_day - sent;
}

int upload_next(struct upload *u, struct http *http, const struct policy *policy,
		struct spool *spool, struct state *state, struct error *err)
{
	struct http_reply reply = { 0 };
	struct spool_entry entry;
	int r = spool_next(spool, u->failed, &entry);

	if (r <= 0)
		return r < 0 ? error_errno(err, r, "spool") : 0;
	if (!upload_has_quota(policy, state, entry.size)) {
		u->backoff.next_ns = now_ns(CLOCK_BOOTTIME) + backoff_jitter(LIMIT_NS);
		strcpy(u->failed, entry.name);
		return 0;
	}
	u->sending = entry.serial;
	r = upload_one(u, http, policy, spool, &entry, state, &reply, err);
	u->sending = 0;
	if (r > 0) {
		r = spool_remove(spool, &entry);
		if (r < 0)
			error_errno(err, r, "%s", entry.name);
	}
	if (r < 0) {
		u->failures++;
		strcpy(u->failed, entry.name);
		backoff_failed(&u->backoff, now_ns(CLOCK_BOOTTIME),
			       MIN(policy->interval_ns, FIRST_RETRY_NS), reply.retry_after_s);
		return r;
	}
	u->done++;
	u->backoff = (struct backoff){ 0 };
	u->failed[0] = '\0';
	return 1;
}
