/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top_screen.h"

#include <errno.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "top_view.h"

bool top_screen_is_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

#if HAVE_CURSES

#include <ncurses.h>

/* Milliseconds after which an escape is a key of its own. */
#define ESCAPE_MS 50

static SCREEN *screen;

bool top_screen_is_built(void)
{
	return true;
}

int top_screen_open(void)
{
	/* For names that are not ASCII; numbers keep their points. */
	setlocale(LC_CTYPE, "");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return -ENOTTY;
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	return 0;
}

void top_screen_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

void top_screen_resize(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clear();
}

void top_screen_size(size_t *ret_rows, size_t *ret_width)
{
	*ret_rows = (size_t)MAX(getmaxy(stdscr), 1);
	*ret_width = (size_t)MAX(getmaxx(stdscr), 1);
}

int top_screen_key(void)
{
	int key = getch();

	switch (key) {
	case ERR:
		return -1;
	case KEY_LEFT:
		return TOP_KEY_LEFT;
	case KEY_RIGHT:
		return TOP_KEY_RIGHT;
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_BACKSPACE:
		return TOP_KEY_BACKSPACE;
	case KEY_ENTER:
		return '\n';
	default:
		return key < 256 ? key : 0;
	}
}

void top_screen_show(const struct buf *lines, size_t names)
{
	const char *p = lines->data, *end = p + lines->len;

	erase();
	for (int line = 0; p < end; line++) {
		const char *next = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((next ?: end) - p);

		if ((size_t)line == names)
			attron(A_REVERSE);
		mvaddnstr(line, 0, p, (int)len);
		/* The whole line stands out. */
		if ((size_t)line == names) {
			hline(' ' | A_REVERSE, getmaxx(stdscr));
			attroff(A_REVERSE);
		}
		p = next ? next + 1 : end;
	}
	refresh();
}

#else

bool top_screen_is_built(void)
{
	return false;
}

int top_screen_open(void)
{
	return -ENOTTY;
}

void top_screen_close(void)
{
}

void top_screen_resize(void)
{
}

void top_screen_size(size_t *ret_rows, size_t *ret_width)
{
	*ret_rows = *ret_width = 1;
}

int top_screen_key(void)
{
	return -1;
}

void top_screen_show(const struct buf *lines _unused_, size_t names _unused_)
{
}

#endif
