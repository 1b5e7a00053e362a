/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/agent.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "agent/judge.h"
#include "agent/metrics.h"
#include "base/io.h"
#include "base/log.h"
#include "base/visible.h"

/* tracectl's exit status for a recording with a loss, which its results count. */
#define STATUS_LOSSES 3
#define WAIT_MAX_MS 3600000

static void agent_log_error(int level, const char *what, uint64_t serial, const struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	/* Servers and orders chose a part of it. */
	buf_visible(&text, err->message ?: "out of memory", VISIBLE_MAX);
	log_write(level, NULL, serial ? "%s %" PRIu64 ": %s%s%s" : "%s%.0" PRIu64 ": %s%s%s", what,
		  serial, buf_string(&text) ?: "", err->hint ? "; " : "", err->hint ?: "");
}

int agent_init(struct agent *a, const char *policy_file, uid_t owner, struct error *err)
{
	int r;

	*a = (struct agent){ .state = STATE_INIT, .spool = SPOOL_INIT, .recorder = RECORDER_INIT };
	r = sodium_init() < 0 ? error_set(err, -EIO, "libsodium does not start") : 0;
	if (r >= 0)
		r = policy_load(&a->policy, policy_file, owner, err);
	if (r >= 0)
		r = public_keys_load(&a->keys, a->policy.keys, owner, err);
	if (r >= 0)
		r = state_load(&a->state, a->policy.state_dir, err);
	if (r >= 0)
		r = spool_open(&a->spool, a->state.dirfd, err);
	if (r >= 0)
		r = recorder_open(&a->recorder, a->state.dirfd, err);
	if (r >= 0)
		r = http_new(&a->http, &a->policy, err);
	return r;
}

void agent_deinit(struct agent *a)
{
	recorder_stop(&a->recorder);
	recorder_close(&a->recorder);
	a->http = http_free(a->http);
	spool_close(&a->spool);
	state_deinit(&a->state);
	order_deinit(&a->order);
	public_keys_deinit(&a->keys);
	policy_deinit(&a->policy);
}

static enum verdict agent_judge(struct agent *a, const char *data, size_t len, struct order *ret,
				uint64_t now, unsigned char digest[DIGEST_SIZE], struct error *err)
{
	const char *message, *signer;

	crypto_generichash(digest, DIGEST_SIZE, (const unsigned char *)data, len, NULL, 0);
	if (signature_check(&a->keys, data, len, &message, &signer, err) < 0)
		return VERDICT_SIGNATURE;
	if (order_parse(ret, message, len - (size_t)(message - data), err) < 0)
		return VERDICT_SYNTAX;
	return judge_order(ret, &a->policy, &a->state, digest, now, err);
}

/* Never after the order has expired. */
static uint64_t agent_delay(const struct order *o, uint64_t now)
{
	uint64_t window_ms = MIN(o->window_ns / NSEC_PER_MSEC, (o->expires - now) * 1000);

	return randombytes_uniform((uint32_t)MIN(window_ms, (uint64_t)UINT32_MAX - 1) + 1) *
	       NSEC_PER_MSEC;
}

enum verdict agent_take(struct agent *a, const char *data, size_t len)
{
	uint64_t now = now_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_order_ struct order order = { 0 };
	unsigned char digest[DIGEST_SIZE];
	enum verdict verdict = agent_judge(a, data, len, &order, now, digest, &err);

	if (verdict == VERDICT_TAKE && state_take(&a->state, order.serial, digest, now, &err) < 0)
		verdict = VERDICT_STATE;
	a->verdicts[verdict]++;
	if (verdict >= VERDICT_FIRST_REFUSAL)
		agent_log_error(LOG_WARNING, "refused order", order.serial, &err);
	if (verdict != VERDICT_TAKE)
		return verdict;
	order_deinit(&a->order);
	a->order = order;
	order = (struct order){ 0 };
	a->has_order = true;
	a->start_ns = now_ns(CLOCK_BOOTTIME) + agent_delay(&a->order, now);
	log_notice("took order %" PRIu64, a->order.serial);
	return verdict;
}

static void agent_poll(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf data = BUF_INIT;
	int r = poll_orders(&a->poll, a->http, &a->policy, &data, &err);

	if (r < 0)
		agent_log_error(LOG_WARNING, "no poll", 0, &err);
	/* An order for later comes again with the next poll; so does one that could not be noted.
	 */
	if (r > 0) {
		enum verdict verdict = agent_take(a, data.data ?: "", data.len);

		if (verdict != VERDICT_LATER && verdict != VERDICT_STATE)
			poll_handled(&a->poll);
	}
}

