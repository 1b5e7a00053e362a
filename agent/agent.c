/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/agent.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/signalfd.h>

#include "agent/broker.h"
#include "agent/collect.h"
#include "agent/judge.h"
#include "agent/kept.h"
#include "agent/metrics.h"
#include "agent/outcomes.h"
#include "agent/past.h"
#include "agent/presigned.h"
#include "base/io.h"
#include "base/visible.h"

#define WAIT_MAX_MS 3600000
#define GAVE_WAY "its results gave way to newer ones"

void agent_log_error(int level, const char *what, uint64_t serial, const struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	/* Servers and orders chose a part of it. */
	buf_visible(&text, err->message ?: "out of memory", VISIBLE_MAX);
	log_write(level, NULL, serial ? "%s %" PRIu64 ": %s%s%s" : "%s%.0" PRIu64 ": %s%s%s", what,
		  serial, buf_string(&text) ?: "", err->hint ? "; " : "", err->hint ?: "");
}

static int agent_prepare_meanwhile(void *data, struct pollfd *fds);
static bool agent_step_meanwhile(void *data, const struct pollfd *fds);

int agent_init(struct agent *a, const char *policy_file, uid_t owner, struct error *err)
{
	int r;

	*a = (struct agent){
		.state = STATE_INIT,
		.spool = SPOOL_INIT,
		.recorder = RECORDER_INIT,
		.meanwhile = { agent_prepare_meanwhile, agent_step_meanwhile, a },
		.signal_fd = -EBADF,
		.may_record = { .question = "record" },
		.may_upload = { .question = "upload" },
		.upload = { .put_query = presigned_put_query, .data = a },
	};
	r = sodium_init() < 0 ? error_set(err, -EIO, "libsodium does not start") : 0;
	if (r >= 0)
		r = policy_load(&a->policy, policy_file, owner, err);
	if (r >= 0)
		r = public_keys_load(&a->keys, a->policy.keys, owner, err);
	if (r >= 0)
		r = state_load(&a->state, a->policy.state_dir, err);
	if (r >= 0)
		r = kept_open(a->state.dirfd, err);
	if (r >= 0)
		r = spool_open(&a->spool, a->state.dirfd, err);
	a->spool.sends_newest = a->policy.sends_newest;
	a->spool.drops_newest = a->policy.drops_newest;
	if (r >= 0)
		r = recorder_open(&a->recorder, a->state.dirfd, err);
	if (r >= 0)
		r = http_new(&a->http, &a->policy, &a->meanwhile, err);
	if (r >= 0 && a->policy.broker.host)
		r = mqtt_new(&a->mqtt, &a->policy, err);
	return r;
}

void agent_deinit(struct agent *a)
{
	recorder_stop(&a->recorder);
	recorder_close(&a->recorder);
	hook_stop(&a->may_record);
	hook_stop(&a->may_upload);
	a->mqtt = mqtt_free(a->mqtt);
	a->http = http_free(a->http);
	spool_close(&a->spool);
	state_deinit(&a->state);
	jobs_deinit(&a->jobs);
	public_keys_deinit(&a->keys);
	policy_deinit(&a->policy);
	a->signal_fd = close_fd(a->signal_fd);
}

enum verdict agent_read_order(const struct agent *a, const char *data, size_t len,
			      struct order *ret, struct error *err)
{
	const char *message, *signer;

	if (signature_check(&a->keys, data, len, &message, &signer, err) < 0)
		return VERDICT_SIGNATURE;
	if (order_parse(ret, message, len - (size_t)(message - data), err) < 0)
		return VERDICT_SYNTAX;
	return VERDICT_TAKE;
}

static enum verdict agent_judge(struct agent *a, const char *data, size_t len, struct order *ret,
				uint64_t now, unsigned char digest[DIGEST_SIZE], struct error *err)
{
	enum verdict verdict = agent_read_order(a, data, len, ret, err);

	crypto_generichash(digest, DIGEST_SIZE, (const unsigned char *)data, len, NULL, 0);
	if (verdict != VERDICT_TAKE)
		return verdict;
	return judge_order(ret, &a->policy, &a->state, digest, now, err);
}

