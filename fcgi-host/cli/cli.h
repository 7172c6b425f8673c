/*
 * cli.h - the commands, one file each.  A command gets argv from its own name
 * on and returns the exit status: 0 fine, 1 the operator's mistake, 2 usage.
 */
#ifndef FCGI_HOST_CLI_CLI_H
#define FCGI_HOST_CLI_CLI_H

enum { EXIT_FINE = 0, EXIT_MISTAKE = 1, EXIT_USAGE = 2 };

/* What stands after the command's name in the usage text. */
#define CLI_SERVE_USAGE "[-c FILE]"
#define CLI_BRIDGE_USAGE "[-c FILE]"
#define CLI_RELOAD_USAGE "[-c FILE]"
#define CLI_STATUS_USAGE "[-c FILE] [--json]"
#define CLI_TOP_USAGE "[-c FILE]"
#define CLI_CHECK_USAGE "[-c FILE] [--print]"
#define CLI_ROUTES_USAGE "[-c FILE] [METHOD URL]"
#define CLI_CALL_USAGE "[-c FILE | --connect ADDRESS] [-i] [-X METHOD] [-H 'Name: value'] [-d BODY | -d @FILE] PATH"
#define CLI_COMPARE_USAGE "[-c FILE] [-n REQUESTS] [--blocks N] [--concurrency N] [--rate N] [-X METHOD] [-H 'Name: value'] " \
	"[-d BODY | -d @FILE] [--path PATH] [--status N] [--timeout SECONDS] [--no-keep] [--ways LIST] [--baseline WAY] " \
	"[--via nginx|apache] [--native URL] [--url URL] [--connect ADDRESS] [--json | --csv] [--html FILE] " \
	"[HANDLER | --command COMMAND [--protocol PROTOCOL] | --suite FILE]"

int cli_serve(int argc, char **argv);
int cli_bridge(int argc, char **argv);
int cli_reload(int argc, char **argv);
int cli_status(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_routes(int argc, char **argv);
int cli_call(int argc, char **argv);
int cli_compare(int argc, char **argv);

struct bytes;
struct config;
struct config_report;
struct err;

/* The configuration, after saying on stderr all that is to be said of it; NULL
 * with errors.  The caller frees it. */
struct config *cli_load(const char *file);

void cli_print_report(const struct config_report *report);      /* on stderr */

/* Asks the running host with this configuration; appends what it answers. */
int cli_ask(const char *file, const char *question, struct bytes *answer, struct err *err);

/* Says how the command is used and returns EXIT_USAGE. */
int cli_usage(const char *command, const char *usage);

#endif
