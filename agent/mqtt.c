/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/mqtt.h"

#include <fcntl.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/backoff.h"
#include "agent/status.h"
#include "agent/topic.h"
#include "base/io.h"
#include "fleet/order.h"

#define FIRST_RETRY_NS (30 * NSEC_PER_SEC)
/* For the connection by TCP to one address; then for TLS and the broker's consent. */
#define CONNECT_S 10
#define ANSWER_NS (30 * NSEC_PER_SEC)
#define SESSION_S 3600
/* A broker sends no packet above it: an order, its topic and properties. */
#define PACKET_MAX (ORDER_MAX + 1024)
#define QOS 1
/* The first reason code of a failure. */
#define REASON_FAILURE 0x80

struct mqtt {
	const struct policy *policy;
	struct buf status_topic;
	struct place *places;
	size_t place_count;
	struct backoff backoff;
	struct mqtt_counts counts;
	/* A client of libmosquitto lives as long as one connection: */
	struct mosquitto *client; /* NULL: no connection */
	bool is_up;
	uint64_t keep_alive_ns;
	uint64_t ping_ns; /* a keep-alive time behind the last packet that was sent */
	uint64_t answer_ns;
	int reason;	   /* of the broker, for the end; 0: none */
	char trouble[256]; /* last error message of libmosquitto */
	char complaint[64];
};

static void mqtt_note_sent(struct mqtt *m)
{
	m->ping_ns = now_ns(CLOCK_BOOTTIME) + m->keep_alive_ns;
}

static void mqtt_take_log(struct mosquitto *client _unused_, void *userdata, int level,
			  const char *text)
{
	struct mqtt *m = userdata;

	if (level == MOSQ_LOG_ERR)
		snprintf(m->trouble, sizeof(m->trouble), "%s", text);
}

static void mqtt_take_consent(struct mosquitto *client, void *userdata, int reason,
			      int flags _unused_, const mosquitto_property *properties)
{
	struct mqtt *m = userdata;
	char *topics[STATE_GROUPS_MAX];
	uint16_t seconds;

	m->reason = reason;
	if (reason)
		return;
	m->is_up = true;
	m->backoff.failures = 0;
	m->counts.connections++;
	if (mosquitto_property_read_int16(properties, MQTT_PROP_SERVER_KEEP_ALIVE, &seconds, false))
		m->keep_alive_ns = MAX(seconds, (uint16_t)1) * NSEC_PER_SEC;
	for (size_t i = 0; i < m->place_count; i++)
		topics[i] = m->places[i].name;
	mosquitto_subscribe_multiple(client, NULL, (int)m->place_count, topics, QOS, 0, NULL);
	mqtt_note_sent(m);
}

static void mqtt_take_subscribed(struct mosquitto *client _unused_, void *userdata, int id _unused_,
				 int count, const int *reasons,
				 const mosquitto_property *properties _unused_)
{
	struct mqtt *m = userdata;

	for (int i = 0; i < count; i++)
		if (reasons[i] >= REASON_FAILURE)
			snprintf(m->complaint, sizeof(m->complaint),
				 "it refuses a topic of orders");
}

static void mqtt_take_message(struct mosquitto *client _unused_, void *userdata,
			      const struct mosquitto_message *message,
			      const mosquitto_property *properties _unused_)
{
	struct mqtt *m = userdata;

	/* libmosquitto has acknowledged it. */
	if (message->qos)
		mqtt_note_sent(m);
	for (size_t i = 0; i < m->place_count; i++)
		if (strcmp(m->places[i].name, message->topic) == 0)
			place_show(&m->places[i], message->payload, (size_t)message->payloadlen);
}

static void mqtt_take_published(struct mosquitto *client _unused_, void *userdata, int id _unused_,
				int reason, const mosquitto_property *properties _unused_)
{
	struct mqtt *m = userdata;

	if (reason >= REASON_FAILURE)
		snprintf(m->complaint, sizeof(m->complaint), "it refuses the status");
}

static void mqtt_take_end(struct mosquitto *client _unused_, void *userdata, int reason,
			  const mosquitto_property *properties _unused_)
{
	struct mqtt *m = userdata;

	if (reason >= REASON_FAILURE)
		m->reason = reason;
}

/* A key with a password must not be asked for on a terminal. */
static int mqtt_no_password(char *text _unused_, int size _unused_, int is_write _unused_,
			    void *userdata _unused_)
{
	return 0;
}

static int mqtt_add_place(struct mqtt *m, const char *group)
{
	_cleanup_buf_ struct buf name = BUF_INIT;

	topic_put_orders(&name, m->policy, group);
	if (!buf_string(&name))
		return -ENOMEM;
	m->places[m->place_count++].name = TAKE_PTR(name.data);
	return 0;
}

