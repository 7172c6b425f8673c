/*
 * hello-world.cc - the same few bytes for every request: with --port N as an
 * HTTP server of its own (cpp-httplib), else with libfcgi, as a FastCGI worker or
 * a CGI program.
 *
 * On its own: c++ -o hello-world hello-world.cc $(pkg-config --cflags --libs cpp-httplib) -lfcgi++ -lfcgi -lpthread
 * (Debian: libcpp-httplib-dev libfcgi-dev)
 */
#include <fcgiapp.h>
#include <httplib.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

namespace {

const char content_type[] = "text/plain";
const std::string greeting = "Hello, World!\n";

int
serve_http(int port)
{
	httplib::Server server;
	socket_t listener = INVALID_SOCKET;

	// A kept connection holds a thread, and must not keep others waiting: compare has two sets of 100.
	server.new_task_queue = [] { return new httplib::ThreadPool(512); };
	server.set_keep_alive_max_count(1000000);
	server.set_keep_alive_timeout(60);
	server.set_tcp_nodelay(true);
	server.Get(".*", [](const httplib::Request &, httplib::Response &response) {
		response.set_content(greeting, content_type);
	});
	server.set_socket_options([&listener](socket_t fd) {
		httplib::default_socket_options(fd);
		listener = fd;
	});
	// The library lets five connections wait to be accepted.
	if (!server.bind_to_port("127.0.0.1", port) || listen(listener, 1024) != 0)
		return EXIT_FAILURE;
	return server.listen_after_bind() ? EXIT_SUCCESS : EXIT_FAILURE;
}

std::string
cgi_answer()
{
	return std::string("Content-Type: ") + content_type + "\r\nContent-Length: " + std::to_string(greeting.size()) +
		"\r\n\r\n" + greeting;
}

int
serve_fastcgi()
{
	const std::string answer = cgi_answer();
	FCGX_Request request;

	if (FCGX_Init() != 0 || FCGX_InitRequest(&request, 0, 0) != 0)
		return EXIT_FAILURE;
	while (FCGX_Accept_r(&request) == 0)
		FCGX_PutStr(answer.data(), static_cast<int>(answer.size()), request.out);
	return EXIT_SUCCESS;
}

}

int
main(int argc, char **argv)
{
	if (argc == 3 && std::strcmp(argv[1], "--port") == 0)
		return serve_http(std::atoi(argv[2]));
	if (!FCGX_IsCGI())
		return serve_fastcgi();
	std::cout << cgi_answer();
	return EXIT_SUCCESS;
}
