/*
 * kinds_net.c - addresses, and users and groups.
 */
#include "config/address.h"
#include "config/keys.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

static int address_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	struct err err;

	if (text == NULL)
		return -1;
	char *absolute = NULL;
	if (strncmp(text, "unix:", 5) == 0 && text[5] != '\0' && text[5] != '@') {
		char *path = site_path(site, text + 5);
		if (path == NULL || asprintf(&absolute, "unix:%s", path) < 0)
			absolute = NULL;
		free(path);
		if (absolute == NULL)
			return site_no_memory(site);
	}
	int rc = address_parse(absolute != NULL ? absolute : text, field, &err);
	free(absolute);
	return rc == 0 ? 0 : site_error(site, "%s", err.text);
}

static void address_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct address *address = field;

	if (address->text == NULL)
		return;
	key_print(printer, key);
	printer_text(printer, address->text);
}

static void address_field_fini(void *field)
{
	address_fini(field);
}

static int read_prefixes(const struct site *site, char *const *texts, struct prefixes *prefixes)
{
	int rc = 0;

	for (; *texts != NULL; texts++) {
		struct err err;
		if (prefix_parse(*texts, &prefixes->list[prefixes->count], &err) != 0)
			rc = site_error(site, "%s", err.text);
		else
			prefixes->count++;
	}
	return rc;
}

static int prefixes_read(const struct site *site, void *field)
{
	struct prefixes *prefixes = field;
	char **texts = NULL;
	size_t count = 0;
	int rc = texts_read(site, &texts);

	while (rc == 0 && texts[count] != NULL)
		count++;
	if (rc == 0) {
		prefixes->list = calloc(count + 1, sizeof(struct prefix));
		rc = prefixes->list == NULL ? site_no_memory(site) : read_prefixes(site, texts, prefixes);
	}
	texts_fini(&texts);
	return rc;
}

static void prefixes_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct prefixes *prefixes = field;
	char text[PREFIX_TEXT_BYTES];

	if (prefixes->count == 0)
		return;
	key_print(printer, key);
	printer_list_begin(printer, true);
	for (size_t i = 0; i < prefixes->count; i++) {
		prefix_to_text(&prefixes->list[i], text);
		printer_text(printer, text);
	}
	printer_list_end(printer);
}

static void prefixes_fini(void *field)
{
	struct prefixes *prefixes = field;

	free(prefixes->list);
	*prefixes = (struct prefixes){ 0 };
}

/* Unquoted, YAML readers disagree on whether 0660 is octal. */
static int mode_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	if (text == NULL)
		return -1;
	size_t len = strlen(text);
	bool is_octal = len >= 3 && len <= 4 && strspn(text, "01234567") == len;
	unsigned long mode = is_octal ? strtoul(text, NULL, 8) : 0;
	if (is_octal && site->node->is_plain && site->node->mark.line > 0)
		return site_error(site, "write it quoted: \"%s\"", text);
	if (mode < site->key->min || mode > site->key->max)
		return site_error(site, "'%s' is no mode such as \"0660\"", text);
	*(unsigned *)field = (unsigned)mode;
	return 0;
}

static void mode_print(struct printer *printer, const struct key *key, const void *field)
{
	char text[QUANTITY_TEXT_BYTES];

	if (*(const unsigned *)field == 0)
		return;
	snprintf(text, sizeof(text), "%04o", *(const unsigned *)field);
	key_print(printer, key);
	printer_text(printer, text);
}

