/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a service manager and a service tell each other: sd_notify(3) and
 * sd_listen_fds(3), which are a datagram and some variables. Without such a
 * manager nothing of this does anything.
 */
#pragma once

#include <stdint.h>

/* state: lines as of sd_notify(3). */
void notify(const char *state);
/*
 * The configuration is being read again, until the next READY=1. For Type=notify-reload it has the
 * time, which tells a reload that was asked for from an earlier one.
 */
void notify_reloading(void);
/* How often, at least, it wants to hear that the service lives; 0: it doesn't. */
uint64_t notify_watchdog_us(void);
/*
 * The one listening unix stream socket that was handed over, or -ENOENT for none; anything else
 * that was handed over is -EINVAL. The variables are gone then, so that no child sees them.
 */
int notify_take_socket(void);
