'use strict';
/*
 * Runs a handler as node:http has them in the way in which the program was started: as an HTTP server of its own with
 * --port N, as a CGI program where the environment has a request, else as a FastCGI worker on the listening socket that
 * is descriptor 0.
 */
const fastcgi = require('./fastcgi.js');

function run(handler) {
	const [option, port] = process.argv.slice(2);
	if (option === '--port')
		require('node:http').createServer(handler).listen(Number(port), '127.0.0.1');
	else if (process.env.REQUEST_METHOD)
		fastcgi.serveCgi(handler);
	else
		fastcgi.createServer(handler).listen({ fd: 0 });
}

module.exports = { run };
