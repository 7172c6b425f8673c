#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config_fixture.h"

static char folder[64];
static char source[4096];

int config_fixture_begin(void **state)
{
	const char *srcdir = getenv("srcdir");

	(void)state;
	if (realpath(srcdir == NULL ? "." : srcdir, source) == NULL)
		return -1;
	snprintf(folder, sizeof(folder), "/tmp/fcgi-host-test-XXXXXX");
	return mkdtemp(folder) == NULL ? -1 : chdir(folder);
}

int config_fixture_end(void **state)
{
	(void)state;
	unlink("t.yaml");
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

void config_fixture_write(const char *yaml)
{
	FILE *file = fopen("t.yaml", "w");

	assert_non_null(file);
	fputs(yaml, file);
	fclose(file);
	assert_int_equal(chmod("t.yaml", 0644), 0);
}

void config_fixture_load(struct loaded *loaded, const char *yaml)
{
	config_fixture_write(yaml);
	config_report_init(&loaded->report);
	loaded->config = config_load("t.yaml", &loaded->report);
	assert_int_equal(bytes_append(&loaded->report.errors, "", 1), 0);
	assert_int_equal(bytes_append(&loaded->report.warnings, "", 1), 0);
}

void config_fixture_free(struct loaded *loaded)
{
	config_free(&loaded->config);
	config_report_fini(&loaded->report);
}

const char *loaded_errors(struct loaded *loaded)
{
	return (const char *)bytes_data(&loaded->report.errors);
}

const char *loaded_warnings(struct loaded *loaded)
{
	return (const char *)bytes_data(&loaded->report.warnings);
}

char *source_file(const char *path)
{
	char name[5000];
	char *text = calloc(1, 1 << 18);
	snprintf(name, sizeof(name), "%s/%s", source, path);
	FILE *file = fopen(name, "r");

	assert_non_null(text);
	assert_non_null(file);
	assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
	fclose(file);
	return text;
}
