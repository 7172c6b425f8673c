/*
 * printer.h - writes YAML that the tree reads back to the same texts.
 */
#ifndef FCGI_HOST_CONFIG_PRINTER_H
#define FCGI_HOST_CONFIG_PRINTER_H

#include "config/config.h"

struct printer;         /* opaque, see printer.c */

/* NULL without memory.  `config` is borrowed. */
struct printer *printer_new(const struct config *config, FILE *out);
/* Ends the document.  0, or -1 when something could not be written. */
int printer_end(struct printer **printer);

const struct config *printer_config(const struct printer *printer);

/* A text that could be taken for something else is quoted. */
void printer_text(struct printer *printer, const char *text);
void printer_number(struct printer *printer, const char *text);

/* The key of the next value, inside of a group of keys ("timeout") or with an
 * empty group outside of one.  Groups open and close as they change. */
void printer_key(struct printer *printer, struct slice group, const char *leaf);
/* Closes the group that is open, if one is: before the map of the keys ends. */
void printer_keys_end(struct printer *printer);

/* `is_flow`: in one line, with braces. */
void printer_map_begin(struct printer *printer, bool is_flow);
void printer_map_end(struct printer *printer);
void printer_list_begin(struct printer *printer, bool is_flow);
void printer_list_end(struct printer *printer);

#endif
