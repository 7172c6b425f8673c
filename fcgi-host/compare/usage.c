#include "compare/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PIDS_MAX = 65536, TEXT_BYTES = 8192, DEPTH_MAX = 64 };

const char *usage_part_name(enum usage_part part)
{
	static const char *const names[] = { "handler", "relay", "spawner", "web server" };

	return names[part];
}

/* One line of /proc/PID/stat. */
struct entry {
	pid_t pid, parent;
	int depth;                      /* below the root; -1: not below it */
	uint64_t faults, ended_faults, ended_ticks;
};

struct table { struct entry *entries; size_t count; };

static ssize_t read_text(const char *path, char out[TEXT_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, out, TEXT_BYTES - 1);

	if (fd >= 0)
		close(fd);
	out[len < 0 ? 0 : len] = '\0';
	return len;
}

static bool read_entry(pid_t pid, struct entry *entry)
{
	char path[64], text[TEXT_BYTES];
	unsigned long minor, ended_minor, major, ended_major;
	long ended_user, ended_system;
	const char *after;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_text(path, text) <= 0 || (after = strrchr(text, ')')) == NULL ||
	    sscanf(after + 1, " %*c %d %*d %*d %*d %*d %*u %lu %lu %lu %lu %*u %*u %ld %ld", &parent, &minor, &ended_minor,
		    &major, &ended_major, &ended_user, &ended_system) != 7)
		return false;
	*entry = (struct entry){ .pid = pid, .parent = parent, .depth = -1, .faults = minor + major,
		.ended_faults = ended_minor + ended_major, .ended_ticks = (uint64_t)(ended_user + ended_system) };
	return true;
}

static int read_table(struct table *table)
{
	DIR *proc = opendir("/proc");
	size_t cap = 0;

	*table = (struct table){ 0 };
	for (struct dirent *each; proc != NULL && (each = readdir(proc)) != NULL;) {
		pid_t pid = (pid_t)atoi(each->d_name);

		if (pid <= 0 || table->count >= PIDS_MAX)
			continue;
		if (table->count == cap) {
			struct entry *more = realloc(table->entries, (cap * 2 + 64) * sizeof(*more));

			if (more == NULL)
				break;
			table->entries = more;
			cap = cap * 2 + 64;
		}
		table->count += read_entry(pid, &table->entries[table->count]);
	}
	if (proc != NULL)
		closedir(proc);
	return table->count > 0 ? 0 : -1;
}

/* Parents come to know before their children only by going over it again. */
static int mark_below(struct table *table, pid_t root)
{
	bool is_there = false;

	for (size_t i = 0; i < table->count; i++)
		if (table->entries[i].pid == root) {
			table->entries[i].depth = 0;
			is_there = true;
		}
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		bool has_more = false;

		for (size_t i = 0; i < table->count; i++)
			for (size_t j = 0; table->entries[i].depth < 0 && j < table->count; j++)
				if (table->entries[j].depth == depth && table->entries[i].parent == table->entries[j].pid) {
					table->entries[i].depth = depth + 1;
					has_more = true;
				}
		if (!has_more)
			break;
	}
	return is_there ? 0 : -1;
}

static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;
	struct timespec time;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t switches_of_thread(const char *path)
{
	char text[TEXT_BYTES];
	unsigned long voluntary = 0, forced = 0;
	const char *at;

	if (read_text(path, text) <= 0)
		return 0;
	if ((at = strstr(text, "\nvoluntary_ctxt_switches:")) != NULL)
		sscanf(at, " voluntary_ctxt_switches: %lu", &voluntary);
	if ((at = strstr(text, "\nnonvoluntary_ctxt_switches:")) != NULL)
		sscanf(at, " nonvoluntary_ctxt_switches: %lu", &forced);
	return voluntary + forced;
}

static uint64_t switches_of(pid_t pid)
{
	char path[320];
	uint64_t sum = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	for (struct dirent *each; tasks != NULL && (each = readdir(tasks)) != NULL;) {
		if (each->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, each->d_name);
		sum += switches_of_thread(path);
	}
	if (tasks != NULL)
		closedir(tasks);
	return sum;
}

static enum usage_part part_in_host(int depth)
{
	return depth == 0 ? USAGE_RELAY : depth == 1 ? USAGE_SPAWNER : USAGE_HANDLERS;
}

int usage_add_host(pid_t root, struct usage *usage)
{
	struct table table;
	int status = read_table(&table);

	status = status < 0 ? status : mark_below(&table, root);
	for (size_t i = 0; status == 0 && i < table.count; i++) {
		const struct entry *entry = &table.entries[i];
		enum usage_part part = part_in_host(entry->depth);

		if (entry->depth < 0)
			continue;
		usage->cpu_ns[part] += cpu_ns(entry->pid);
		usage->faults[part] += entry->faults;
		usage->switches[part] += switches_of(entry->pid);
	}
	free(table.entries);
	return status;
}

int usage_add_program(pid_t root, enum usage_part part, struct usage *usage)
{
	struct table table;
	uint64_t ns_per_tick = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
	int status = read_table(&table);

	status = status < 0 ? status : mark_below(&table, root);
	for (size_t i = 0; status == 0 && i < table.count; i++) {
		const struct entry *entry = &table.entries[i];

		if (entry->depth < 0)
			continue;
		usage->cpu_ns[part] += cpu_ns(entry->pid) + entry->ended_ticks * ns_per_tick;
		usage->faults[part] += entry->faults + entry->ended_faults;
		usage->switches[part] += switches_of(entry->pid);
	}
	free(table.entries);
	return status;
}

static uint64_t growth(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

void usage_add_between(struct usage *sum, const struct usage *from, const struct usage *to)
{
	for (int i = 0; i < USAGE_PARTS; i++) {
		sum->cpu_ns[i] += growth(from->cpu_ns[i], to->cpu_ns[i]);
		sum->faults[i] += growth(from->faults[i], to->faults[i]);
		sum->switches[i] += growth(from->switches[i], to->switches[i]);
	}
}

/* Memory. */

static uint64_t kib_of(pid_t pid, bool *is_resident)
{
	char path[64], text[TEXT_BYTES];
	unsigned long kib = 0;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	if (read_text(path, text) > 0 && (at = strstr(text, "\nPss:")) != NULL && sscanf(at, " Pss: %lu", &kib) == 1)
		return kib;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (read_text(path, text) > 0 && (at = strstr(text, "\nVmRSS:")) != NULL && sscanf(at, " VmRSS: %lu", &kib) == 1)
		*is_resident = true;
	return kib;
}

static int add_holding(pid_t root, bool is_host, enum usage_part program_part, struct holding *holding)
{
	struct table table;
	int status = read_table(&table);

	status = status < 0 ? status : mark_below(&table, root);
	for (size_t i = 0; status == 0 && i < table.count; i++) {
		const struct entry *entry = &table.entries[i];
		enum usage_part part = is_host ? part_in_host(entry->depth) : program_part;

		if (entry->depth < 0)
			continue;
		holding->kib[part] += kib_of(entry->pid, &holding->is_resident);
		holding->processes[part]++;
	}
	free(table.entries);
	return status;
}

int holding_add_host(pid_t root, struct holding *holding)
{
	return add_holding(root, true, USAGE_HANDLERS, holding);
}

int holding_add_program(pid_t root, enum usage_part part, struct holding *holding)
{
	return add_holding(root, false, part, holding);
}
