#include "compare/result.h"

#include "compare/private_web.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void report_fini(struct report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		struct comparison_result *comparison = &report->comparisons[i];

		for (size_t j = 0; comparison->ways != NULL && j < comparison->comparison->ways_count; j++)
			series_fini(&comparison->ways[j].series);
		free(comparison->ways);
	}
	free(report->comparisons);
	free(report->command);
	*report = (struct report){ 0 };
}

/* The value of "name : value" or "name: value kB" in a file of /proc. */
static void read_field(const char *path, const char *name, char *out, size_t out_size)
{
	char line[512];
	FILE *in = fopen(path, "re");

	while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
		char *colon = strchr(line, ':');

		if (colon == NULL || strncmp(line, name, strlen(name)) != 0)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(out, out_size, "%s", colon);
		break;
	}
	if (in != NULL)
		fclose(in);
}

void machine_describe(struct machine *machine, enum via via)
{
	struct utsname name;
	char kib[64] = "";
	double loads[1];

	*machine = (struct machine){ .cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) };
	read_field("/proc/cpuinfo", "model name", machine->cpu, sizeof(machine->cpu));
	read_field("/proc/meminfo", "MemTotal", kib, sizeof(kib));
	machine->memory_kib = strtoull(kib, NULL, 10);
	snprintf(machine->memory, sizeof(machine->memory), "%.1f GiB", (double)machine->memory_kib / 1048576);
	if (uname(&name) == 0)
		snprintf(machine->kernel, sizeof(machine->kernel), "%.60s %.80s", name.sysname, name.release);
	if (getloadavg(loads, 1) == 1)
		snprintf(machine->load, sizeof(machine->load), "%.2f", loads[0]);
	if (via == VIA_NGINX || via == VIA_APACHE)
		private_web_version(via, machine->web_server, sizeof(machine->web_server));
}

bool way_has_figures(const struct way_result *way)
{
	return way->state == WAY_MEASURED && way->series.answered > 0;
}

double way_requests_per_s(const struct way_result *way)
{
	return way->series.elapsed_ns == 0 ? 0 : (double)way->series.answered * 1e9 / (double)way->series.elapsed_ns;
}

static double each(const struct way_result *way, uint64_t sum)
{
	return way->usage_requests == 0 ? 0 : (double)sum / (double)way->usage_requests;
}

double way_cpu_ms(const struct way_result *way, enum usage_part part)
{
	return each(way, way->usage.cpu_ns[part]) / 1e6;
}

double way_cpu_ms_all(const struct way_result *way)
{
	double sum = 0;

	for (int part = 0; part < USAGE_PARTS; part++)
		sum += way_cpu_ms(way, (enum usage_part)part);
	return sum;
}

double way_faults(const struct way_result *way)
{
	uint64_t sum = 0;

	for (int part = 0; part < USAGE_PARTS; part++)
		sum += way->usage.faults[part];
	return each(way, sum);
}

double way_switches(const struct way_result *way)
{
	uint64_t sum = 0;

	for (int part = 0; part < USAGE_PARTS; part++)
		sum += way->usage.switches[part];
	return each(way, sum);
}

double way_idle_mib(const struct way_result *way, enum usage_part part)
{
	return (double)way->idle.kib[part] / 1024;
}

double published_ratio(const struct comparison_result *comparison, const struct way_result *way)
{
	const struct published *ours = &way->way->published, *base;

	if (ours->ratio > 0)
		return ours->ratio;
	for (size_t i = 0; i < comparison->comparison->ways_count; i++) {
		const struct way *other = &comparison->comparison->ways[i];

		if (comparison->comparison->baseline == NULL || strcmp(other->name, comparison->comparison->baseline) != 0)
			continue;
		base = &other->published;
		if (base->mean_ms > 0 && ours->mean_ms > 0)
			return ours->mean_ms / base->mean_ms;
		if (base->requests_per_s > 0 && ours->requests_per_s > 0)
			return base->requests_per_s / ours->requests_per_s;
		if (base->p99_ms > 0 && ours->p99_ms > 0)
			return ours->p99_ms / base->p99_ms;
	}
	return 0;
}
