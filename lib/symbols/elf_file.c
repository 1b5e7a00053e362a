/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "symbols/code_symbols.h"

#define BUILD_ID_MAX 64

struct function {
	GElf_Addr address; /* with the module's bias added */
	uint64_t size;	   /* 0: unknown */
	const char *name;  /* owned by the library */
	unsigned rank;
	bool chosen; /* the program chooses the code at start (STT_GNU_IFUNC) */
};

struct elf_file {
	Dwfl_Callbacks callbacks;
	char *debug_path;		  /* owned; callbacks.debuginfo_path points to it */
	const char *folder;		  /* as `debug` of elf_file_open() */
	const struct code_opener *opener; /* or NULL */
	Dwfl *dwfl;
	Dwfl_Module *module;
	Elf *elf;	/* owned by the module */
	GElf_Addr bias; /* module address minus address in the file */
	bool loaded;
	struct function *functions; /* owned; sorted by address */
	size_t count;
};

struct elf_file *elf_file_free(struct elf_file *f)
{
	if (!f)
		return NULL;
	if (f->dwfl)
		dwfl_end(f->dwfl);
	free(f->functions);
	free(f->debug_path);
	free(f);
	return NULL;
}

static int elf_file_report(struct elf_file *f, int fd, const char *path)
{
	void **userdata;

	dwfl_report_begin(f->dwfl);
	/* On success the library owns the descriptor. */
	f->module = dwfl_report_elf(f->dwfl, path, path, fd, 0, false);
	if (!f->module)
		close_fd(fd);
	dwfl_report_end(f->dwfl, NULL, NULL);
	if (f->module &&
	    !dwfl_module_info(f->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL))
		f->module = NULL;
	if (f->module)
		*userdata = f;
	f->elf = f->module ? dwfl_module_getelf(f->module, &f->bias) : NULL;
	return f->elf ? 0 : -ENOEXEC;
}

static bool elf_file_has_build_id(struct elf_file *f, const void *build_id, size_t len)
{
	const unsigned char *own;
	GElf_Addr at;
	int n = dwfl_module_build_id(f->module, &own, &at);

	return n > 0 && (size_t)n == len && !memcmp(own, build_id, len);
}

static bool elf_fd_has_build_id(int fd, const void *build_id, size_t len)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *own;
	ssize_t n = elf ? dwelf_elf_gnu_build_id(elf, &own) : -1;
	bool same = n > 0 && (size_t)n == len && !memcmp(own, build_id, len);

	elf_end(elf);
	return same;
}

/* Consumes path. Returns the opener's file, if it has that build id. */
static int elf_try_debug(const struct elf_file *f, char *path, const void *build_id, size_t len)
{
	_cleanup_free_ char *tried = path;
	int fd = tried ? f->opener->open(f->opener->userdata, tried, CODE_FILE_ELF) : -ENOMEM;

	return fd >= 0 && !elf_fd_has_build_id(fd, build_id, len) ? close_fd(fd) : fd;
}

/* As GDB: by build id below the root for debug information, or by the name in the file. */
static int elf_find_in(const struct elf_file *f, const char *root, const char *file,
		       const char *link, const unsigned char *build_id, size_t len)
{
	char hex[2 * BUILD_ID_MAX + 1];
	const char *slash = strrchr(file, '/');
	int folder = slash ? (int)(slash - file) : 0, fd;
	char *path;

	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	if (asprintf(&path, "%s/.build-id/%.2s/%s.debug", root, hex, hex + 2) < 0)
		return -ENOMEM;
	fd = elf_try_debug(f, path, build_id, len);
	if (fd >= 0 || !link)
		return fd;
	if (asprintf(&path, "%s%.*s/%s", root, folder, file, link) < 0)
		return -ENOMEM;
	return elf_try_debug(f, path, build_id, len);
}

/* Replaces dwfl_standard_find_debuginfo() where this process can't open files. */
static int elf_find_debuginfo(Dwfl_Module *module, void **userdata, const char *name _unused_,
			      Dwarf_Addr base _unused_, const char *file, const char *link,
			      GElf_Word crc _unused_, char **ret_name _unused_)
{
	const struct elf_file *f = *userdata;
	_cleanup_free_ char *beside = NULL;
	const unsigned char *build_id;
	const char *slash;
	GElf_Addr at;
	int len = dwfl_module_build_id(module, &build_id, &at), fd = -1;

	if (len < 2 || len > BUILD_ID_MAX || !file)
		return -1;
	if (f->folder)
		fd = elf_find_in(f, f->folder, file, link, build_id, (size_t)len);
	if (fd < 0)
		fd = elf_find_in(f, "/usr/lib/debug", file, link, build_id, (size_t)len);
	slash = strrchr(file, '/');
	if (fd >= 0 || !link || !slash)
		return fd < 0 ? -1 : fd;
	if (asprintf(&beside, "%.*s/.debug/%s", (int)(slash - file), file, link) < 0)
		beside = NULL;
	fd = elf_try_debug(f, TAKE_PTR(beside), build_id, (size_t)len);
	return fd < 0 ? -1 : fd;
}

