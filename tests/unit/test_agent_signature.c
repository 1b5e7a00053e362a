/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signatures, keys and the policy: files that decide whom the agent obeys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/policy.h"
#include "agent/signature.h"
#include "base/io.h"
#include "own_folder.h"
#include "signify.h"

#define MESSAGE "[order]\nserial = 7\n"
/* By signify-openbsd 31. */
#define SIGNIFY_PUBLIC                                                                             \
	"untrusted comment: test public key\n"                                                     \
	"RWR25nNvs+AZqjFhWz2M4tL2yN4sHFTvy3wPKBI0HdmuvVisvnIW300B\n"
#define SIGNIFY_ORDER                                                                              \
	"untrusted comment: verify with a.pub\n"                                                   \
	"RWR25nNvs+"                                                                               \
	"AZqg2hGycx0OeZkvYaOf5lHaqoFJ8eLHgqsxdTUy3QfsABm7kM7K5xiGfbgLTCblYOG9UXfdAUodsHLbWYbXAeTg" \
	"A=\n"                                                                                     \
	"[order]\n"                                                                                \
	"serial = 7\n"

static void put_file(const char *path, const struct buf *text)
{
	assert_int_equal(replace_file(path, text->data, text->len, 0644, false), 0);
}

static void put_text(const char *path, const char *text)
{
	assert_int_equal(replace_file(path, text, strlen(text), 0644, false), 0);
}

static void put_key(const char *path, unsigned char seed)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct signer signer;

	signer_init(&signer, seed);
	signer_put_key(&signer, &text);
	put_file(path, &text);
}

static int load(struct public_keys *keys)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = public_keys_load(keys, "keys", geteuid(), &err);

	assert_true(r == 0 || err.message);
	return r;
}

static int check(const struct public_keys *keys, const char *data, size_t len)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	const char *message = NULL, *signer = NULL;
	int r = signature_check(keys, data, len, &message, &signer, &err);

	assert_true(r == 0 ? message && signer : !message && err.message != NULL);
	if (r == 0)
		assert_true(strncmp(message, "[order]", 7) == 0 || message == data + len);
	return r;
}

static void only_whole_signed_orders_pass(void **state _unused_)
{
	_cleanup_(public_keys_deinit) struct public_keys keys = { 0 };
	_cleanup_buf_ struct buf order = BUF_INIT, other = BUF_INIT;
	struct signer signer;

	assert_int_equal(mkdir("keys", 0755), 0);
	put_key("keys/a.pub", 1);
	put_key("keys/b.pub", 2);
	put_text("keys/c.sec", "not a key");
	assert_int_equal(load(&keys), 0);
	assert_int_equal(keys.count, 2);
	signer_init(&signer, 2);
	signer_put_signed(&signer, MESSAGE, &order);
	assert_int_equal(check(&keys, order.data, order.len), 0);
	/* Cut anywhere, and changed anywhere behind the comment. */
	for (size_t len = 0; len < order.len; len++)
		assert_int_equal(check(&keys, order.data, len), -EBADMSG);
	for (size_t at = strlen("untrusted comment: a test\n"); at < order.len; at++) {
		order.data[at] ^= 1;
		assert_int_equal(check(&keys, order.data, order.len), -EBADMSG);
		order.data[at] ^= 1;
	}
	buf_putc(&order, '\n');
	assert_int_equal(check(&keys, order.data, order.len), -EBADMSG);
	/* Another key, and another key with a known number. */
	signer_init(&signer, 3);
	signer_put_signed(&signer, MESSAGE, &other);
	assert_int_equal(check(&keys, other.data, other.len), -EBADMSG);
	memset(signer.number, 2, sizeof(signer.number));
	buf_clear(&other);
	signer_put_signed(&signer, MESSAGE, &other);
	assert_int_equal(check(&keys, other.data, other.len), -EBADMSG);
}

/* A signature of signify(1), by a key of signify(1). */
static void signify_and_we_agree(void **state _unused_)
{
	_cleanup_(public_keys_deinit) struct public_keys keys = { 0 };
	_cleanup_buf_ struct buf order = BUF_INIT;

	assert_int_equal(mkdir("keys", 0755), 0);
	put_text("keys/a.pub", SIGNIFY_PUBLIC);
	buf_puts(&order, SIGNIFY_ORDER);
	assert_int_equal(load(&keys), 0);
	assert_int_equal(check(&keys, order.data, order.len), 0);
}

