/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A command that runs on other machines, and what it prints there on its way here. */
#pragma once

#include "host.h"

/* Kinds of output of a command. */
enum far_output {
	FAR_TEXT,
	FAR_JSON, /* one document of several hosts (far_json.h) */
	FAR_DATA, /* a file for standard output: no terminal gets it unchanged */
};

/*
 * Runs the words on all hosts at once, and prints their output host by host. Returns the first exit
 * status that is not 0. An interrupt ends this process, after it has printed what has come from all
 * hosts.
 */
int far_run_all(const struct options *o, const struct host_list *hosts, char **words,
		enum far_output output);
