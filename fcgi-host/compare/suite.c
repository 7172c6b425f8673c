/*
 * suite.c - the file of a suite and what stands at its top.
 */
#include "compare/suite_private.h"

#include "config/file.h"

#include <ctype.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct word suite_via_words[] = { { "none", VIA_NONE }, { "nginx", VIA_NGINX }, { "apache", VIA_APACHE }, { NULL, 0 } };

static int name_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	for (const char *c = text; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && *c != '-')
			return site_error(site, "'%s' is no name of a suite: it is made of letters, digits and '-'", text);
	return kind_suite_line.read(site, field);
}
static const struct key_kind kind_name = { .name = "name", .read = name_read };

static const struct key published_rows[] = {
	{ .name = "note", .kind = &kind_suite_line, .offset = offsetof(struct plan, published_note) },
};

static int published_read(const struct site *site, void *plan)
{
	static const struct suite_keys known = SUITE_KEYS(published_rows);

	return suite_keys_read(site, &known, plan);
}
static const struct key_kind kind_published = { .name = "map", .read = published_read };

#define PLAN(field) .offset = offsetof(struct plan, field)

static const struct key rows[] = {
	{ PLAN(suite), .name = "suite", .kind = &kind_name, .is_needed = true },
	{ PLAN(title), .name = "title", .kind = &kind_suite_line, .is_needed = true },
	{ PLAN(question), .name = "question", .kind = &kind_suite_line, .is_needed = true },
	{ .name = "published", .kind = &kind_published },
	{ PLAN(setup), .name = "setup", .kind = &kind_command },
	{ .name = "defaults", .kind = &kind_defaults },
	{ PLAN(load), .name = "load", .kind = &kind_suite_load, .is_needed = true },
	{ .name = "groups", .kind = &kind_suite_groups, .is_needed = true },
};

/* Nothing can be wrong with them. */
static void read_defaults(struct suite_reader *suite_reader)
{
	struct node nothing = { .kind = NODE_MAP };
	struct scope_source source = { &nothing, NULL };

	scope_read(&suite_reader->reader, SCOPE_TOP, &source, NULL, suite_reader->suite->top);
}

static void read_root(struct suite_reader *suite_reader, const struct node *root)
{
	static const struct suite_keys known = SUITE_KEYS(rows);
	struct site site = { &suite_reader->reader, NULL, NULL, root };

	suite_keys_read(&site, &known, suite_reader->plan);
}

static char *absolute_path(const char *file)
{
	char *here = getcwd(NULL, 0);
	char *path = here == NULL ? NULL : path_resolve(here, file);

	free(here);
	return path;
}

static void read_suite(struct suite_reader *suite_reader, const char *file)
{
	struct complaints *complaints = suite_reader->reader.complaints;
	struct node root = { .kind = NODE_BROKEN };
	char *text = NULL;
	size_t len = 0;

	if (file_read(file, complaints, &text, &len) == 0 && tree_read(text, len, complaints, &root) == 0) {
		read_defaults(suite_reader);
		read_root(suite_reader, &root);
	}
	node_fini(&root);
	free(text);
}

struct suite *suite_load(const char *file, struct plan *plan, struct config_report *report)
{
	struct suite *suite = calloc(1, sizeof(*suite));
	struct complaints complaints;
	struct suite_reader suite_reader = { .reader = { .complaints = &complaints, .is_for_root = report->is_for_root },
		.suite = suite, .plan = plan };
	char *path = absolute_path(file);

	complaints_init(&complaints, file);
	if (suite == NULL || path == NULL || (suite->top = calloc(1, sizeof(*suite->top))) == NULL) {
		complaints.is_out_of_memory = true;
	} else {
		suite_reader.reader.config = suite->top;
		suite_reader.reader.folder = dirname(path);
		read_suite(&suite_reader, file);
	}
	if (complaints_has_errors(&complaints))
		suite_free(&suite);
	complaints_write(&complaints, report);
	complaints_fini(&complaints);
	free(path);
	return suite;
}

void suite_free(struct suite **suite)
{
	struct suite *s = *suite;
	struct suite_handler *next;

	*suite = NULL;
	if (s == NULL)
		return;
	for (struct suite_handler *handler = s->handlers; handler != NULL; handler = next) {
		next = handler->next;
		scope_fini(SCOPE_HANDLER, &handler->config);
		free(handler->config.name);
		free(handler);
	}
	config_free(&s->top);
	free(s);
}