/* Never after the order has expired. */
static uint64_t agent_delay(const struct order *o, uint64_t now)
{
	uint64_t window_ms = MIN(o->window_ns / NSEC_PER_MSEC, (o->expires - now) * 1000);

	return randombytes_uniform((uint32_t)MIN(window_ms, (uint64_t)UINT32_MAX - 1) + 1) *
	       NSEC_PER_MSEC;
}

void agent_save_outcomes(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	a->has_unsaved = false;
	if (outcomes_save(&a->status, a->state.dirfd, &err) < 0)
		agent_log_error(LOG_WARNING, "outcomes", 0, &err);
}

void agent_add_job(struct agent *a, struct order *order, uint64_t start_ns,
		   const struct place *place)
{
	struct job job = { .order = *order, .start_ns = start_ns, .place = place };
	bool was_refused = status_find(&a->status, order->serial);

	status_note(&a->status, order->serial, OUTCOME_WAITING, NULL);
	if (was_refused)
		agent_save_outcomes(a);
	*order = (struct order){ 0 };
	jobs_add(&a->jobs, &job);
}

/* The order as it came, for another life of the agent. start_ns: CLOCK_BOOTTIME. */
static int agent_keep_order(struct agent *a, uint64_t serial, uint64_t start_ns,
			    const struct place *place, const char *data, size_t len,
			    struct error *err)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME), delay = start_ns > now ? start_ns - now : 0;

	return kept_put(a->state.dirfd, serial, (now_ns(CLOCK_REALTIME) + delay) / NSEC_PER_SEC,
			place ? place->name : NULL, data, len, err);
}

/*
 * An order that came by a URL came by a place, too. One that is recorded is not followed by another
 * life of the agent.
 */
static void agent_add_place(struct agent *a, uint64_t serial, const struct place *place,
			    const char *data, size_t len)
{
	for (size_t i = 0; place && i < a->jobs.count; i++) {
		struct job *job = &a->jobs.items[i];
		_cleanup_error_ struct error err = ERROR_INIT;

		if (job->order.serial != serial || job->place)
			continue;
		job->place = place;
		if (i >= a->jobs.is_recording &&
		    agent_keep_order(a, serial, job->start_ns, place, data, len, &err) < 0)
			agent_log_error(LOG_WARNING, "order", serial, &err);
	}
}

static void agent_refuse(struct agent *a, enum verdict verdict, uint64_t serial,
			 const struct error *err)
{
	agent_log_error(LOG_WARNING, "refused order", serial, err);
	/* An older order's outcome says more than that its serial came again. */
	if (verdict == VERDICT_REPLAYED && status_find(&a->status, serial))
		return;
	status_note(&a->status, serial, OUTCOME_REFUSED, verdict_name(verdict));
	a->has_unsaved = true;
}

/*
 * An order for later goes with its place's text, and does not come back. serial: of the next text,
 * perhaps the same.
 */
static void agent_drop_later(struct agent *a, struct place *place, uint64_t serial)
{
	const struct state_taken *later = &place->later;
	_cleanup_error_ struct error err = ERROR_INIT;

	if (later->serial && later->serial != serial) {
		log_notice("order %" PRIu64 " is withdrawn", later->serial);
		status_note(&a->status, later->serial, OUTCOME_WITHDRAWN, NULL);
		a->has_unsaved = true;
		if (state_pass_over(&a->state, later, &err) < 0)
			agent_log_error(LOG_WARNING, "it may come back", later->serial, &err);
	}
	place->later.serial = 0;
}

static void agent_keep_later(struct agent *a, struct place *place, const struct order *order,
			     const unsigned char digest[DIGEST_SIZE])
{
	status_note(&a->status, order->serial, OUTCOME_LATER, NULL);
	if (!place)
		return;
	place->later.serial = order->serial;
	snprintf(place->later.group, sizeof(place->later.group), "%s", order->group ?: STATE_ALL);
	memcpy(place->later.digest, digest, DIGEST_SIZE);
}

/* It waits, is recorded, or its results wait. */
static bool agent_needs_order(uint64_t serial, const void *data)
{
	const struct agent *a = data;

	return jobs_have(&a->jobs, serial) || spool_has(&a->spool, serial);
}

