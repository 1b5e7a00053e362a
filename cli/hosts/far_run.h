/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A command that runs on other machines, and what it prints there on its way here. */
#pragma once

#include "host.h"

/*
 * Runs the words on all hosts at once, and prints their output host by host. json: as one document,
 * if there are several (far_json.h). Returns the first exit status that is not 0. An interrupt ends
 * this process, after it has printed what has come from all hosts.
 */
int far_run_all(const struct options *o, const struct host_list *hosts, char **words, bool json);
