#include "compare/private_web.h"

#include "compare/private_host.h"

#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { START_PATIENCE_MS = 15000, STOP_PATIENCE_MS = 7000 };

static const char listens[] = "unix:/run/fcgi-host/fcgi-host.sock";

const char *shipped_text(const char *name)
{
	for (const struct shipped *each = shipped_files; each->name != NULL; each++)
		if (strcmp(each->name, name) == 0)
			return each->text;
	return NULL;
}

unsigned free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned port = 0;

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 && getsockname(fd, (struct sockaddr *)&address, &len) == 0)
		port = ntohs(address.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

const char *private_web_group(enum via via)
{
	return via == VIA_APACHE && geteuid() == 0 && getgrnam("www-data") != NULL ? "www-data" : NULL;
}

static int write_file(const char *folder, const char *name, const char *text, struct err *err)
{
	char *path = NULL;
	FILE *out = asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : fopen(path, "we");
	int status = 0;

	if (out == NULL || fputs(text, out) < 0)
		status = err_set_errno(err, errno, "%s/%s", folder, name);
	if (out != NULL && fclose(out) != 0 && status == 0)
		status = err_set_errno(err, errno, "%s/%s", folder, name);
	if (path != NULL)
		chmod(path, 0644);
	free(path);
	return status;
}

/* A shipped file, with the socket of the private host in the place of the usual one. */
static int write_shipped(const char *folder, const char *name, const char *socket, struct err *err)
{
	const char *text = shipped_text(name), *at = text == NULL ? NULL : strstr(text, listens);
	char *changed = NULL;
	int status;

	if (text == NULL)
		return err_set(err, "%s is missing in this build", name);
	if (at == NULL)
		return write_file(folder, strrchr(name, '/') + 1, text, err);
	if (asprintf(&changed, "%.*s%s%s", (int)(at - text), text, socket, at + sizeof(listens) - 1) < 0)
		return err_set(err, "no memory");
	status = write_file(folder, strrchr(name, '/') + 1, changed, err);
	free(changed);
	return status;
}

/* nginx: as many processes as it would have, and connections for any load of ours. */
static char *nginx_text(const char *folder, unsigned port)
{
	char *text = NULL;
	int len = asprintf(&text,
		"%sdaemon off;\nworker_processes auto;\nworker_rlimit_nofile 65536;\npid %s/nginx.pid;\nerror_log stderr;\n"
		"events { worker_connections 16384; }\n"
		"http {\n"
		"\taccess_log off;\n\tkeepalive_requests 1000000;\n"
		"\tclient_body_temp_path %s/body;\n\tfastcgi_temp_path %s/fastcgi;\n\tproxy_temp_path %s/proxy;\n"
		"\tscgi_temp_path %s/scgi;\n\tuwsgi_temp_path %s/uwsgi;\n"
		"\tinclude fcgi-host/fcgi-host-upstream.conf;\n"
		"\tserver {\n\t\tlisten 127.0.0.1:%u backlog=4096;\n\t\tlocation / {\n\t\t\tinclude fcgi-host/fcgi-host.conf;\n\t\t}\n\t}\n"
		"}\n", geteuid() == 0 ? "user root;\n" : "", folder, folder, folder, folder, folder, folder, port);

	return len < 0 ? NULL : text;
}

static int write_nginx(const char *folder, const char *socket, unsigned port, struct err *err)
{
	static const char *const names[] = { "nginx/fcgi-host-upstream.conf", "nginx/fcgi-host.conf", "nginx/fcgi-host.params" };
	char *shipped = NULL, *text = nginx_text(folder, port);
	int status = text == NULL || asprintf(&shipped, "%s/fcgi-host", folder) < 0 ? err_set(err, "no memory") : 0;

	if (status == 0 && mkdir(shipped, 0755) != 0)
		status = err_set_errno(err, errno, "%s", shipped);
	for (int i = 0; i < 3 && status == 0; i++)
		status = write_shipped(shipped, names[i], socket, err);
	if (status == 0)
		status = write_file(folder, "nginx.conf", text, err);
	free(shipped);
	free(text);
	return status;
}

static const char *modules_folder(void)
{
	static const char *const folders[] = { "/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/libexec/apache2" };

	for (int i = 0; i < 3; i++)
		if (access(folders[i], X_OK) == 0)
			return folders[i];
	return folders[0];
}

static char *apache_text(const char *folder, const char *socket, unsigned port)
{
	const char *modules = modules_folder(), *path = strncmp(socket, "unix:", 5) == 0 ? socket + 5 : socket;
	const char *group = private_web_group(VIA_APACHE);
	char *text = NULL;
	int len = asprintf(&text,
		"LoadModule mpm_event_module %s/mod_mpm_event.so\nLoadModule authz_core_module %s/mod_authz_core.so\n"
		"LoadModule proxy_module %s/mod_proxy.so\nLoadModule proxy_fcgi_module %s/mod_proxy_fcgi.so\n"
		"ServerName localhost\nListen 127.0.0.1:%u\n%s%s%s"
		"PidFile %s/apache.pid\nDefaultRuntimeDir %s\nErrorLog /dev/stderr\nLogLevel warn\nDocumentRoot %s\n"
		"KeepAlive On\nMaxKeepAliveRequests 0\nKeepAliveTimeout 300\nGracefulShutdownTimeout 5\n"
		"Define FCGI_HOST_SOCKET %s\nInclude %s/mod_proxy_fcgi.conf\n",
		modules, modules, modules, modules, port, group == NULL ? "" : "User www-data\nGroup ", group == NULL ? "" : group,
		group == NULL ? "" : "\n", folder, folder, folder, path, folder);

	return len < 0 ? NULL : text;
}

static int write_apache(const char *folder, const char *socket, unsigned port, struct err *err)
{
	char *text = apache_text(folder, socket, port);
	int status = text == NULL ? err_set(err, "no memory") : write_file(folder, "apache.conf", text, err);

	if (status == 0)
		status = write_file(folder, "mod_proxy_fcgi.conf", shipped_text("apache/mod_proxy_fcgi.conf"), err);
	/* Its processes make files there. */
	if (status == 0 && private_web_group(VIA_APACHE) != NULL && getpwnam("www-data") != NULL &&
	    chown(folder, getpwnam("www-data")->pw_uid, (gid_t)-1) != 0)
		status = err_set_errno(err, errno, "%s", folder);
	free(text);
	return status;
}

static char *find_server(enum via via)
{
	char *found = plan_find_program(via == VIA_NGINX ? "nginx" : "apache2");

	return found != NULL || via == VIA_NGINX ? found : plan_find_program("httpd");
}

static int start(struct private_web *web, enum via via, const char *program, const char *folder, struct err *err)
{
	char config[4096], output[4096], *nginx[] = { (char *)"nginx", (char *)"-p", (char *)folder, (char *)"-e", (char *)"stderr",
		(char *)"-c", config, NULL };
	char *apache[] = { (char *)"apache2", (char *)"-d", (char *)folder, (char *)"-f", config, (char *)"-D", (char *)"FOREGROUND", NULL };
	struct child_spec spec = { .program = program, .argv = via == VIA_NGINX ? nginx : apache, .output = output,
		.stdin_fd = -1, .stdout_fd = -1 };

	snprintf(config, sizeof(config), "%s/%s.conf", folder, via_name(via));
	snprintf(output, sizeof(output), "%s/output", folder);
	if (child_start(&web->child, &spec, err) < 0)
		return -1;
	return wait_for_listener(web->url, &web->child, START_PATIENCE_MS, via_name(via), err);
}

int private_web_start(struct private_web *web, enum via via, const char *socket, const char *parent, unsigned number, struct err *err)
{
	char *program = find_server(via), *folder = NULL;
	unsigned port = free_port();
	int status = 0;

	*web = (struct private_web){ .child = { .pid = 0 } };
	if (program == NULL)
		status = err_set(err, "%s is not installed (Debian: %s)", via_name(via), via == VIA_NGINX ? "nginx" : "apache2");
	else if (port == 0 || asprintf(&web->url, "http://127.0.0.1:%u", port) < 0 ||
		 asprintf(&folder, "%s/web-%u", parent, number) < 0 || mkdir(folder, 0755) != 0)
		status = err_set(err, "no folder or port for %s", via_name(via));
	if (status == 0)
		status = via == VIA_NGINX ? write_nginx(folder, socket, port, err) : write_apache(folder, socket, port, err);
	if (status == 0)
		status = start(web, via, program, folder, err);
	free(program);
	free(folder);
	return status;
}

void private_web_stop(struct private_web *web)
{
	child_stop(&web->child, STOP_PATIENCE_MS);
	free(web->url);
	*web = (struct private_web){ .child = { .pid = 0 } };
}

void private_web_version(enum via via, char *out, size_t out_size)
{
	char *program = find_server(via), *command = NULL;
	FILE *in = program == NULL || asprintf(&command, "'%s' -v 2>&1", program) < 0 ? NULL : popen(command, "re");

	out[0] = '\0';
	if (in != NULL && fgets(out, (int)out_size, in) != NULL)
		out[strcspn(out, "\r\n")] = '\0';
	if (in != NULL)
		pclose(in);
	free(program);
	free(command);
}
