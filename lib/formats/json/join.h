/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "export/join.h"

export_join_func json_join, html_join;