enum verdict agent_take(struct agent *a, const char *data, size_t len, struct place *place)
{
	uint64_t now = now_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_order_ struct order order = { 0 };
	unsigned char digest[DIGEST_SIZE];
	enum verdict verdict = agent_judge(a, data, len, &order, now, digest, &err);
	uint64_t start_ns;

	/* The kept text, the outcome and the results go by the serial alone. */
	if ((verdict == VERDICT_TAKE || verdict == VERDICT_LATER) &&
	    agent_needs_order(order.serial, a)) {
		error_set(&err, -EEXIST, "another group's order of its serial has not ended");
		verdict = VERDICT_REPLAYED;
	}
	if (verdict == VERDICT_TAKE && a->jobs.count == JOBS_MAX) {
		error_set(&err, -EBUSY, "%d orders wait already", JOBS_MAX);
		verdict = VERDICT_FULL;
	}
	start_ns =
		now_ns(CLOCK_BOOTTIME) + (verdict == VERDICT_TAKE ? agent_delay(&order, now) : 0);
	/* Before it is taken: one that is taken and not kept would be lost by a power cut. */
	if (verdict == VERDICT_TAKE &&
	    agent_keep_order(a, order.serial, start_ns, place, data, len, &err) < 0)
		verdict = VERDICT_STATE;
	if (verdict == VERDICT_TAKE &&
	    state_take(&a->state, order.group ?: STATE_ALL, order.serial, digest, now, &err) < 0)
		verdict = VERDICT_STATE;
	a->verdicts[verdict]++;
	if (place)
		agent_drop_later(a, place, order.serial);
	if (verdict == VERDICT_TAKE) {
		log_notice("took order %" PRIu64, order.serial);
		agent_add_job(a, &order, start_ns, place);
	} else if (verdict == VERDICT_KNOWN) {
		agent_add_place(a, order.serial, place, data, len);
	}
	if (verdict == VERDICT_LATER)
		agent_keep_later(a, place, &order, digest);
	else if (verdict >= VERDICT_FIRST_REFUSAL)
		agent_refuse(a, verdict, order.serial, &err);
	return verdict;
}

void agent_refuse_size(struct agent *a, struct place *place)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	agent_drop_later(a, place, 0);
	error_set(&err, -EFBIG, "it has more than %d bytes", ORDER_MAX);
	a->verdicts[VERDICT_SIZE]++;
	agent_refuse(a, VERDICT_SIZE, 0, &err);
}

static void agent_poll(struct agent *a, struct poll *poll)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf data = BUF_INIT;
	int r = poll_orders(poll, a->http, &a->policy, &data, &err);

	if (r < 0)
		agent_log_error(LOG_WARNING, "no poll", 0, &err);
	/* An order for later comes again with the next poll; so does one that could not be noted.
	 */
	if (r > 0) {
		enum verdict verdict = agent_take(a, data.data ?: "", data.len, NULL);

		if (verdict != VERDICT_LATER && verdict != VERDICT_STATE)
			poll_handled(poll);
	}
}

/* Removes the texts of orders that have ended, and whose results wait no longer. */
static void agent_forget(struct agent *a)
{
	kept_sweep(a->state.dirfd, agent_needs_order, a);
}

void agent_close_job(struct agent *a, size_t i, enum outcome outcome, const char *reason)
{
	uint64_t serial = a->jobs.items[i].order.serial;
	_cleanup_error_ struct error err = ERROR_INIT;

	status_note(&a->status, serial, outcome, reason);
	/* Before it is closed: an agent that is killed in between does not call it interrupted. */
	agent_save_outcomes(a);
	if (state_close(&a->state, serial, &err) < 0)
		agent_log_error(LOG_WARNING, "order", serial, &err);
	jobs_remove(&a->jobs, i);
	agent_forget(a);
}

void agent_fail_job(struct agent *a, const struct error *err)
{
	a->recording_failures++;
	agent_log_error(LOG_ERR, "order", a->jobs.items[0].order.serial, err);
	agent_close_job(a, 0, OUTCOME_FAILED, err->message);
}

