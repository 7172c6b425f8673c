/* The YAML tree: positions, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/tree.h"

struct read {
	struct complaints complaints;
	struct config_report report;
	struct node root;
	int rc;
};

static void read_bytes(struct read *read, const char *text, size_t len)
{
	complaints_init(&read->complaints, "f");
	config_report_init(&read->report);
	read->rc = tree_read(text, len, &read->complaints, &read->root);
	complaints_write(&read->complaints, &read->report);
	assert_int_equal(bytes_append(&read->report.errors, "", 1), 0);
}

static void read_text(struct read *read, const char *text)
{
	read_bytes(read, text, strlen(text));
}

static void done(struct read *read)
{
	node_fini(&read->root);
	complaints_fini(&read->complaints);
	config_report_fini(&read->report);
}

static void every_node_knows_where_it_stands(void **state)
{
	struct read read;

	(void)state;
	read_text(&read, "a: 1\nb:\n  - x\n  - {c: 'y'}\n");
	assert_int_equal(read.rc, 0);
	const struct node *list = node_get(&read.root, slice_of("b"));
	assert_int_equal(list->kind, NODE_LIST);
	assert_int_equal(list->items_count, 2);
	assert_int_equal(list->items[0].mark.line, 3);
	assert_int_equal(list->items[0].mark.column, 5);
	const struct node *c = node_get(&list->items[1], slice_of("c"));
	assert_string_equal(c->text, "y");
	assert_false(c->is_plain);
	assert_int_equal(c->mark.line, 4);
	assert_int_equal(c->mark.column, 9);
	assert_true(node_get(&read.root, slice_of("a"))->is_plain);
	assert_null(node_get(&read.root, slice_of("z")));
	assert_null(node_get(list, slice_of("z")));
	assert_null(node_get(NULL, slice_of("z")));
	done(&read);
}

static void refused(const char *text, const char *errors)
{
	struct read read;

	read_text(&read, text);
	assert_string_equal((char *)bytes_data(&read.report.errors), errors);
	done(&read);
}

static void what_has_a_plainer_way_is_refused(void **state)
{
	(void)state;
	refused("a: &x 1\nb: *x\n",
		"f:1:4: anchors ('&x') are not supported: put what handlers share in 'defaults'\n"
		"f:2:4: aliases ('*x') are not supported: put what handlers share in 'defaults' (or quote the text)\n");
	refused("a: {<<: {b: 1}}\n",
		"f:1:5: merge keys ('<<') are not supported: put what handlers share in 'defaults'\n");
	refused("a: !!int 1\n", "f:1:4: tags ('tag:yaml.org,2002:int') are not supported\n");
	refused("[a]: 1\n", "f:1:1: a key must be a plain word\n");
	refused("a: 1\n---\nb: 1\n", "f:2:1: a second document begins here: a configuration is one document\n");
}

static void a_key_that_is_there_twice_names_both_places(void **state)
{
	(void)state;
	refused("a: 1\nb: 2\na: 3\n", "f:3:1: the key 'a' is here twice: first in line 1\n");
	refused("a: 0\nb: 0\nc: 0\nd: 0\ne: 0\nf: 0\ng: 0\nh: 0\ni: 0\nj: 0\nk: 0\nl: 0\nm: 0\nn: 0\no: 0\np: 0\nq: 0\nr: 0\nc: 0\n",
		"f:19:1: the key 'c' is here twice: first in line 3\n");
}

static void what_is_no_yaml_is_said_with_its_place(void **state)
{
	struct read read;

	(void)state;
	read_text(&read, "a: [1\nb: 2\n");
	assert_int_equal(read.rc, -1);
	assert_memory_equal(bytes_data(&read.report.errors), "f:2:", 4);
	done(&read);
	read_text(&read, "a:\n\tb: 1\n");
	assert_int_equal(read.rc, -1);
	assert_non_null(strstr((char *)bytes_data(&read.report.errors), "f:2:1: "));
	assert_non_null(strstr((char *)bytes_data(&read.report.errors), "not with tabs"));
	done(&read);
	read_text(&read, "a: b\nc: \xff\n");
	assert_int_equal(read.rc, -1);
	assert_memory_equal(bytes_data(&read.report.errors), "f:2:4: this is no YAML", 22);
	done(&read);
	refused("", "f:1:1: the file is empty\n");
	refused("# only a comment\n", "f:1:1: the file is empty\n");
	refused("a: \"x\\0y\"\n", "f:1:4: a NUL byte cannot be part of a value\n");
}

static void any_beginning_of_a_file_is_read_or_refused(void **state)
{
	static const char text[] = "a: {b: [1, \"\\u00e9\", 'x']}\n? c\n: |\n  d\n--- !t &a *b\n";

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		struct read read;
		read_bytes(&read, text, len);
		assert_true(read.rc == 0 || read.report.errors_count > 0);
		done(&read);
	}
}

static void depth_is_bounded(void **state)
{
	char deep[4096];

	(void)state;
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	refused(deep, "f:1:34: nested more than 32 levels deep\n");
}

static void nothing_written_is_null(void **state)
{
	struct read read;

	(void)state;
	read_text(&read, "a:\nb: ~\nc: null\nd: ''\ne: 'null'\n");
	assert_int_equal(read.rc, 0);
	assert_true(node_is_null(node_get(&read.root, slice_of("a"))));
	assert_true(node_is_null(node_get(&read.root, slice_of("b"))));
	assert_true(node_is_null(node_get(&read.root, slice_of("c"))));
	assert_false(node_is_null(node_get(&read.root, slice_of("d"))));
	assert_false(node_is_null(node_get(&read.root, slice_of("e"))));
	done(&read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_node_knows_where_it_stands),
		cmocka_unit_test(what_has_a_plainer_way_is_refused),
		cmocka_unit_test(a_key_that_is_there_twice_names_both_places),
		cmocka_unit_test(what_is_no_yaml_is_said_with_its_place),
		cmocka_unit_test(any_beginning_of_a_file_is_read_or_refused),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(nothing_written_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