static void agent_close_order(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	a->has_order = false;
	if (state_close(&a->state, &err) < 0)
		agent_log_error(LOG_WARNING, "order", a->order.serial, &err);
}

static void agent_record(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (recorder_start(&a->recorder, &a->order, &a->policy, &err) >= 0)
		return;
	a->recording_failures++;
	agent_log_error(LOG_ERR, "order", a->order.serial, &err);
	agent_close_order(a);
}

static void agent_collect(struct agent *a, int status)
{
	bool is_good = WIFEXITED(status) &&
		       (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == STATUS_LOSSES);
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = 0;

	if (is_good)
		r = recorder_collect(&a->recorder, &a->order, &a->policy, &a->spool, &err);
	else
		error_set(&err, -EIO, "tracectl ended with %s %d",
			  WIFEXITED(status) ? "status" : "signal",
			  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	if (!is_good || r < 0) {
		a->recording_failures++;
		agent_log_error(LOG_ERR, "order", a->order.serial, &err);
	} else {
		a->recordings++;
		log_notice("recorded order %" PRIu64, a->order.serial);
	}
	agent_close_order(a);
	a->upload.backoff.next_ns = MIN(a->upload.backoff.next_ns, now_ns(CLOCK_BOOTTIME));
}

static void agent_upload(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (upload_next(&a->upload, a->http, &a->policy, &a->spool, &a->state, &err) < 0)
		agent_log_error(LOG_WARNING, "no upload", 0, &err);
}

/* Does what is due. */
static void agent_step(struct agent *a)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	int status;

	if (recorder_reap(&a->recorder, &status))
		agent_collect(a, status);
	recorder_urge(&a->recorder, now);
	if (a->has_order && !a->recorder.pid && now >= a->start_ns)
		agent_record(a);
	if (!a->has_order && now >= a->poll.backoff.next_ns)
		agent_poll(a);
	if (a->spool.bytes && now >= a->upload.backoff.next_ns)
		agent_upload(a);
	agent_metrics_tick(a);
}

static int agent_wait_ms(const struct agent *a)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME), next = now + WAIT_MAX_MS * NSEC_PER_MSEC;

	if (a->policy.metrics)
		next = MIN(next, a->metrics_ns + METRICS_INTERVAL_NS);
	if (a->has_order && !a->recorder.pid)
		next = MIN(next, a->start_ns);
	if (a->recorder.pid)
		next = MIN(next, a->recorder.deadline_ns);
	if (!a->has_order)
		next = MIN(next, a->poll.backoff.next_ns);
	if (a->spool.bytes)
		next = MIN(next, a->upload.backoff.next_ns);
	return next <= now ? 0 : (int)((next - now) / NSEC_PER_MSEC + 1);
}

static void agent_report_interrupted(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (!a->state.is_open)
		return;
	a->interrupted++;
	log_warning("order %" PRIu64 " was interrupted; it is not taken again", a->state.serial);
	if (state_close(&a->state, &err) < 0)
		agent_log_error(LOG_WARNING, "order", a->state.serial, &err);
}

/* True if a signal asks for the end. */
static bool agent_take_signals(int fd)
{
	struct signalfd_siginfo info;
	bool ends = false;

	while (read(fd, &info, sizeof(info)) == sizeof(info))
		ends = ends || info.ssi_signo != SIGCHLD;
	return ends;
}

int agent_run(struct agent *a, struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return error_errno(err, -errno, "signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return error_errno(err, -errno, "signals");
	agent_report_interrupted(a);
	/* A fleet that starts at once must not poll at once. */
	a->poll.backoff.next_ns = now_ns(CLOCK_BOOTTIME) +
				  backoff_jitter(MIN(a->policy.interval_ns, NSEC_PER_SEC * 60));
	for (;;) {
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

		if (poll(&poll_fd, 1, agent_wait_ms(a)) < 0 && errno != EINTR)
			return error_errno(err, -errno, "poll");
		if (agent_take_signals(fd))
			break;
		agent_step(a);
	}
	recorder_stop(&a->recorder);
	agent_metrics_write(a, false);
	return 0;
}
