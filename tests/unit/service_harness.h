/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The whole daemon but its kernel and its exporter (service_fakes.h), in one loop with its clients.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io.h"
#include "control/frame.h"
#include "daemon/service/manager.h"
#include "service_fakes.h"

typedef Traced__Control__Request Request;
typedef Traced__Control__Reply Reply;

#define REQUEST(var, number, field, message)                                                       \
	Request var = TRACED__CONTROL__REQUEST__INIT;                                              \
	(var).verb_case = TRACED__CONTROL__REQUEST__VERB_##number;                                 \
	(var).id = ++next_id;                                                                      \
	(var).field = &(message)

extern uint64_t next_id; /* of requests */

struct daemon {
	char dir[64];
	char spool[80], state[80], subuid[80];
	struct loop *loop;
	struct manager *manager;
};

struct client {
	int fd;
	struct frame_io io;
};

int daemon_setup(void **state);
unsigned spool_files(const struct daemon *d, bool remove);
int daemon_teardown(void **state);
/* uid: who the daemon takes for the client; another than our own only as root. */
void client_open_as(struct daemon *d, struct client *c, uid_t uid);
void client_open(struct daemon *d, struct client *c);
void client_close(struct client *c);
/* Lets the daemon run for a while. */
void turn(struct daemon *d, uint64_t ms);
/* Until it is so, however slow the machine. */
#define turn_until(d, is_so)                                                                       \
	do {                                                                                       \
		const uint64_t late_ = now_ns(CLOCK_MONOTONIC) + 20 * NSEC_PER_SEC;                \
		while (!(is_so)) {                                                                 \
			assert_true(now_ns(CLOCK_MONOTONIC) < late_);                              \
			turn(d, 2);                                                                \
		}                                                                                  \
	} while (0)
void tell(struct client *c, Request *request, int fd);
/* The next reply, or NULL if the daemon closed the connection. */
Reply *hear(struct daemon *d, struct client *c);
Reply *ask(struct daemon *d, struct client *c, Request *request, int fd);
void done_with(Reply *reply);
void greet(struct daemon *d, struct client *c);
/* greet() as this user. */
void greet_as(struct daemon *d, struct client *c, uid_t uid);
Reply *start(struct daemon *d, struct client *c, const char *name, bool detached, bool ring,
	     uint64_t duration_ms);
/* Sends a Start and waits until its session arms, which takes 200 ms. Returns the request's id. */
uint64_t tell_start(struct daemon *d, struct client *c, const char *name, bool detached, bool ring);
Reply *start_filtered(struct daemon *d, struct client *c, const char *glob, const char *filter);
void start_ok(struct daemon *d, struct client *c, const char *name, bool detached);
void assert_error(Reply *reply, int code, const char *part);
Request *stop_request(const char *name, const char *format);
Request *attach_request(const char *name, const char *format);
Request *snapshot_request(const char *name, const char *format);
Request *cancel_request(const char *name);
Request *status_request(void);
void assert_output(int fd, const char *expected);
void feed(void);
void await_captures(struct daemon *d, int count);

#define SERVICE_TEST(name) cmocka_unit_test_setup_teardown(name, daemon_setup, daemon_teardown)
/*
 * The service starts its helpers by running its own program again. Returns the exit status of one,
 * or -1 to go on with the tests.
 */
int service_test_begin(int argc, char **argv);
