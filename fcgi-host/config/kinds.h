/*
 * kinds.h - the kinds of values that a key can have: how each is read from the
 * file, printed and given back.  A row of the table (keys.h) names one.
 */
#ifndef FCGI_HOST_CONFIG_KINDS_H
#define FCGI_HOST_CONFIG_KINDS_H

#include "config/printer.h"
#include "config/reader.h"

struct key_kind {
	const char *name;       /* as the manual says it */

	/* Reads the site's node into the field, which is all zero before (with
	 * `is_merged`: may hold what `defaults` say).  0, or -1 after complaining. */
	int (*read)(const struct site *site, void *field);

	/* Prints the key (key_print()) and the value; nothing where it is
	 * unset. */
	void (*print)(struct printer *printer, const struct key *key, const void *field);

	void (*fini)(void *field);      /* NULL: there is nothing to give back */
	bool is_merged;                 /* a handler's own adds to what `defaults` say */
};

/* Field types are in brackets. */
extern const struct key_kind kind_group;        /* keys of the form "group.key" [none] */
extern const struct key_kind kind_bool;         /* [bool] */
extern const struct key_kind kind_count;        /* words stand for numbers [unsigned] */
extern const struct key_kind kind_size;         /* [uint64_t, bytes] */
extern const struct key_kind kind_time;         /* [uint64_t, milliseconds] */
extern const struct key_kind kind_percent;      /* [unsigned] */
extern const struct key_kind kind_word;         /* [an enum; -1 when not read] */
extern const struct key_kind kind_path;         /* or one of the words [char *] */
extern const struct key_kind kind_media_type;   /* [char *] */
extern const struct key_kind kind_list;         /* [char **, NULL-terminated] */
extern const struct key_kind kind_command;      /* [char **, NULL-terminated] */
extern const struct key_kind kind_env;          /* [env of a struct handler_config] */
extern const struct key_kind kind_address;      /* [struct address] */
extern const struct key_kind kind_prefixes;     /* [struct prefixes] */
extern const struct key_kind kind_mode;         /* [unsigned] */
extern const struct key_kind kind_owner;        /* [uid_t; -1 when unset] */
extern const struct key_kind kind_owner_group;  /* [gid_t; -1 when unset] */
extern const struct key_kind kind_user;         /* [struct identity] */
extern const struct key_kind kind_user_group;   /* [struct identity] */
extern const struct key_kind kind_route_path;   /* [char *] */
extern const struct key_kind kind_host;         /* [char *] */
extern const struct key_kind kind_methods;      /* [char **, NULL-terminated] */
extern const struct key_kind kind_handler;      /* [handler of a struct route_config: an index] */
extern const struct key_kind kind_listeners;    /* [listen of a struct config] */
extern const struct key_kind kind_defaults;     /* [none] */
extern const struct key_kind kind_handlers;     /* [handlers of a struct config] */
extern const struct key_kind kind_routes;       /* [routes of a struct config] */

/* For messages and the printed form: "64MiB", "10s". */
enum { QUANTITY_TEXT_BYTES = 32 };
void size_to_text(uint64_t bytes, char out[QUANTITY_TEXT_BYTES]);
void time_to_text(uint64_t ms, char out[QUANTITY_TEXT_BYTES]);

/* Used by other kinds.  A text. */
void text_print(struct printer *printer, const struct key *key, const void *field);
void text_fini(void *field);
/* A list of texts, or one text alone. */
int texts_read(const struct site *site, char ***out);
void texts_print(struct printer *printer, const struct key *key, const void *field);
void texts_fini(void *field);

#endif
