/*
 * user.c - GET /users/id/{id} is answered with a user from a PostgreSQL
 * database.
 *
 * PGHOST, PGDATABASE and so on say where the database is.  A worker keeps its
 * connection, unless DATABASE_CONNECTION=per-request says that it connects anew
 * for every request.
 *
 * On its own: cc -I$(pg_config --includedir) -o user user.c -lfcgi -lpq -ljson-c
 */
#include <fcgi_stdio.h>

#include <json-c/json.h>
#include <libpq-fe.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void
fail(const char *status, const char *why)
{
	printf("Status: %s\nContent-Type: text/plain\n\n%s\n", status, why);
}

/* A connection that is ready: `kept` if that still is one.  NULL on failure. */
static PGconn *
connect_to_database(PGconn *kept)
{
	if (kept != NULL && PQstatus(kept) == CONNECTION_OK)
		return kept;
	PQfinish(kept);
	kept = PQconnectdb("");         /* the environment says where */
	if (PQstatus(kept) == CONNECTION_OK)
		return kept;
	fprintf(stderr, "%s", PQerrorMessage(kept));
	PQfinish(kept);
	return NULL;
}

static void
answer_with_user(const PGresult *row)
{
	struct json_object *user = json_object_new_object();

	json_object_object_add(user, "id", json_object_new_int(atoi(PQgetvalue(row, 0, 0))));
	json_object_object_add(user, "name", json_object_new_string(PQgetvalue(row, 0, 1)));
	json_object_object_add(user, "email", json_object_new_string(PQgetvalue(row, 0, 2)));
	printf("Content-Type: application/json\n\n%s\n",
		json_object_to_json_string_ext(user, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(user);
}

static void
look_up(PGconn *database, const char *id)
{
	PGresult *result = PQexecParams(database, "SELECT id, name, email FROM users WHERE id = $1",
		1, NULL, &id, NULL, NULL, 0);

	if (PQresultStatus(result) != PGRES_TUPLES_OK) {
		fprintf(stderr, "%s", PQerrorMessage(database));
		fail("503 Service Unavailable", "the database does not answer");
	} else if (PQntuples(result) == 0) {
		fail("404 Not Found", "no such user");
	} else {
		answer_with_user(result);
	}
	PQclear(result);
}

static bool
is_id(const char *text)
{
	char *end;
	long id = strtol(text, &end, 10);

	return end != text && *end == '\0' && id >= INT_MIN && id <= INT_MAX;
}

int
main(void)
{
	const char *connection = getenv("DATABASE_CONNECTION");
	bool is_kept = connection == NULL || strcmp(connection, "per-request") != 0;
	PGconn *database = NULL;

	while (FCGI_Accept() >= 0) {
		const char *id = getenv("PARAM_ID");

		if (id == NULL || !is_id(id)) {
			fail("400 Bad Request", "the id is no number");
			continue;
		}
		database = connect_to_database(database);
		if (database == NULL) {
			fail("503 Service Unavailable", "the database does not answer");
			continue;
		}
		look_up(database, id);
		if (!is_kept) {
			PQfinish(database);
			database = NULL;
		}
	}
	PQfinish(database);
	return 0;
}
