/*
 * load.c - from the file to the configuration, and back to text.
 */
#include "config/file.h"
#include "config/keys.h"
#include "config/rules.h"

#include <libgen.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *config_default_file(void)
{
	return SYSCONFDIR "/fcgi-host/fcgi-host.yaml";
}

static char *absolute_path(const char *file)
{
	char *here = file[0] == '/' ? NULL : getcwd(NULL, 0);
	char *path = path_resolve(here != NULL ? here : "/", file);

	free(here);
	return path;
}

static void read_root(struct reader *reader, const struct node *root)
{
	struct scope_source source = { root, NULL };

	scope_read(reader, SCOPE_TOP, &source, NULL, reader->config);
	rules_whole(reader, root);
	free(reader->names);
}

/* FNV-1a: tells an edit from none; nobody who may write the file is an enemy. */
static uint64_t digest_of(const char *text, size_t len)
{
	uint64_t digest = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		digest = (digest ^ (unsigned char)text[i]) * 0x100000001b3u;
	return digest;
}

static int read_config(const char *file, bool is_for_root, struct complaints *complaints, struct config *config)
{
	struct node root;
	char *text = NULL;
	size_t len = 0;

	if (file_read(file, complaints, &text, &len) != 0)
		return -1;
	uint64_t digest = digest_of(text, len);
	int rc = tree_read(text, len, complaints, &root);
	free(text);
	if (rc != 0)
		return -1;
	config->file = absolute_path(file);
	config->digest = digest;
	char *folder = config->file == NULL ? NULL : strdup(config->file);
	if (folder == NULL)
		complaints->is_out_of_memory = true;
	else
		read_root(&(struct reader){ .complaints = complaints, .config = config, .folder = dirname(folder), .is_for_root = is_for_root }, &root);
	free(folder);
	node_fini(&root);
	return complaints_has_errors(complaints) ? -1 : 0;
}

struct config *config_load(const char *file, struct config_report *report)
{
	struct config *config = calloc(1, sizeof(*config));
	struct complaints complaints;

	complaints_init(&complaints, file);
	if (config == NULL)
		complaints.is_out_of_memory = true;
	else if (read_config(file, report->is_for_root, &complaints, config) != 0)
		config_free(&config);
	complaints_write(&complaints, report);
	complaints_fini(&complaints);
	malloc_trim(0);         /* the tree was several times larger than what it said */
	return config;
}

void config_free(struct config **config)
{
	struct config *c = *config;

	*config = NULL;
	if (c == NULL)
		return;
	scope_fini(SCOPE_TOP, c);
	free(c->file);
	free(c);
}

/* As it would be printed, on the heap; NULL without memory. */
static char *handler_text(const struct config *config, unsigned number)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct printer *printer = out == NULL ? NULL : printer_new(config, out);

	if (printer != NULL) {
		printer_map_begin(printer, false);
		scope_print(printer, SCOPE_HANDLER, &config->handlers[number]);
		printer_map_end(printer);
		printer_end(&printer);
	}
	if (out != NULL)
		fclose(out);
	return text;
}

bool config_handler_is_same(const struct config *a, unsigned a_number, const struct config *b, unsigned b_number)
{
	char *a_text = handler_text(a, a_number);
	char *b_text = handler_text(b, b_number);
	bool is_same = a_text != NULL && b_text != NULL && strcmp(a_text, b_text) == 0;

	free(a_text);
	free(b_text);
	return is_same;
}

void config_print(const struct config *config, FILE *out)
{
	struct printer *printer = printer_new(config, out);

	if (printer == NULL)
		return;
	printer_map_begin(printer, false);
	scope_print(printer, SCOPE_TOP, config);
	printer_map_end(printer);
	printer_end(&printer);
}
