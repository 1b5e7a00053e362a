/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An order behind its signature, and the arguments that it leads to. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "agent/recorder.h"
#include "agent/signature.h"

static void check_arguments(const struct order *order)
{
	_cleanup_(recorder_arguments_deinit) struct recorder_arguments a = { 0 };
	const struct policy policy = { .tracectl = (char *)"/tracectl" };
	size_t n = 0;

	if (recorder_arguments_init(&a, order, &policy, NULL) < 0)
		return;
	while (n < RECORDER_ARGUMENTS_MAX && a.argv[n])
		n++;
	if (n == RECORDER_ARGUMENTS_MAX)
		abort();
	for (size_t i = 0; i < order->events.count; i++)
		if (order->events.items[i][0] == '-')
			abort();
	if (a.reports && a.reports[0] == '-')
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct public_keys none;
	_cleanup_error_ struct error err = ERROR_INIT, second = ERROR_INIT;
	_cleanup_order_ struct order order = { 0 };
	const char *message, *signer;

	if (signature_check(&none, (const char *)data, size, &message, &signer, &second) == 0 ||
	    !second.message)
		abort();
	if (order_parse(&order, (const char *)data, size, &err) == 0)
		check_arguments(&order);
	else if (!err.message || order.fleet)
		abort();
	return 0;
}
