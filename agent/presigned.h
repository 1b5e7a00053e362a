/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Orders that bring the signature of their results' URLs: the board needs no key of the store. */
#pragma once

#include "agent/agent.h"

/* For struct upload: appends ?NAME=VALUE&... of the kept order, whose signature is good still. */
void presigned_put_query(void *agent, uint64_t serial, struct buf *url);