static int find_group(const struct site *site, const char *name, gid_t *out)
{
	errno = 0;
	const struct group *group = getgrnam(name);

	if (group == NULL)
		return site_error(site, "there is no group '%s'%s%s", name, errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
	*out = group->gr_gid;
	return 0;
}

static const struct passwd *find_user(const struct site *site, const char *name)
{
	errno = 0;
	const struct passwd *user = getpwnam(name);

	if (user == NULL)
		site_error(site, "there is no user '%s'%s%s", name, errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
	return user;
}

static int owner_read(const struct site *site, void *field)
{
	const char *text = site_text(site);
	const struct passwd *user = text == NULL ? NULL : find_user(site, text);

	if (user == NULL)
		return -1;
	*(uid_t *)field = user->pw_uid;
	return 0;
}

static void owner_print(struct printer *printer, const struct key *key, const void *field)
{
	uid_t uid = *(const uid_t *)field;
	const struct passwd *user = uid == (uid_t)-1 ? NULL : getpwuid(uid);

	if (user == NULL)
		return;
	key_print(printer, key);
	printer_text(printer, user->pw_name);
}

static int owner_group_read(const struct site *site, void *field)
{
	const char *text = site_text(site);

	return text == NULL ? -1 : find_group(site, text, field);
}

static void owner_group_print(struct printer *printer, const struct key *key, const void *field)
{
	gid_t gid = *(const gid_t *)field;
	const struct group *group = gid == (gid_t)-1 ? NULL : getgrgid(gid);

	if (group == NULL)
		return;
	key_print(printer, key);
	printer_text(printer, group->gr_name);
}

static int read_groups(const struct site *site, struct identity *identity)
{
	int count = 16, room;

	do {
		room = count;
		gid_t *groups = realloc(identity->groups, (size_t)room * sizeof(gid_t));
		if (groups == NULL)
			return site_no_memory(site);
		identity->groups = groups;
		if (getgrouplist(identity->user, identity->gid, groups, &count) < 0 && count <= room)
			count = room * 2;
	} while (count > room);
	identity->groups_count = (size_t)count;
	return 0;
}

static int user_read(const struct site *site, void *field)
{
	struct identity *identity = field;
	const char *text = site_text(site);
	const struct passwd *user = text == NULL ? NULL : find_user(site, text);

	if (user == NULL)
		return -1;
	identity->uid = user->pw_uid;
	identity->gid = user->pw_gid;
	identity->user = site_copy(site, text);
	if (identity->user == NULL)
		return -1;
	identity->is_set = true;
	return read_groups(site, identity);
}

static void user_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct identity *identity = field;

	if (identity->user == NULL)
		return;
	key_print(printer, key);
	printer_text(printer, identity->user);
}

static void user_fini(void *field)
{
	struct identity *identity = field;

	free(identity->user);
	free(identity->group);
	free(identity->groups);
	*identity = (struct identity){ 0 };
}

/* Its row follows the user's, whose own group it takes the place of. */
static int user_group_read(const struct site *site, void *field)
{
	struct identity *identity = field;
	const char *text = site_text(site);

	if (text == NULL || find_group(site, text, &identity->gid) != 0)
		return -1;
	identity->group = site_copy(site, text);
	if (identity->group == NULL)
		return -1;
	return identity->user == NULL ? 0 : read_groups(site, identity);
}

static void user_group_print(struct printer *printer, const struct key *key, const void *field)
{
	const struct identity *identity = field;

	if (identity->group == NULL)
		return;
	key_print(printer, key);
	printer_text(printer, identity->group);
}

const struct key_kind kind_address = { .name = "address", .read = address_read, .print = address_print,
	.fini = address_field_fini };
const struct key_kind kind_prefixes = { .name = "list of prefixes", .read = prefixes_read, .print = prefixes_print,
	.fini = prefixes_fini };
const struct key_kind kind_mode = { .name = "octal mode", .read = mode_read, .print = mode_print };
const struct key_kind kind_owner = { .name = "user", .read = owner_read, .print = owner_print };
const struct key_kind kind_owner_group = { .name = "group", .read = owner_group_read, .print = owner_group_print };
const struct key_kind kind_user = { .name = "user", .read = user_read, .print = user_print, .fini = user_fini };
const struct key_kind kind_user_group = { .name = "group", .read = user_group_read, .print = user_group_print };
