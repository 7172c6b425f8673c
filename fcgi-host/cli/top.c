/*
 * top.c - `fcgi-host top`: a live view of what the running host is doing.
 */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/err.h"
#include "cli/members.h"
#include "cli/top_screen.h"
#include "config/config.h"

#include <curses.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

enum { EVERY_MS = 1000 };

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ NULL, 0, NULL, 0 },
};

static int check_terminal(struct err *err)
{
	const char *name = getenv("TERM");
	bool can_move;
	int found;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(err, "needs a terminal; `fcgi-host status` prints the same once");
	if (name == NULL || setupterm(name, STDOUT_FILENO, &found) != OK)
		return err_set(err, "the terminal '%s' (TERM) is not known here; `fcgi-host status` needs none", name == NULL ? "" : name);
	can_move = cursor_address != NULL;
	del_curterm(cur_term);
	if (!can_move)
		return err_set(err, "the terminal '%s' (TERM) cannot move its cursor; `fcgi-host status` prints the same once", name);
	return 0;
}

static SCREEN *open_terminal(void)
{
	SCREEN *terminal = newterm(NULL, stdout, stdin);

	if (terminal == NULL)
		return NULL;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
		init_pair(2, COLOR_YELLOW, -1);
	}
	return terminal;
}

/* False: that was the last one. */
static bool on_key(struct screen *screen, int key)
{
	switch (key) {
	case 'q': case 'Q':
		return false;
	case '>': case KEY_RIGHT:
		screen_sort(screen, 1);
		break;
	case '<': case KEY_LEFT:
		screen_sort(screen, -1);
		break;
	case 'r':
		screen->is_reversed = !screen->is_reversed;
		break;
	case 'f':
		screen->is_as_configured = true;
		break;
	case KEY_DOWN: case 'j':
		screen_scroll(screen, 1);
		break;
	case KEY_UP: case 'k':
		screen_scroll(screen, -1);
		break;
	case KEY_NPAGE: case ' ':
		screen_scroll(screen, (long)screen->rows);
		break;
	case KEY_PPAGE:
		screen_scroll(screen, -(long)screen->rows);
		break;
	default:
		break;
	}
	return true;
}

/* Keys, a new size too, are drawn at once.  False: the last key. */
static bool serve_keys_until(struct screen *screen, uint64_t until_ns)
{
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		int key;

		if (now_ns >= until_ns)
			return true;
		timeout((int)((until_ns - now_ns) / 1000000) + 1);
		key = getch();
		if (key == ERR)
			continue;
		if (!on_key(screen, key))
			return false;
		screen_draw(screen);
	}
}

/* A host that ended may come again. */
static void ask_again(const char *file, struct screen *screen, struct err *err)
{
	struct json_object *host = members_ask(file, err);

	screen->trouble = host == NULL ? err->text : NULL;
	if (host == NULL)
		return;
	json_object_put(screen->host);
	screen->host = host;
}

static void watch_host(const char *file, struct screen *screen)
{
	struct err err;

	do {
		screen_draw(screen);
		if (!serve_keys_until(screen, clock_monotonic_ns() + (uint64_t)EVERY_MS * 1000000))
			return;
		ask_again(file, screen, &err);
	} while (true);
}

int cli_top(int argc, char **argv)
{
	struct screen screen = { .is_as_configured = true };
	const char *file = config_default_file();
	SCREEN *terminal;
	struct err err;
	int option;

	while ((option = getopt_long(argc, argv, "c:", options, NULL)) != -1) {
		if (option != 'c')
			return cli_usage("top", CLI_TOP_USAGE);
		file = optarg;
	}
	if (optind != argc)
		return cli_usage("top", CLI_TOP_USAGE);
	setlocale(LC_ALL, "");
	if (check_terminal(&err) < 0 || (screen.host = members_ask(file, &err)) == NULL) {
		fprintf(stderr, "fcgi-host top: %s\n", err.text);
		return EXIT_MISTAKE;
	}
	terminal = open_terminal();
	if (terminal == NULL) {
		fprintf(stderr, "fcgi-host top: the terminal cannot be used\n");
		json_object_put(screen.host);
		return EXIT_MISTAKE;
	}
	/* What was to be said on it has been; from here on it would spoil the screen. */
	if (freopen("/dev/null", "w", stderr) == NULL)
		fclose(stderr);
	watch_host(file, &screen);
	endwin();
	delscreen(terminal);
	json_object_put(screen.host);
	return EXIT_FINE;
}
