/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "boot_loader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

#define GRUB_FOLDER "/etc/default/grub.d"
#define GRUB_FILE GRUB_FOLDER "/traced-boot-recorder.cfg"
#define KERNEL_CMDLINE "/etc/kernel/cmdline"
#define CMDLINE_MAX (64U << 10)
#define SCRIPT_MAX (256U << 10)

/* Words that enable writes; others' instances stay. */
static bool is_ours(const char *word, size_t len)
{
	static const char memory[] = "reserve_mem=", instance[] = "trace_instance=";
	static const char label[] = ":traced", at[] = "@traced";

	if (len > sizeof(memory) + sizeof(label) && !memcmp(word, memory, sizeof(memory) - 1))
		return !memcmp(word + len - (sizeof(label) - 1), label, sizeof(label) - 1);
	return len > sizeof(instance) + sizeof(at) &&
	       !memcmp(word, instance, sizeof(instance) - 1) &&
	       !memcmp(word + len - (sizeof(at) - 1), at, sizeof(at) - 1);
}

bool boot_loader_strip(char *line)
{
	char *to = line;
	bool found = false;

	for (const char *p = line; *p;) {
		size_t blanks = strspn(p, " \t"), len = strcspn(p + blanks, " \t\n");

		if (len && is_ours(p + blanks, len)) {
			found = true;
			p += blanks + len;
			continue;
		}
		/* A newline is a word of its own here. */
		len += blanks + (len == 0 && p[blanks] == '\n');
		memmove(to, p, len);
		to += len;
		p += len;
	}
	*to = '\0';
	return found;
}

int boot_loader_replace(const char *path, const char *text, struct error *err)
{
	int r = replace_file(path, text, strlen(text), 0644, true);

	return r < 0 ? error_errno(err, r, "cannot write %s", path) : 0;
}

static bool is_there(const char *root, const char *path)
{
	_cleanup_free_ char *full = NULL;

	if (asprintf(&full, "%s%s", root, path) < 0)
		full = NULL;
	return full && access(full, F_OK) == 0;
}

static int grub_add(const char *root, const char *words, struct error *err)
{
	_cleanup_free_ char *folder = NULL, *path = NULL, *text = NULL;

	if (asprintf(&folder, "%s" GRUB_FOLDER, root) < 0)
		folder = NULL;
	if (asprintf(&path, "%s" GRUB_FILE, root) < 0)
		path = NULL;
	if (asprintf(&text, "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX %s\"\n", words) < 0)
		text = NULL;
	if (!folder || !path || !text)
		return error_errno(err, -ENOMEM, GRUB_FILE);
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return error_errno(err, -errno, "cannot create %s", folder);
	return boot_loader_replace(path, text, err);
}

/* Only Debian's grub-mkconfig and its descendants read the folder. */
static bool grub_reads_folder(const char *root)
{
	static const char *const scripts[] = { "/usr/sbin/grub-mkconfig", "/usr/bin/grub-mkconfig",
					       "/usr/sbin/grub2-mkconfig",
					       "/usr/bin/grub2-mkconfig" };

	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s%s", root, scripts[i]) < 0)
			path = NULL;
		if (path && read_file_at(AT_FDCWD, path, SCRIPT_MAX, &text) == 0)
			return buf_string(&text) && strstr(text.data, "/default/grub.d");
	}
	return true;
}

/* A blank, or a newline behind a comment. kernel-install takes newlines for blanks. */
static const char *cmdline_separator(const struct buf *line)
{
	const char *last;

	if (!line->len || !line->data)
		return "";
	last = memrchr(line->data, '\n', line->len);
	return *(last ? last + 1 : line->data) == '#' ? "\n" : " ";
}