int elf_file_open(struct elf_file **ret, int fd, const char *path, const char *debug,
		  const struct code_opener *opener, const void *build_id, size_t build_id_len)
{
	struct elf_file *f = calloc(1, sizeof(*f));
	int r = -ENOMEM;

	if (f && asprintf(&f->debug_path, "%s%s.debug:/usr/lib/debug", debug ?: "",
			  debug ? ":" : "") < 0)
		f->debug_path = NULL;
	if (f && f->debug_path) {
		f->folder = debug;
		f->opener = opener;
		f->callbacks = (Dwfl_Callbacks){
			.find_elf = dwfl_build_id_find_elf,
			.find_debuginfo =
				opener ? elf_find_debuginfo : dwfl_standard_find_debuginfo,
			.section_address = dwfl_offline_section_address,
			.debuginfo_path = &f->debug_path,
		};
		f->dwfl = dwfl_begin(&f->callbacks);
	}
	if (f && f->dwfl)
		r = elf_file_report(f, TAKE_FD(fd), path);
	close_fd(fd);
	if (r == 0 && build_id_len && !elf_file_has_build_id(f, build_id, build_id_len))
		r = -ESTALE;
	if (r < 0) {
		elf_file_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

/* Finds the loaded segment with this file offset, or this address. */
static bool elf_find_segment(Elf *elf, uint64_t at, bool by_address, GElf_Phdr *ret)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t start;

		if (!gelf_getphdr(elf, (int)i, ret) || ret->p_type != PT_LOAD)
			continue;
		start = by_address ? ret->p_vaddr : ret->p_offset;
		if (at >= start && at - start < ret->p_filesz)
			return true;
	}
	return false;
}

/* The address of a file offset in a loaded program. */
static bool elf_to_address(Elf *elf, uint64_t offset, GElf_Addr *ret)
{
	GElf_Phdr ph;

	if (!elf_find_segment(elf, offset, false, &ph))
		return false;
	*ret = offset - ph.p_offset + ph.p_vaddr;
	return true;
}

/* The file offset of an address. */
static bool elf_to_offset(Elf *elf, GElf_Addr address, uint64_t *ret)
{
	GElf_Phdr ph;

	if (!elf_find_segment(elf, address, true, &ph))
		return false;
	*ret = address - ph.p_vaddr + ph.p_offset;
	return true;
}

/* Ranks several names of one address: the name that programs use wins. */
static unsigned elf_symbol_rank(const GElf_Sym *sym, const char *name)
{
	return (sym->st_size ? 4U : 0U) + (name[0] != '_' ? 2U : 0U) +
	       (GELF_ST_BIND(sym->st_info) != STB_LOCAL);
}

static int elf_by_address(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->rank > y->rank ? -1 : x->rank < y->rank;
}

/* Sorts the functions: the library's own search scans all symbols for each look-up. */
static void elf_file_load(struct elf_file *f)
{
	int count = dwfl_module_getsymtab(f->module);

	f->loaded = true;
	f->functions = count > 0 ? calloc((size_t)count, sizeof(*f->functions)) : NULL;
	for (int i = 1; f->functions && i < count; i++) {
		struct function *to = &f->functions[f->count];
		GElf_Word section;
		GElf_Addr address;
		GElf_Sym sym;
		const char *name =
			dwfl_module_getsym_info(f->module, i, &sym, &address, &section, NULL, NULL);
		int type = GELF_ST_TYPE(sym.st_info);

		if (!name || !*name || section == SHN_UNDEF || section == SHN_ABS ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
			continue;
		*to = (struct function){ address, sym.st_size, name, elf_symbol_rank(&sym, name),
					 type == STT_GNU_IFUNC };
		f->count++;
	}
	if (f->count)
		qsort(f->functions, f->count, sizeof(*f->functions), elf_by_address);
}

const char *elf_file_find(struct elf_file *f, uint64_t offset)
{
	GElf_Addr address;
	size_t low;

	if (!elf_to_address(f->elf, offset, &address))
		return NULL;
	address += f->bias;
	if (!f->loaded)
		elf_file_load(f);
	low = lower_bound(i, f->count, f->functions[i].address <= address);
	/*
	 * Take the first of several names at that address. A function without a size ends where the
	 * next one begins.
	 */
	for (; low; low--) {
		const struct function *found = &f->functions[low - 1];

		if (low > 1 && found[-1].address == found->address)
			continue;
		return !found->size || address - found->address < found->size ? found->name : NULL;
	}
	return NULL;
}

/* Length without the version: "@@V" is the default version's, "@V" an old one's. */
static size_t function_name_len(const struct function *function)
{
	return strcspn(function->name, "@");
}

static bool function_is_called(const struct function *function, const char *name)
{
	size_t len = function_name_len(function);
	const char *version = function->name + len;

	return !strncmp(function->name, name, len) && !name[len] &&
	       (!*version || !strncmp(version, "@@", 2));
}

size_t elf_file_locate(struct elf_file *f, const char *name, uint64_t *offsets, size_t max,
		       bool *ret_chosen)
{
	uint64_t last = 0;
	size_t count = 0;

	*ret_chosen = false;
	if (!f->loaded)
		elf_file_load(f);
	for (size_t i = 0; i < f->count; i++) {
		uint64_t offset;

		if (!function_is_called(&f->functions[i], name))
			continue;
		*ret_chosen |= f->functions[i].chosen;
		if (f->functions[i].chosen ||
		    !elf_to_offset(f->elf, f->functions[i].address - f->bias, &offset) ||
		    (count && offset == last))
			continue;
		if (count < max)
			offsets[count] = offset;
		count++;
		last = offset;
	}
	return count;
}

size_t elf_file_names(struct elf_file *f, struct buf *text, const char ***ret)
{
	const char *p;

	if (!f->loaded)
		elf_file_load(f);
	for (size_t i = 0; i < f->count; i++) {
		buf_append(text, f->functions[i].name, function_name_len(&f->functions[i]));
		buf_putc(text, '\0');
	}
	*ret = buf_error(text) ? NULL : calloc(f->count + 1, sizeof(**ret));
	if (!*ret)
		return 0;
	p = text->data;
	for (size_t i = 0; i < f->count; i++, p += strlen(p) + 1)
		(*ret)[i] = p;
	return f->count;
}
