# SPDX-License-Identifier: LGPL-2.1-or-later
################################################################################
#
# traced
#
################################################################################

# To build a checkout, set TRACED_OVERRIDE_SRCDIR = /path/to/checkout in local.mk.
TRACED_VERSION = 0.1.0
TRACED_SITE_METHOD = local
TRACED_SITE = $(TRACED_OVERRIDE_SRCDIR)
TRACED_LICENSE = LGPL-2.1-or-later
TRACED_LICENSE_FILES = COPYING
TRACED_DEPENDENCIES = host-pkgconf host-protobuf-c inih protobuf-c xxhash zlib zstd
TRACED_CONF_OPTS = -Dtests=disabled

ifeq ($(BR2_PACKAGE_SYSTEMD),y)
TRACED_DEPENDENCIES += systemd
TRACED_CONF_OPTS += -Dsystemd=enabled
else
TRACED_CONF_OPTS += -Dsystemd=disabled
endif

ifeq ($(BR2_PACKAGE_LIBSECCOMP),y)
TRACED_DEPENDENCIES += libseccomp
TRACED_CONF_OPTS += -Dseccomp=enabled
else
TRACED_CONF_OPTS += -Dseccomp=disabled
endif

define TRACED_USERS
	traced -1 traced -1 * - - - kernel trace collection
endef

define TRACED_INSTALL_INIT_SYSV
	$(INSTALL) -D -m 0755 $(@D)/contrib/busybox/S60traced $(TARGET_DIR)/etc/init.d/S60traced
endef

define TRACED_LINUX_CONFIG_FIXUPS
	$(call KCONFIG_ENABLE_OPT,CONFIG_FTRACE)
	$(call KCONFIG_ENABLE_OPT,CONFIG_ENABLE_DEFAULT_TRACERS)
endef

$(eval $(meson-package))