static void keys_of_others_do_not_count(void **state _unused_)
{
	_cleanup_(public_keys_deinit) struct public_keys keys = { 0 };

	assert_int_equal(load(&keys), -ENOENT);
	assert_int_equal(mkdir("keys", 0755), 0);
	assert_int_equal(load(&keys), -ENOENT);
	put_key("keys/a.pub", 1);
	assert_int_equal(chmod("keys/a.pub", 0664), 0);
	assert_int_equal(load(&keys), -EPERM);
	assert_int_equal(chmod("keys/a.pub", 0644), 0);
	assert_int_equal(chmod("keys", 0777), 0);
	assert_int_equal(load(&keys), -EPERM);
	assert_int_equal(chmod("keys", 0755), 0);
	assert_int_equal(public_keys_load(&keys, "keys", geteuid() + 1, NULL), -EPERM);
	assert_int_equal(symlink("a.pub", "keys/b.pub"), 0);
	assert_int_equal(load(&keys), -ELOOP);
	assert_int_equal(unlink("keys/b.pub"), 0);
	assert_int_equal(mkfifo("keys/b.pub", 0644), 0);
	assert_int_equal(load(&keys), -EPERM);
	assert_int_equal(unlink("keys/b.pub"), 0);
	put_text("keys/b.pub", "untrusted comment: x\nRWQ=\n");
	assert_int_equal(load(&keys), -EINVAL);
	assert_int_equal(keys.count, 0);
}

#define POLICY                                                                                     \
	"[board]\nid = door-17\nfleet = doors\n[orders]\nurl = https://a.example/doors\n"          \
	"[results]\nurl = https://b.example/results/\n"

#define URLS "https://a.example/1 https://a.example/2 https://a.example/3 https://a.example/4 "
#define NINE_URLS URLS URLS "https://a.example/9"

static int load_policy(const char *text, mode_t mode, struct policy *ret)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r;

	put_text("agent.conf", text);
	assert_int_equal(chmod("agent.conf", mode), 0);
	r = policy_load(ret, "agent.conf", geteuid(), &err);
	assert_true(r == 0 || err.message);
	return r;
}

static void a_policy_allows_nothing_by_itself(void **state _unused_)
{
	_cleanup_policy_ struct policy p = { 0 };

	assert_int_equal(load_policy(POLICY, 0640, &p), 0);
	assert_int_equal(p.events.count + p.profiles.count + p.reports.count, 0);
	assert_false(p.captures);
	/* kernel and arch */
	assert_int_equal(p.labels.count, 2);
}

static void a_policy_with_a_mistake_is_refused(void **state _unused_)
{
	static const char *const wrong[] = {
		POLICY "[limits]\nduration = 5s\n",
		POLICY "[limits]\nevents = sched\n",
		POLICY "[limits]\nevents = sched:sched_switc?\n",
		POLICY "[limits]\nbytes_a_day = 5\n",
		POLICY "[limits]\nbytes_a_day = 15M\n",
		"[orders]\ninterval = 1ms\n" POLICY,
		POLICY "[board]\nid = door-18\n",
		POLICY "[tls]\nca = relative\n",
		POLICY "presigned = yes\ndrop_first = newest\n",
		POLICY "[tls]\nkey = /k\n",
		"[board]\nid = ../x\n",
		"[board]\nid = door-17\nfleet = doors\n[orders]\nurl = https://a.example/doors\n",
		"[orders]\nurl = http://a.example/doors\n",
		"[orders]\nurl = https://\n",
		"[orders]\nurl = https://user:word@a.example/\n",
		"[orders]\nurl = https://a.example/?q\n",
		"[orders]\nurl = file:///etc/passwd\n",
		"[orders]\nurl = https://a.example/ http://b.example/\n",
		"[orders]\nurl = " NINE_URLS "\n",
		"[orders]\nkeep_alive = 4s\n" POLICY,
		"[orders]\nkeep_alive = 2h\n" POLICY,
		/* These would be other topics than the fleet's. */
		POLICY "[board]\ngroups = all\n",
		POLICY "[board]\ngroups = +\n",
		POLICY "[board]\ngroups = a+\n",
		POLICY "[board]\ngroups = #\n",
		POLICY "[board]\ngroups = a/orders\n",
		POLICY "[board]\ngroups = $SYS\n",
		POLICY "[board]\ngroups = a\x01"
		       "b\n",
		POLICY "[board]\ngroups = \xc3\xa9\n",
		"[board]\nid = +\n",
		"[board]\nid = door/17\n",
		"[board]\nid = door\x7f\n",
		"[board]\nfleet = #\n",
		"[board]\nfleet = a/b\n",
		"[board]\nfleet = a\x1b"
		"b\n",
	};
	struct policy p = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(load_policy(wrong[i], 0644, &p), -EINVAL);
	assert_int_equal(load_policy(POLICY, 0664, &p), -EPERM);
	assert_int_equal(load_policy(POLICY, 0646, &p), -EPERM);
	assert_int_equal(chmod("agent.conf", 0644), 0);
	assert_int_equal(policy_load(&p, "agent.conf", geteuid() + 1, NULL), -EPERM);
	assert_int_equal(policy_load(&p, "none.conf", geteuid(), NULL), -ENOENT);
	assert_null(p.id);
}