void agent_withdraw(struct agent *a, struct place *place)
{
	agent_drop_later(a, place, 0);
	for (size_t i = a->jobs.count; i-- > 0;) {
		const struct job *job = &a->jobs.items[i];

		if (job->place != place || (i == 0 && a->jobs.is_withdrawn))
			continue;
		log_notice("order %" PRIu64 " is withdrawn", job->order.serial);
		a->withdrawn++;
		if (i == 0 && a->jobs.is_recording) {
			a->jobs.is_withdrawn = true;
			/* Before its end: another life of the agent must not send its segments. */
			status_note(&a->status, job->order.serial, OUTCOME_WITHDRAWN, NULL);
			agent_save_outcomes(a);
			recorder_end(&a->recorder, now_ns(CLOCK_BOOTTIME));
		} else {
			agent_close_job(a, i, OUTCOME_WITHDRAWN, NULL);
		}
	}
}

/* Orders may have waited for the end of another, or for only_if. */
static void agent_drop_expired(struct agent *a)
{
	uint64_t now = now_ns(CLOCK_REALTIME) / NSEC_PER_SEC;

	for (size_t i = a->jobs.count; i-- > a->jobs.is_recording;) {
		const struct order *order = &a->jobs.items[i].order;
		_cleanup_error_ struct error err = ERROR_INIT;

		if (now <= order->expires)
			continue;
		error_set(&err, -ETIME, "it expired before its turn");
		a->verdicts[VERDICT_EXPIRED]++;
		agent_log_error(LOG_WARNING, "refused order", order->serial, &err);
		agent_close_job(a, i, OUTCOME_REFUSED, verdict_name(VERDICT_EXPIRED));
	}
}

static void agent_record(struct agent *a)
{
	const struct order *order = &a->jobs.items[0].order;
	_cleanup_error_ struct error err = ERROR_INIT;

	/* From here on it is not followed again, whatever happens. */
	if (state_begin(&a->state, order->serial, &err) < 0 ||
	    recorder_start(&a->recorder, order, &a->policy, &err) < 0) {
		agent_fail_job(a, &err);
	} else {
		a->jobs.is_recording = true;
		a->spool.counted = order->serial;
		a->spool.gave_way = 0;
		status_note(&a->status, order->serial, OUTCOME_RECORDING, NULL);
	}
}

/* Records the next order, if its time has come and the board may work. */
static void agent_try_record(struct agent *a, uint64_t now)
{
	const struct job *next;

	if (a->recorder.pid)
		return;
	agent_drop_expired(a);
	next = jobs_next(&a->jobs);
	if (!next || now < next->start_ns)
		return;
	if (hook_allows(&a->may_record, &a->policy, now))
		agent_record(a);
	else if (a->may_record.said_no)
		status_note(&a->status, next->order.serial, OUTCOME_WAITING, "only_if");
}

void agent_note_results(struct agent *a, enum outcome outcome)
{
	const char *reason = outcome == OUTCOME_FAILED ? GAVE_WAY : NULL;

	if (outcomes_note_results(&a->status, &a->spool, a->upload.sending, outcome, reason))
		agent_save_outcomes(a);
	agent_forget(a);
}

static void agent_upload(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r;

	if (!hook_allows(&a->may_upload, &a->policy, now_ns(CLOCK_BOOTTIME)))
		return;
	r = upload_next(&a->upload, a->http, &a->policy, &a->spool, &a->state, &err);

	if (r < 0)
		agent_log_error(LOG_WARNING, "no upload", 0, &err);
	/* A result that gave way while it was sent is lost if it did not arrive. */
	agent_note_results(a, r > 0 ? OUTCOME_DONE : OUTCOME_FAILED);
}

/* Does what is due and needs no request. broker: what poll() found on its descriptor. */
static void agent_step_locally(struct agent *a, short broker)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	int status;

	if (recorder_reap(&a->recorder, &status))
		agent_collect(a, status);
	if (a->recorder.pid)
		recorder_say(&a->recorder, a->jobs.items[0].order.serial, now);
	agent_take_segments(a, now);
	agent_broker_step(a, broker);
	recorder_urge(&a->recorder, now);
	hook_step(&a->may_record, &a->policy, now);
	hook_step(&a->may_upload, &a->policy, now);
	agent_try_record(a, now);
	agent_metrics_tick(a);
}

