/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* traced-agent: takes signed orders, records by tracectl, uploads results. */
#include <getopt.h>
#if STATIC_PROGRAMS && defined(__GLIBC__)
#include <nss.h>
#endif
#include <signal.h>
#include <string.h>

#include "agent/agent.h"
#include "base/io.h"
#include "base/log.h"

static const char usage[] = "usage: traced-agent [--config FILE] [--check]\n"
			    "  --config FILE   instead of " POLICY_FILE "\n"
			    "  --check         reads configuration, keys, certificates and state\n"
			    "  --version\n"
			    "  --help\n";

static int fail(const struct error *err)
{
	log_error("%s", err->message ?: "out of memory");
	if (err->hint)
		log_error("hint: %s", err->hint);
	return 1;
}

/* An agent that runs tries again: a certificate is perhaps being renewed. */
static int check_files(const struct policy *policy, struct error *err)
{
	const char *file = policy_find_unreadable(policy);
	const int e = errno;

	if (!file)
		return 0;
	error_errno(err, -e, "%s", file);
	return e == EACCES ? error_hint(err,
					"chgrp traced-agent %s; chmod g+r %s; the folders above "
					"it need x, too",
					file, file)
			   : -e;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check", no_argument, NULL, 'k' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_(agent_deinit) struct agent agent = { .state = STATE_INIT,
						       .spool = SPOOL_INIT,
						       .recorder = RECORDER_INIT };
	const char *config = POLICY_FILE;
	bool only_checks = false;
	int c;

	reserve_standard_fds();
#if STATIC_PROGRAMS && defined(__GLIBC__)
	/* nsswitch.conf may name modules that are for the board's own C library. */
	__nss_configure_lookup("hosts", "files dns");
#endif
	/* Whoever starts the agent may have it ignored: then no child could be waited for. */
	signal(SIGCHLD, SIG_DFL);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c') {
			config = optarg;
		} else if (c == 'k') {
			only_checks = true;
		} else if (c == 'V' || c == 'h') {
			fputs(c == 'h' ? usage : "traced-agent " TRACED_VERSION "\n", stdout);
			return 0;
		} else {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	log_set_prefix(!isatty(STDERR_FILENO));
	/* Nothing that the agent does needs root, and a mistake in it must not have root's rights.
	 */
	if (geteuid() == 0) {
		error_set(&err, -EPERM, "the agent does not run as root");
		error_hint(&err, "systemctl start traced-agent runs it as its own user");
		return fail(&err);
	}
	if (agent_init(&agent, config, 0, &err) < 0)
		return fail(&err);
	if (only_checks)
		return check_files(&agent.policy, &err) < 0 ? fail(&err) : 0;
	return agent_run(&agent, &err) < 0 ? fail(&err) : 0;
}
