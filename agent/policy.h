/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* agent.conf: where orders and results go, and the bounds that no order can widen. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "agent/s3_key.h"
#include "base/error.h"
#include "settings/string_list.h"

/* URLs of orders. */
#define POLICY_URLS_MAX 8
#define POLICY_FILE TRACED_SYSCONFDIR "/traced/agent.conf"

/* mqtts://HOST:PORT */
struct broker_address {
	char *host; /* NULL: no broker */
	uint16_t port;
};

struct policy {
	uid_t owner; /* of this file, of the keys, and of only_if */
	/* [board] */
	char *id, *fleet;
	struct string_list groups;
	struct string_list labels; /* NAME=VALUE; kernel and arch are added */
	/* [orders] */
	struct string_list orders_urls;
	struct broker_address broker;
	char *keys;		/* folder of public keys */
	uint64_t interval_ns;	/* between polls */
	uint64_t keep_alive_ns; /* between packets to the broker */
	uint64_t validity_ns;	/* how far expires may lie ahead */
	/* [results] */
	char *results_url;
	char *s3_region; /* NULL: results are not signed for S3 */
	char *s3_key_file;
	struct s3_key s3_key;
	bool presigned;	    /* an order may bring the query that signs the URLs of its results */
	uint64_t spool_max; /* bytes of results that wait */
	bool sends_newest, drops_newest; /* which of them go first; false: the oldest */
	/* [tls] */
	char *ca, *certificate, *key; /* files; NULL: the system's authorities; no certificate */
	/* [limits] */
	uint64_t duration_ns, window_ns;
	struct string_list events; /* SYSTEM:EVENT globs; empty: none */
	struct string_list profiles, reports;
	bool sql;		 /* of any event that the daemon lets the agent record */
	struct string_list hist; /* SYSTEM:EVENT globs that histograms may count; empty: none */
	bool triggers;		 /* an order may wait for a condition */
	bool captures;		 /* whole recordings may leave the board */
	unsigned cpu_permille;	 /* of the recorder, of one CPU; 0: no limit */
	uint64_t result_max;	 /* bytes of one file */
	unsigned segments_max;	 /* of one order */
	unsigned orders_a_day, uploads_a_day;
	uint64_t bytes_a_day; /* sent */
	char *only_if;	      /* program of struct hook; NULL: the board may always work */
	/* [agent] */
	char *state_dir, *metrics, *socket, *tracectl;
};

/*
 * Reads the file. -EPERM: others than owner can change it. Unlike traced.conf it has no drop-ins,
 * and an unknown key is an error.
 */
int policy_load(struct policy *ret, const char *path, uid_t owner, struct error *err);
/* A file of [tls] that this process can't read, with errno; NULL: none. */
const char *policy_find_unreadable(const struct policy *policy);
void policy_deinit(struct policy *policy);
#define _cleanup_policy_ _cleanup_(policy_deinit)
