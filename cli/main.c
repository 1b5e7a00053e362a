/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli.h"

int main(int argc, char **argv)
{
	return tracectl_main(argc, argv);
}
