/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbols/elf_file.h"

#include <elfutils/libdwfl.h>
#include <string.h>

#include "util/cleanup.h"

struct elf_file {
	Dwfl_Callbacks callbacks;
	char *debug_path; /* owned; what callbacks.debuginfo_path points to */
	Dwfl *dwfl;
	Dwfl_Module *module;
	Elf *elf;	/* the module's */
	GElf_Addr bias; /* of the module's addresses over the file's */
};

struct elf_file *elf_file_free(struct elf_file *f)
{
	if (!f)
		return NULL;
	if (f->dwfl)
		dwfl_end(f->dwfl);
	free(f->debug_path);
	free(f);
	return NULL;
}

static int report(struct elf_file *f, int fd, const char *path)
{
	dwfl_report_begin(f->dwfl);
	/* On success the descriptor is the library's. */
	f->module = dwfl_report_elf(f->dwfl, path, path, fd, 0, false);
	if (!f->module)
		close_fd(fd);
	dwfl_report_end(f->dwfl, NULL, NULL);
	f->elf = f->module ? dwfl_module_getelf(f->module, &f->bias) : NULL;
	return f->elf ? 0 : -ENOEXEC;
}

static bool has_build_id(struct elf_file *f, const void *build_id, size_t len)
{
	const unsigned char *own;
	GElf_Addr at;
	int n = dwfl_module_build_id(f->module, &own, &at);

	return n > 0 && (size_t)n == len && !memcmp(own, build_id, len);
}

int elf_file_open(struct elf_file **ret, int fd, const char *path, const char *debug,
		  const void *build_id, size_t build_id_len)
{
	struct elf_file *f = calloc(1, sizeof(*f));
	int r = -ENOMEM;

	if (f && asprintf(&f->debug_path, "%s%s.debug:/usr/lib/debug", debug ?: "",
			  debug ? ":" : "") < 0)
		f->debug_path = NULL;
	if (f && f->debug_path) {
		f->callbacks = (Dwfl_Callbacks){
			.find_elf = dwfl_build_id_find_elf,
			.find_debuginfo = dwfl_standard_find_debuginfo,
			.section_address = dwfl_offline_section_address,
			.debuginfo_path = &f->debug_path,
		};
		f->dwfl = dwfl_begin(&f->callbacks);
	}
	if (f && f->dwfl)
		r = report(f, TAKE_FD(fd), path);
	close_fd(fd);
	if (r == 0 && build_id_len && !has_build_id(f, build_id, build_id_len))
		r = -ESTALE;
	if (r < 0) {
		elf_file_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

/* Where a loaded program has that byte of the file. */
static bool to_address(Elf *elf, uint64_t offset, GElf_Addr *ret)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    offset < ph.p_offset || offset - ph.p_offset >= ph.p_filesz)
			continue;
		*ret = offset - ph.p_offset + ph.p_vaddr;
		return true;
	}
	return false;
}

const char *elf_file_find(struct elf_file *f, uint64_t offset)
{
	GElf_Addr address;
	GElf_Off within;
	GElf_Sym sym;

	if (!to_address(f->elf, offset, &address))
		return NULL;
	return dwfl_module_addrinfo(f->module, address + f->bias, &within, &sym, NULL, NULL, NULL);
}
