# SPDX-License-Identifier: LGPL-2.1-or-later
SUMMARY = "Kernel trace collection daemon, and its command tracectl"
LICENSE = "LGPL-2.1-or-later"
LIC_FILES_CHKSUM = "file://COPYING;md5=4fbd65380cdd255951079008b364516c"

# To build a checkout, set EXTERNALSRC:pn-traced in local.conf.
inherit externalsrc meson pkgconfig useradd systemd update-rc.d

DEPENDS = "inih protobuf-c protobuf-c-native xxhash zlib zstd"

PACKAGECONFIG ??= "${@bb.utils.contains('DISTRO_FEATURES', 'systemd', 'systemd', '', d)} ${@bb.utils.contains('DISTRO_FEATURES', 'seccomp', 'seccomp', '', d)}"
PACKAGECONFIG[systemd] = "-Dsystemd=enabled,-Dsystemd=disabled,systemd"
PACKAGECONFIG[seccomp] = "-Dseccomp=enabled,-Dseccomp=disabled,libseccomp"
EXTRA_OEMESON = "-Dtests=disabled"

USERADD_PACKAGES = "${PN}"
USERADD_PARAM:${PN} = "--system --no-create-home --shell /sbin/nologin --user-group traced"

SYSTEMD_SERVICE:${PN} = "traced.socket"
INITSCRIPT_NAME = "traced"

do_install:append() {
	if ! ${@bb.utils.contains('PACKAGECONFIG', 'systemd', 'true', 'false', d)}; then
		rm -rf ${D}${systemd_system_unitdir}
		install -D -m 0755 ${S}/contrib/busybox/S60traced ${D}${sysconfdir}/init.d/traced
	fi
}

