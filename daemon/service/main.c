/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/daemon.h"

int main(int argc, char **argv)
{
	return traced_main(argc, argv);
}
