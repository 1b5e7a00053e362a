/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signs the uploads of an order's results for OpenStack's Swift (TempURL): boards then need no key
 * of the store. One signature is good for PUT and HEAD of all names below fleet=F/order=N/.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "fleet/order.h"

/*
 * Appends the key "presigned" to the order's text. file: an INI file with url and key in [swift];
 * the url is that of the results, as the boards have it.
 */
int fleet_presign(const char *file, const struct order *order, struct buf *text, struct error *err);
