/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl fleet`: orders to boards with traced-agent, and their results. A file for each action.
 */
#pragma once

#include "cli.h"

int fleet_order(const struct options *o);
int fleet_withdraw(const struct options *o);
int fleet_status(const struct options *o);
int fleet_fetch(const struct options *o);
int fleet_report(const struct options *o);
int fleet_open(const struct options *o);