static int mqtt_add_places(struct mqtt *m)
{
	const struct string_list *groups = &m->policy->groups;
	int r;

	m->places = calloc(groups->count + 1, sizeof(*m->places));
	r = m->places ? mqtt_add_place(m, STATE_ALL) : -ENOMEM;
	for (size_t i = 0; i < groups->count && r >= 0; i++)
		r = mqtt_add_place(m, groups->items[i]);
	return r;
}

int mqtt_new(struct mqtt **ret, const struct policy *policy, struct error *err)
{
	struct mqtt *m = calloc(1, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	mosquitto_lib_init();
	if (r >= 0) {
		m->policy = policy;
		r = mqtt_add_places(m);
		topic_put_status(&m->status_topic, policy);
	}
	if (r < 0 || !buf_string(&m->status_topic)) {
		mqtt_free(m);
		return error_errno(err, -ENOMEM, "the broker");
	}
	/* A fleet that starts at once must not connect at once. */
	m->backoff.next_ns =
		now_ns(CLOCK_BOOTTIME) + backoff_jitter(MIN(policy->interval_ns, FIRST_RETRY_NS));
	*ret = m;
	return 0;
}

static void mqtt_close(struct mqtt *m)
{
	mosquitto_destroy(m->client);
	m->client = NULL;
	m->is_up = false;
}

struct mqtt *mqtt_free(struct mqtt *m)
{
	if (!m)
		return NULL;
	mqtt_close(m);
	for (size_t i = 0; i < m->place_count; i++)
		order_place_deinit(&m->places[i]);
	free(m->places);
	buf_deinit(&m->status_topic);
	free(m);
	mosquitto_lib_cleanup();
	return NULL;
}

static void mqtt_take_alarm(int number _unused_)
{
}

/* libmosquitto waits for TCP as long as the kernel does. A signal ends each such wait. */
static void mqtt_bound_wait(time_t seconds)
{
	const struct itimerval timer = { { seconds, 0 }, { seconds, 0 } };
	const struct sigaction action = { .sa_handler = mqtt_take_alarm };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* libmosquitto only says that an argument is invalid. */
static int mqtt_check_files(struct mqtt *m)
{
	const char *file = policy_find_unreadable(m->policy);

	if (!file)
		return MOSQ_ERR_SUCCESS;
	snprintf(m->trouble, sizeof(m->trouble), "%s: %s", file, strerror(errno));
	return MOSQ_ERR_INVAL;
}

static int mqtt_set_up(struct mqtt *m)
{
	const struct policy *p = m->policy;
	_cleanup_buf_ struct buf will = BUF_INIT;
	struct mosquitto *c = mosquitto_new(p->id, false, m);
	int rc;

	m->client = c;
	status_put_dead(&will, now_ns(CLOCK_REALTIME) / NSEC_PER_SEC);
	if (!c || !buf_string(&will))
		return MOSQ_ERR_NOMEM;
	mosquitto_log_callback_set(c, mqtt_take_log);
	mosquitto_connect_v5_callback_set(c, mqtt_take_consent);
	mosquitto_subscribe_v5_callback_set(c, mqtt_take_subscribed);
	mosquitto_message_v5_callback_set(c, mqtt_take_message);
	mosquitto_publish_v5_callback_set(c, mqtt_take_published);
	mosquitto_disconnect_v5_callback_set(c, mqtt_take_end);
	rc = mqtt_check_files(m);
	if (rc == MOSQ_ERR_SUCCESS)
		rc = mosquitto_int_option(c, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
	if (rc == MOSQ_ERR_SUCCESS)
		rc = mosquitto_tls_set(c, p->ca, NULL, p->certificate, p->key, mqtt_no_password);
	if (rc == MOSQ_ERR_SUCCESS)
		rc = mosquitto_will_set(c, m->status_topic.data, (int)will.len, will.data, QOS,
					true);
	return rc;
}

static int mqtt_connect(struct mqtt *m, uint64_t now)
{
	const struct broker_address *broker = &m->policy->broker;
	mosquitto_property *properties = NULL;
	int rc;

	m->trouble[0] = '\0';
	m->reason = 0;
	rc = mqtt_set_up(m);
	m->keep_alive_ns = m->policy->keep_alive_ns;
	m->answer_ns = now + ANSWER_NS;
	if (rc == MOSQ_ERR_SUCCESS)
		rc = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
						  SESSION_S);
	if (rc == MOSQ_ERR_SUCCESS)
		rc = mosquitto_property_add_int32(&properties, MQTT_PROP_MAXIMUM_PACKET_SIZE,
						  PACKET_MAX);
	if (rc == MOSQ_ERR_SUCCESS) {
		mqtt_bound_wait(CONNECT_S);
		rc = mosquitto_connect_bind_v5(m->client, broker->host, broker->port,
					       (int)(m->keep_alive_ns / NSEC_PER_SEC), NULL,
					       properties);
		mqtt_bound_wait(0);
	}
	mosquitto_property_free_all(&properties);
	/* A child shall not have our connection. */
	if (rc == MOSQ_ERR_SUCCESS && fcntl(mosquitto_socket(m->client), F_SETFD, FD_CLOEXEC) < 0)
		rc = MOSQ_ERR_ERRNO;
	mqtt_note_sent(m);
	return rc;
}

static int mqtt_fail(struct mqtt *m, int rc, struct error *err)
{
	int saved = errno;

	m->counts.failures++;
	mqtt_close(m);
	backoff_failed(&m->backoff, now_ns(CLOCK_BOOTTIME),
		       MIN(m->policy->interval_ns, FIRST_RETRY_NS), 0);
	return error_set(err, -EIO, "mqtts://%s:%u: %s", m->policy->broker.host,
			 m->policy->broker.port,
			 m->reason >= REASON_FAILURE	 ? mosquitto_reason_string(m->reason)
			 : m->trouble[0]		 ? m->trouble
			 : rc == MOSQ_ERR_ERRNO && saved ? strerror(saved)
							 : mosquitto_strerror(rc));
}

static int mqtt_exchange(struct mqtt *m, short revents, uint64_t now)
{
	int rc = MOSQ_ERR_SUCCESS;

	errno = 0;
	if (revents & POLLIN)
		rc = mosquitto_loop_read(m->client, 1);
	if (rc == MOSQ_ERR_SUCCESS && mosquitto_want_write(m->client))
		rc = mosquitto_loop_write(m->client, 1);
	if (rc == MOSQ_ERR_SUCCESS && now >= m->ping_ns) {
		mqtt_note_sent(m);
		rc = mosquitto_loop_misc(m->client);
	}
	if (rc != MOSQ_ERR_SUCCESS)
		return rc;
	/* After some failures of TLS, libmosquitto would try again at once, without end. */
	if (mosquitto_socket(m->client) < 0 || (revents & (POLLERR | POLLHUP | POLLNVAL)))
		return MOSQ_ERR_CONN_LOST;
	return !m->is_up && now >= m->answer_ns ? MOSQ_ERR_KEEPALIVE : MOSQ_ERR_SUCCESS;
}

int mqtt_step(struct mqtt *m, short revents, uint64_t now, struct error *err)
{
	int rc = MOSQ_ERR_SUCCESS;

	if (m->client)
		rc = mqtt_exchange(m, revents, now);
	else if (now >= m->backoff.next_ns)
		rc = mqtt_connect(m, now);
	if (rc != MOSQ_ERR_SUCCESS)
		return mqtt_fail(m, rc, err);
	if (!m->complaint[0])
		return 0;
	error_set(err, -EACCES, "mqtts://%s:%u: %s", m->policy->broker.host, m->policy->broker.port,
		  m->complaint);
	m->complaint[0] = '\0';
	return -EACCES;
}

int mqtt_fd(const struct mqtt *m, short *ret_events)
{
	*ret_events = POLLIN;
	if (!m->client)
		return -1;
	if (mosquitto_want_write(m->client))
		*ret_events |= POLLOUT;
	return mosquitto_socket(m->client);
}

uint64_t mqtt_next_ns(const struct mqtt *m)
{
	if (!m->client)
		return m->backoff.next_ns;
	return m->is_up ? m->ping_ns : MIN(m->ping_ns, m->answer_ns);
}

bool mqtt_is_up(const struct mqtt *m)
{
	return m->is_up;
}

struct mqtt_counts mqtt_counts(const struct mqtt *m)
{
	return m->counts;
}

struct place *mqtt_places(struct mqtt *m, size_t *ret_count)
{
	*ret_count = m->place_count;
	return m->places;
}

int mqtt_send_status(struct mqtt *m, const char *text, size_t len, struct error *err)
{
	int rc;

	if (!m->is_up)
		return 0;
	rc = mosquitto_publish_v5(m->client, NULL, m->status_topic.data, (int)len, text, QOS, true,
				  NULL);
	mqtt_note_sent(m);
	return rc == MOSQ_ERR_SUCCESS ? 0 : mqtt_fail(m, rc, err);
}

void mqtt_end(struct mqtt *m)
{
	if (m->is_up)
		mosquitto_disconnect_v5(m->client, 0, NULL);
	mqtt_close(m);
}
