/*
 * tree.c - builds the tree from libyaml's events, since its own documents lose
 * what was quoted and resolve aliases.
 */
#include "config/tree.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 32, MEMBERS_FEW = 16 };

struct builder {
	yaml_parser_t parser;
	const char *text;
	size_t len;
	struct complaints *complaints;
};

static struct mark mark_of(yaml_mark_t mark)
{
	return (struct mark){ .line = (unsigned)mark.line + 1, .column = (unsigned)mark.column + 1 };
}

static int no_memory(struct builder *b)
{
	b->complaints->is_out_of_memory = true;
	return -1;
}

void node_fini(struct node *node)
{
	for (size_t i = 0; i < node->items_count; i++)
		node_fini(&node->items[i]);
	free(node->items);
	free(node->text);
	*node = (struct node){ .kind = NODE_BROKEN };
}

/* libyaml's own marks are empty for bytes that are no text at all. */
static struct mark mark_at_offset(const struct builder *b, size_t offset)
{
	struct mark mark = { 1, 1 };

	for (size_t i = 0; i < offset && i < b->len; i++) {
		mark.column++;
		if (b->text[i] == '\n')
			mark = (struct mark){ .line = mark.line + 1, .column = 1 };
	}
	return mark;
}

static bool is_tab_in_indent(const struct builder *b, unsigned line)
{
	const char *c = b->text, *end = b->text + b->len;

	for (unsigned at = 1; at < line && c < end; c++)
		if (*c == '\n')
			at++;
	while (c < end && *c == ' ')
		c++;
	return c < end && *c == '\t';
}

static int complain_syntax(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;

	if (p->error == YAML_MEMORY_ERROR)
		return no_memory(b);
	if (p->error == YAML_READER_ERROR) {
		complain(b->complaints, COMPLAINT_ERROR, mark_at_offset(b, p->problem_offset), NULL, "this is no YAML: %s",
			p->problem);
		return -1;
	}
	struct mark mark = mark_of(p->problem_mark);
	const char *hint = is_tab_in_indent(b, mark.line) ? " (indent with spaces, not with tabs)" : "";
	if (p->context != NULL)
		complain(b->complaints, COMPLAINT_ERROR, mark, NULL, "this is no YAML: %s %s from line %u on%s", p->problem,
			p->context, (unsigned)p->context_mark.line + 1, hint);
	else
		complain(b->complaints, COMPLAINT_ERROR, mark, NULL, "this is no YAML: %s%s", p->problem, hint);
	return -1;
}

static int next_event(struct builder *b, yaml_event_t *event)
{
	return yaml_parser_parse(&b->parser, event) ? 0 : complain_syntax(b);
}

static struct node *add_item(struct builder *b, struct node *node)
{
	if (node->items_count == node->items_cap) {
		size_t cap = node->items_cap == 0 ? 4 : node->items_cap * 2;
		struct node *items = realloc(node->items, cap * sizeof(*items));
		if (items == NULL) {
			no_memory(b);
			return NULL;
		}
		node->items = items;
		node->items_cap = cap;
	}
	struct node *item = &node->items[node->items_count++];
	*item = (struct node){ .kind = NODE_BROKEN };
	return item;
}

static void refuse_anchor_and_tag(struct builder *b, struct mark mark, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor != NULL)
		complain(b->complaints, COMPLAINT_ERROR, mark, NULL,
			"anchors ('&%s') are not supported: put what handlers share in 'defaults'", (const char *)anchor);
	if (tag != NULL)
		complain(b->complaints, COMPLAINT_ERROR, mark, NULL, "tags ('%s') are not supported", (const char *)tag);
}

static int build_scalar(struct builder *b, const yaml_event_t *event, struct node *out)
{
	const char *value = (const char *)event->data.scalar.value;

	refuse_anchor_and_tag(b, out->mark, event->data.scalar.anchor, event->data.scalar.tag);
	if (strlen(value) != event->data.scalar.length) {
		complain(b->complaints, COMPLAINT_ERROR, out->mark, NULL, "a NUL byte cannot be part of a value");
		return 0;
	}
	out->text = strdup(value);
	if (out->text == NULL)
		return no_memory(b);
	out->kind = NODE_SCALAR;
	out->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	return 0;
}

static int build(struct builder *b, yaml_event_t *event, unsigned depth, struct node *out);

/* Until the end event, which is the caller's no more. */
static int build_items(struct builder *b, yaml_event_type_t end, unsigned depth, struct node *out)
{
	for (;;) {
		yaml_event_t event;
		if (next_event(b, &event) != 0)
			return -1;
		if (event.type == end) {
			yaml_event_delete(&event);
			return 0;
		}
		struct node *item = add_item(b, out);
		int rc = item == NULL ? -1 : build(b, &event, depth + 1, item);
		yaml_event_delete(&event);
		if (rc != 0)
			return -1;
	}
}

static int compare_keys(const void *left, const void *right)
{
	const struct node *const *a = left, *const *b = right;
	int order = strcmp((*a)->text, (*b)->text);

	if (order != 0)
		return order;
	return *a < *b ? -1 : *a > *b;
}

static void complain_twice(struct builder *b, const struct node *again, const struct node *first)
{
	complain(b->complaints, COMPLAINT_ERROR, again->mark, NULL, "the key '%s' is here twice: first in line %u", again->text,
		first->mark.line);
}