static void orders_come_from_several_places(void **state _unused_)
{
	_cleanup_policy_ struct policy p = { 0 };

	assert_int_equal(load_policy("[board]\nid = a\nfleet = b\ngroups = canary eu\n"
				     "[orders]\nurl = " URLS URLS "\n"
				     "[results]\nurl = https://b.example/\n",
				     0644, &p),
			 0);
	assert_int_equal(p.orders_urls.count, POLICY_URLS_MAX);
	assert_string_equal(p.orders_urls.items[1], "https://a.example/2");
	assert_null(p.broker.host);
}

#define BROKER(address)                                                                            \
	"[board]\nid = a\nfleet = b\n[orders]\nbroker = " address "\n"                             \
	"[results]\nurl = https://b.example/\n"
#define TLS "[tls]\nca = /ca\ncertificate = /c\nkey = /k\n"

static void a_broker_is_a_host_and_a_port(void **state _unused_)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} right[] = {
		{ BROKER("mqtts://a.example") TLS, "a.example", 8883 },
		{ BROKER("mqtts://10.0.0.1:1") TLS, "10.0.0.1", 1 },
		{ BROKER("mqtts://[fe80::1]:65535") TLS, "fe80::1", 65535 },
	};
	static const char *const wrong[] = {
		BROKER("mqtts://a.example"),
		BROKER("mqtts://") TLS,
		BROKER("mqtts://:8883") TLS,
		BROKER("mqtt://a.example") TLS,
		BROKER("mqtts://a.example:") TLS,
		BROKER("mqtts://a.example:0") TLS,
		BROKER("mqtts://a.example:65536") TLS,
		BROKER("mqtts://a.example:-1") TLS,
		BROKER("mqtts://a.example:99999999999999999999") TLS,
		BROKER("mqtts://a.example/x") TLS,
		BROKER("mqtts://user@a.example") TLS,
		BROKER("mqtts://[fe80::1") TLS,
		BROKER("mqtts://a\x01") TLS,
	};

	if (!HAVE_MOSQUITTO) {
		struct policy p = { 0 };

		assert_int_equal(load_policy(right[0].text, 0644, &p), -EOPNOTSUPP);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		_cleanup_policy_ struct policy p = { 0 };

		assert_int_equal(load_policy(right[i].text, 0644, &p), 0);
		assert_string_equal(p.broker.host, right[i].host);
		assert_int_equal(p.broker.port, right[i].port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct policy p = { 0 };

		assert_int_equal(load_policy(wrong[i], 0644, &p), -EINVAL);
	}
}

int main(void)
{
#define OWN_FOLDER(f) cmocka_unit_test_setup_teardown(f, own_folder_setup, own_folder_teardown)
	const struct CMUnitTest tests[] = {
		OWN_FOLDER(only_whole_signed_orders_pass),
		OWN_FOLDER(signify_and_we_agree),
		OWN_FOLDER(keys_of_others_do_not_count),
		OWN_FOLDER(a_policy_allows_nothing_by_itself),
		OWN_FOLDER(a_policy_with_a_mistake_is_refused),
		OWN_FOLDER(orders_come_from_several_places),
		OWN_FOLDER(a_broker_is_a_host_and_a_port),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
