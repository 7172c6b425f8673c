/* The JSON of the status, member by member. */
#include "cli/members.h"

#include "base/bytes.h"
#include "base/err.h"
#include "cli/cli.h"

#include <stdio.h>

struct json_object *members_ask(const char *file, struct err *err)
{
	struct json_object *host = NULL;
	struct bytes answer;

	bytes_init(&answer, STATUS_MAX_BYTES + 1);
	if (cli_ask(file, "status\n", &answer, err) < 0) {
		bytes_fini(&answer);
		return NULL;
	}
	if (bytes_data(&answer)[0] != '{' || bytes_append(&answer, "", 1) < 0)
		err_set(err, "the host answers: %.*s", (int)answer.len, (const char *)bytes_data(&answer));
	else if ((host = json_tokener_parse((const char *)bytes_data(&answer))) == NULL)
		err_set(err, "the answer of the host is no JSON");
	bytes_fini(&answer);
	return host;
}

struct json_object *member(struct json_object *of, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(of, name, &value);
	return value;
}

uint64_t member_number(struct json_object *of, const char *name)
{
	return (uint64_t)json_object_get_int64(member(of, name));
}

double member_double(struct json_object *of, const char *name)
{
	return json_object_get_double(member(of, name));
}

const char *member_text(struct json_object *of, const char *name)
{
	struct json_object *value = member(of, name);

	return value == NULL ? "-" : json_object_get_string(value);
}

size_t members_count(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

uint64_t members_failed(struct json_object *totals)
{
	static const char *const kinds[] = { "timeouts", "refused", "bad_gateway", "handler_errors", "broken", "client_gone" };
	uint64_t failed = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		failed += member_number(totals, kinds[i]);
	return failed;
}

const char *members_span(double ms, char out[MEMBER_TEXT_BYTES])
{
	unsigned long long s = (unsigned long long)(ms / 1000);

	if (ms < 1000)
		snprintf(out, MEMBER_TEXT_BYTES, ms < 10 ? "%.2fms" : "%.0fms", ms);
	else if (s < 60)
		snprintf(out, MEMBER_TEXT_BYTES, "%.1fs", ms / 1000);
	else if (s < 3600)
		snprintf(out, MEMBER_TEXT_BYTES, "%llum%02llus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(out, MEMBER_TEXT_BYTES, "%lluh%02llum", s / 3600, s / 60 % 60);
	else
		snprintf(out, MEMBER_TEXT_BYTES, "%llud%02lluh", s / 86400, s / 3600 % 24);
	return out;
}

const char *member_span(struct json_object *of, const char *name, char out[MEMBER_TEXT_BYTES])
{
	struct json_object *value = member(of, name);

	if (value != NULL)
		return members_span(json_object_get_double(value), out);
	snprintf(out, MEMBER_TEXT_BYTES, "-");
	return out;
}

const char *member_memory(struct json_object *of, const char *name, char out[MEMBER_TEXT_BYTES])
{
	struct json_object *value = member(of, name);

	if (value == NULL)
		snprintf(out, MEMBER_TEXT_BYTES, "-");
	else
		snprintf(out, MEMBER_TEXT_BYTES, "%.1fMiB", json_object_get_double(value) / 1024);
	return out;
}