/* Does what is due by requests. */
static void agent_step_remotely(struct agent *a)
{
	for (size_t i = 0; i < a->policy.orders_urls.count && !a->is_ending; i++)
		if (!a->recorder.pid && now_ns(CLOCK_BOOTTIME) >= a->polls[i].backoff.next_ns)
			agent_poll(a, &a->polls[i]);
	if (a->spool.bytes && !a->is_ending && now_ns(CLOCK_BOOTTIME) >= a->upload.backoff.next_ns)
		agent_upload(a);
}

/* When something that needs no request is due. */
static uint64_t agent_next_local_ns(const struct agent *a)
{
	const struct job *job = jobs_next(&a->jobs);
	uint64_t next = agent_broker_next_ns(a);

	if (a->policy.metrics)
		next = MIN(next, a->metrics_ns + METRICS_INTERVAL_NS);
	if (a->may_upload.pid)
		next = MIN(next, a->may_upload.deadline_ns);
	/* No order may wait any more. */
	if (a->may_record.pid)
		next = MIN(next, a->may_record.deadline_ns);
	if (a->recorder.pid)
		next = MIN(next, MIN(a->recorder.deadline_ns,
				     MIN(a->recorder.look_ns, a->recorder.say_ns)));
	else if (job)
		next = MIN(next, hook_next_ns(&a->may_record, job->start_ns));
	return next;
}

static uint64_t agent_next_remote_ns(const struct agent *a)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < a->policy.orders_urls.count && !a->recorder.pid; i++)
		next = MIN(next, a->polls[i].backoff.next_ns);
	if (a->spool.bytes)
		next = MIN(next, hook_next_ns(&a->may_upload, a->upload.backoff.next_ns));
	return next;
}

static int agent_wait_ms(uint64_t next)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);

	next = MIN(next, now + WAIT_MAX_MS * NSEC_PER_MSEC);
	return next <= now ? 0 : (int)((next - now) / NSEC_PER_MSEC + 1);
}

static void agent_fill_fds(const struct agent *a, struct pollfd *fds)
{
	fds[0] = (struct pollfd){ .fd = a->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = -1 };
	if (a->mqtt)
		fds[1].fd = mqtt_fd(a->mqtt, &fds[1].events);
}

static void agent_take_signals(struct agent *a)
{
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == sizeof(info))
		a->is_ending |= info.ssi_signo != SIGCHLD;
}

static int agent_prepare_meanwhile(void *data, struct pollfd *fds)
{
	const struct agent *a = data;

	agent_fill_fds(a, fds);
	return agent_wait_ms(agent_next_local_ns(a));
}

static bool agent_step_meanwhile(void *data, const struct pollfd *fds)
{
	struct agent *a = data;

	agent_take_signals(a);
	if (!a->is_ending)
		agent_step_locally(a, fds[1].revents);
	return !a->is_ending;
}

/* A fleet that starts at once must not poll at once. */
static void agent_plan_polls(struct agent *a)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);

	for (size_t i = 0; i < a->policy.orders_urls.count; i++) {
		a->polls[i].url = a->policy.orders_urls.items[i];
		a->polls[i].backoff.next_ns =
			now + backoff_jitter(MIN(a->policy.interval_ns, NSEC_PER_SEC * 60));
	}
}

int agent_run(struct agent *a, struct error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return error_errno(err, -errno, "signals");
	a->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (a->signal_fd < 0)
		return error_errno(err, -errno, "signals");
	agent_take_up(a);
	agent_plan_polls(a);
	while (!a->is_ending) {
		struct pollfd fds[HTTP_FDS];
		uint64_t next = MIN(agent_next_local_ns(a), agent_next_remote_ns(a));

		agent_fill_fds(a, fds);
		if (poll(fds, HTTP_FDS, agent_wait_ms(next)) < 0 && errno != EINTR)
			return error_errno(err, -errno, "poll");
		if (agent_step_meanwhile(a, fds))
			agent_step_remotely(a);
	}
	recorder_stop(&a->recorder);
	agent_broker_end(a);
	agent_metrics_write(a, false);
	return 0;
}
