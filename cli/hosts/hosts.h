/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl -H HOST COMMAND`: commands that run on other machines. */
#pragma once

#include "host.h"

/* Runs the command line argv (the command first) on the hosts of o. Returns the exit status. */
int hosts_run(const struct options *o, int argc, char **argv);
/* `record` on all hosts. o: options before the command, too. argv[0] is "record". */
int hosts_record(const struct options *o, const struct host_list *hosts, int argc, char **argv);