/* words NULL: only takes ours away. Returns 1: written. */
static int cmdline_change(const char *root, const char *words, struct error *err)
{
	_cleanup_buf_ struct buf old = BUF_INIT, new = BUF_INIT;
	_cleanup_free_ char *path = NULL;
	bool had;
	int r;

	if (asprintf(&path, "%s" KERNEL_CMDLINE, root) < 0)
		path = NULL;
	r = path ? read_file_at(AT_FDCWD, path, CMDLINE_MAX, &old) : -ENOMEM;
	if (r == 0 && (!buf_string(&old) || memchr(old.data, '\0', old.len)))
		r = -EBADMSG;
	if (r < 0)
		return error_errno(err, r, "cannot read " KERNEL_CMDLINE);
	had = boot_loader_strip(old.data);
	if (!words && !had)
		return 0;
	old.len = strlen(old.data);
	while (old.len && strchr(" \t\n", old.data[old.len - 1]))
		old.len--;
	buf_append(&new, old.data, old.len);
	if (words)
		buf_printf(&new, "%s%s", cmdline_separator(&old), words);
	buf_putc(&new, '\n');
	if (!buf_string(&new))
		return error_errno(err, -ENOMEM, KERNEL_CMDLINE);
	r = boot_loader_replace(path, new.data, err);
	return r < 0 ? r : 1;
}

#define GRUB_NEXT "  update-grub    (elsewhere: grub-mkconfig -o /boot/grub/grub.cfg)\n"
#define GRUB_BY_HAND                                                                               \
	"(or in GRUB_CMDLINE_LINUX of /etc/default/grub, then grub-mkconfig -o "                   \
	"/boot/grub/grub.cfg)\n"
#define CMDLINE_NEXT "  kernel-install add-all\n"

int boot_loader_add(const char *root, const char *words, struct buf *next, struct error *err)
{
	bool grub = is_there(root, "/etc/default/grub"), cmdline = is_there(root, KERNEL_CMDLINE);
	int r;

	if (!grub && !cmdline) {
		error_set(err, -ENOENT,
			  "neither GRUB's configuration nor " KERNEL_CMDLINE " is there");
		return error_hint(err, "without --write it says what your boot loader needs");
	}
	if (grub && !grub_reads_folder(root)) {
		buf_printf(next, "  grubby --update-kernel=ALL --args='%s'\n    " GRUB_BY_HAND,
			   words);
		grub = false;
	}
	r = grub ? grub_add(root, words, err) : 0;
	if (r == 0 && grub)
		buf_puts(next, GRUB_NEXT);
	if (r == 0 && cmdline)
		r = MIN(cmdline_change(root, words, err), 0);
	if (r == 0 && cmdline)
		buf_puts(next, CMDLINE_NEXT);
	return r < 0 ? r : grub || cmdline;
}

int boot_loader_remove(const char *root, struct buf *next, struct error *err)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, "%s" GRUB_FILE, root) < 0) {
		path = NULL;
		return error_errno(err, -ENOMEM, GRUB_FILE);
	}
	if (unlink(path) == 0)
		buf_puts(next, GRUB_NEXT);
	else if (errno != ENOENT)
		return error_errno(err, -errno, "cannot remove %s", path);
	else if (is_there(root, "/etc/default/grub") && !grub_reads_folder(root))
		buf_puts(next, "  take the words with 'traced' off the kernel's command line, "
			       "by grubby --remove-args\n    " GRUB_BY_HAND);
	if (!is_there(root, KERNEL_CMDLINE))
		return 0;
	r = cmdline_change(root, NULL, err);
	if (r > 0)
		buf_puts(next, CMDLINE_NEXT);
	return MIN(r, 0);
}

void boot_loader_explain(const char *words, struct buf *out)
{
	buf_printf(out,
		   "GRUB: " GRUB_FILE ", then update-grub:\n"
		   "  GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX %s\"\n"
		   "GRUB of Fedora and RHEL:\n"
		   "  grubby --update-kernel=ALL --args='%s'\n"
		   "systemd-boot: append to " KERNEL_CMDLINE ", then kernel-install add-all;\n"
		   "or to the line 'options' of the entry in /boot/loader/entries:\n"
		   "  %s\n"
		   "U-Boot:\n"
		   "  setenv bootargs \"${bootargs} %s\"; saveenv\n"
		   "Android, in BoardConfig.mk:\n"
		   "  BOARD_KERNEL_CMDLINE += %s\n",
		   words, words, words, words, words);
}
