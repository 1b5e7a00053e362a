/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The whole program. Returns its exit status. */
int traced_main(int argc, char **argv);
