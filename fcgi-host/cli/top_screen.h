/*
 * top_screen.h - what `fcgi-host top` shows, on a terminal that ncurses drives.
 * Knows nothing of where the figures come from.
 */
#ifndef FCGI_HOST_CLI_TOP_SCREEN_H
#define FCGI_HOST_CLI_TOP_SCREEN_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

struct screen {
	struct json_object *host;       /* the last status; borrowed */
	const char *trouble;            /* why there is none newer; NULL when there is */
	size_t sort;                    /* the column that rows are sorted by; 0: by name */
	bool is_as_configured;          /* not sorted */
	bool is_reversed;
	size_t first;                   /* the first row shown */
	size_t rows;                    /* that were shown */
	int name_width;                 /* of the longest name, in columns */
};

/* The next column to sort by, `step` to the right. */
void screen_sort(struct screen *screen, int step);
void screen_scroll(struct screen *screen, long rows);

void screen_draw(struct screen *screen);

#endif
