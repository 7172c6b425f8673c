/*
 * printer.c - a thin layer over libyaml's emitter.
 */
#include "config/printer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct printer {
	yaml_emitter_t emitter;
	const struct config *config;
	FILE *out;
	bool has_failed;
	struct slice group;     /* the open one; empty for none */
};

static int write_out(void *ctx, unsigned char *data, size_t len)
{
	struct printer *printer = ctx;

	return fwrite(data, 1, len, printer->out) == len;
}

/* The emitter takes the event over, also when it fails. */
static void emit(struct printer *printer, yaml_event_t *event, int is_made)
{
	if (!is_made || !yaml_emitter_emit(&printer->emitter, event))
		printer->has_failed = true;
}

struct printer *printer_new(const struct config *config, FILE *out)
{
	struct printer *printer = calloc(1, sizeof(*printer));
	yaml_event_t event;

	if (printer == NULL)
		return NULL;
	if (!yaml_emitter_initialize(&printer->emitter)) {
		free(printer);
		return NULL;
	}
	printer->config = config;
	printer->out = out;
	yaml_emitter_set_output(&printer->emitter, write_out, printer);
	yaml_emitter_set_width(&printer->emitter, -1);
	yaml_emitter_set_unicode(&printer->emitter, 1);
	emit(printer, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
	emit(printer, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
	return printer;
}

int printer_end(struct printer **printer)
{
	struct printer *p = *printer;
	yaml_event_t event;

	*printer = NULL;
	emit(p, &event, yaml_document_end_event_initialize(&event, 1));
	emit(p, &event, yaml_stream_end_event_initialize(&event));
	int rc = p->has_failed || fflush(p->out) != 0 ? -1 : 0;
	yaml_emitter_delete(&p->emitter);
	free(p);
	return rc;
}

const struct config *printer_config(const struct printer *printer)
{
	return printer->config;
}

static void put_scalar(struct printer *printer, const char *text, yaml_scalar_style_t style)
{
	yaml_event_t event;

	emit(printer, &event, yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1, 1,
		style));
}

/* Would some YAML reader take the plain text for a number, a truth or nothing? */
static bool is_ambiguous(const char *text)
{
	static const char *const words[] = { "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", NULL };

	for (const char *const *word = words; *word != NULL; word++)
		if (slice_is_nocase(slice_of(text), *word))
			return true;
	return strchr("+-.<=", text[0]) != NULL || isdigit((unsigned char)text[0]);
}

void printer_text(struct printer *printer, const char *text)
{
	put_scalar(printer, text, is_ambiguous(text) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE);
}

void printer_number(struct printer *printer, const char *text)
{
	put_scalar(printer, text, YAML_PLAIN_SCALAR_STYLE);
}

void printer_map_begin(struct printer *printer, bool is_flow)
{
	yaml_event_t event;
	yaml_mapping_style_t style = is_flow ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE;

	emit(printer, &event, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, style));
}

void printer_map_end(struct printer *printer)
{
	yaml_event_t event;

	emit(printer, &event, yaml_mapping_end_event_initialize(&event));
}

void printer_list_begin(struct printer *printer, bool is_flow)
{
	yaml_event_t event;
	yaml_sequence_style_t style = is_flow ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE;

	emit(printer, &event, yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style));
}

void printer_list_end(struct printer *printer)
{
	yaml_event_t event;

	emit(printer, &event, yaml_sequence_end_event_initialize(&event));
}

static bool is_same(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

void printer_key(struct printer *printer, struct slice group, const char *leaf)
{
	if (!is_same(group, printer->group)) {
		printer_keys_end(printer);
		if (group.len > 0) {
			char name[64];
			snprintf(name, sizeof(name), "%.*s", (int)group.len, group.ptr);
			printer_text(printer, name);
			printer_map_begin(printer, true);
		}
		printer->group = group;
	}
	printer_text(printer, leaf);
}

void printer_keys_end(struct printer *printer)
{
	if (printer->group.len > 0)
		printer_map_end(printer);
	printer->group = (struct slice){ 0 };
}
