#include "process/child_table.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 64 };

static struct child **id_bucket(const struct child_table *table, uint64_t id)
{
	return &table->by_id[id & (table->buckets_count - 1)];
}

static struct child **pid_bucket(const struct child_table *table, pid_t pid)
{
	return &table->by_pid[(size_t)pid & (table->buckets_count - 1)];
}

static void link_in(struct child_table *table, struct child *child)
{
	struct child **by_id = id_bucket(table, child->id);
	struct child **by_pid = pid_bucket(table, child->pid);

	child->next_by_id = *by_id;
	*by_id = child;
	child->next_by_pid = *by_pid;
	*by_pid = child;
}

/* Longer chains still work: only the very first allocation has to succeed. */
static int grow(struct child_table *table)
{
	struct child_table old = *table;
	size_t buckets_count = old.buckets_count == 0 ? FIRST_BUCKETS : old.buckets_count * 2;
	struct child **by_id = calloc(buckets_count, sizeof(*by_id));
	struct child **by_pid = calloc(buckets_count, sizeof(*by_pid));

	if (by_id == NULL || by_pid == NULL) {
		free(by_id);
		free(by_pid);
		return old.buckets_count == 0 ? -1 : 0;
	}
	table->by_id = by_id;
	table->by_pid = by_pid;
	table->buckets_count = buckets_count;
	for (size_t i = 0; i < old.buckets_count; i++) {
		for (struct child *child = old.by_id[i], *next; child != NULL; child = next) {
			next = child->next_by_id;
			link_in(table, child);
		}
	}
	free(old.by_id);
	free(old.by_pid);
	return 0;
}

struct child *child_table_take(struct child_table *table)
{
	struct child *child = table->unused;

	if (table->count >= table->buckets_count && grow(table) != 0)
		return NULL;
	if (child == NULL)
		return calloc(1, sizeof(*child));
	table->unused = child->next_by_id;
	memset(child, 0, sizeof(*child));
	return child;
}

void child_table_put_back(struct child_table *table, struct child *child)
{
	child->next_by_id = table->unused;
	table->unused = child;
}

void child_table_add(struct child_table *table, struct child *child)
{
	link_in(table, child);
	table->count++;
}

void child_table_set_left(struct child_table *table, struct child *child)
{
	child->is_left = true;
	child->next_left = table->left;
	table->left = child;
}

void child_table_remove(struct child_table *table, struct child *child)
{
	struct child **link;

	for (link = id_bucket(table, child->id); *link != child; link = &(*link)->next_by_id)
		;
	*link = child->next_by_id;
	for (link = pid_bucket(table, child->pid); *link != child; link = &(*link)->next_by_pid)
		;
	*link = child->next_by_pid;
	if (child->is_left) {
		for (link = &table->left; *link != child; link = &(*link)->next_left)
			;
		*link = child->next_left;
	}
	table->count--;
	child_table_put_back(table, child);
}

struct child *child_table_by_id(const struct child_table *table, uint64_t id)
{
	struct child *child = table->buckets_count == 0 ? NULL : *id_bucket(table, id);

	while (child != NULL && child->id != id)
		child = child->next_by_id;
	return child;
}

struct child *child_table_by_pid(const struct child_table *table, pid_t pid)
{
	struct child *child = table->buckets_count == 0 ? NULL : *pid_bucket(table, pid);

	while (child != NULL && child->pid != pid)
		child = child->next_by_pid;
	return child;
}

static void free_chain(struct child *child)
{
	for (struct child *next; child != NULL; child = next) {
		next = child->next_by_id;
		free(child);
	}
}

void child_table_fini(struct child_table *table)
{
	for (size_t i = 0; i < table->buckets_count; i++)
		free_chain(table->by_id[i]);
	free_chain(table->unused);
	free(table->by_id);
	free(table->by_pid);
	*table = (struct child_table){ 0 };
}