static int check_many_keys(struct builder *b, const struct node *map)
{
	const struct node **keys = malloc(map->items_count / 2 * sizeof(struct node *));
	size_t count = 0;

	if (keys == NULL)
		return no_memory(b);
	for (size_t i = 0; i < map->items_count; i += 2)
		if (map->items[i].kind == NODE_SCALAR)
			keys[count++] = &map->items[i];
	qsort(keys, count, sizeof(struct node *), compare_keys);
	for (size_t i = 1; i < count; i++)
		if (strcmp(keys[i]->text, keys[i - 1]->text) == 0)
			complain_twice(b, keys[i], keys[i - 1]);
	free(keys);
	return 0;
}

static int check_keys_differ(struct builder *b, const struct node *map)
{
	if (map->items_count > MEMBERS_FEW * 2)
		return check_many_keys(b, map);
	for (size_t i = 2; i < map->items_count; i += 2) {
		const struct node *key = &map->items[i];
		const struct node *first = key->kind == NODE_SCALAR ? node_get_key(map, slice_of(key->text)) : key;
		if (first != key)
			complain_twice(b, key, first);
	}
	return 0;
}

/* A member without a usable key is kept as a broken one. */
static void check_key_shapes(struct builder *b, struct node *map)
{
	for (size_t i = 0; i < map->items_count; i += 2) {
		struct node *key = &map->items[i];
		if (key->kind == NODE_SCALAR && strcmp(key->text, "<<") == 0)
			complain(b->complaints, COMPLAINT_ERROR, key->mark, NULL,
				"merge keys ('<<') are not supported: put what handlers share in 'defaults'");
		else if (key->kind == NODE_LIST || key->kind == NODE_MAP)
			complain(b->complaints, COMPLAINT_ERROR, key->mark, NULL, "a key must be a plain word");
		else
			continue;
		struct mark mark = key->mark;
		node_fini(key);
		key->mark = mark;
	}
}

static int build_map(struct builder *b, const yaml_event_t *event, unsigned depth, struct node *out)
{
	refuse_anchor_and_tag(b, out->mark, event->data.mapping_start.anchor, event->data.mapping_start.tag);
	out->kind = NODE_MAP;
	if (build_items(b, YAML_MAPPING_END_EVENT, depth, out) != 0)
		return -1;
	check_key_shapes(b, out);
	return check_keys_differ(b, out);
}

static int build(struct builder *b, yaml_event_t *event, unsigned depth, struct node *out)
{
	out->mark = mark_of(event->start_mark);
	if (depth > DEPTH_MAX) {
		complain(b->complaints, COMPLAINT_ERROR, out->mark, NULL, "nested more than %d levels deep", DEPTH_MAX);
		return -1;
	}
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return build_scalar(b, event, out);
	case YAML_SEQUENCE_START_EVENT:
		refuse_anchor_and_tag(b, out->mark, event->data.sequence_start.anchor, event->data.sequence_start.tag);
		out->kind = NODE_LIST;
		return build_items(b, YAML_SEQUENCE_END_EVENT, depth, out);
	case YAML_MAPPING_START_EVENT:
		return build_map(b, event, depth, out);
	case YAML_ALIAS_EVENT:
		complain(b->complaints, COMPLAINT_ERROR, out->mark, NULL,
			"aliases ('*%s') are not supported: put what handlers share in 'defaults' (or quote the text)",
			(const char *)event->data.alias.anchor);
		return 0;
	default:
		complain(b->complaints, COMPLAINT_ERROR, out->mark, NULL, "this is no YAML: unexpected event");
		return -1;
	}
}

/* One event outside of the document's content.  1: go on, 0: the end. */
static int build_stream(struct builder *b, yaml_event_t *event, unsigned *documents, struct node *root)
{
	switch (event->type) {
	case YAML_STREAM_END_EVENT:
		return 0;
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 1;
	case YAML_DOCUMENT_START_EVENT:
		if (++*documents == 1)
			return 1;
		complain(b->complaints, COMPLAINT_ERROR, mark_of(event->start_mark), NULL,
			"a second document begins here: a configuration is one document");
		return 0;
	default:
		return build(b, event, 0, root) == 0 ? 1 : -1;
	}
}

int tree_read(const char *text, size_t len, struct complaints *complaints, struct node *root_out)
{
	struct builder b = { .text = text, .len = len, .complaints = complaints };
	unsigned documents = 0;
	int rc = 1;

	*root_out = (struct node){ .kind = NODE_BROKEN };
	if (!yaml_parser_initialize(&b.parser))
		return no_memory(&b);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, len);
	while (rc == 1) {
		yaml_event_t event;
		if (next_event(&b, &event) != 0) {
			rc = -1;
			break;
		}
		rc = build_stream(&b, &event, &documents, root_out);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&b.parser);
	if (rc == 0 && documents == 0) {
		complain(complaints, COMPLAINT_ERROR, (struct mark){ 1, 1 }, NULL, "the file is empty");
		rc = -1;
	}
	if (rc != 0)
		node_fini(root_out);
	return rc;
}

const struct node *node_get_key(const struct node *map, struct slice name)
{
	if (map == NULL || map->kind != NODE_MAP)
		return NULL;
	for (size_t i = 0; i + 1 < map->items_count; i += 2) {
		const struct node *key = &map->items[i];
		if (key->kind == NODE_SCALAR && slice_is(name, key->text))
			return key;
	}
	return NULL;
}

const struct node *node_get(const struct node *map, struct slice name)
{
	const struct node *key = node_get_key(map, name);

	return key == NULL ? NULL : key + 1;
}

bool node_is_null(const struct node *node)
{
	if (node->kind != NODE_SCALAR || !node->is_plain)
		return false;
	return node->text[0] == '\0' || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0;
}
