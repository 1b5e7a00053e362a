/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service manager's protocols, without libsystemd: sd_notify(3) and sd_listen_fds(3), which
 * are a datagram and some variables. Without a service manager these functions do nothing.
 */
#pragma once

#include <stdint.h>

/* state: lines as in sd_notify(3). */
void notify(const char *state);
/*
 * Announces a reload, until the next READY=1. Includes the time, by which Type=notify-reload
 * recognizes the reload that it requested.
 */
void notify_reloading(void);
/* Maximum interval of watchdog messages; 0: none expected. */
uint64_t notify_watchdog_us(void);
/*
 * Returns the one listening unix stream socket passed by the manager; -ENOENT: none; -EINVAL:
 * anything else. Unsets the variables, so that no child sees them.
 */
int notify_take_socket(void);
