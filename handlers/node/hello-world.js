#!/usr/bin/node
'use strict';
/* The same few bytes for every request. */
const BODY = 'Hello, World!\n';

require('./serve.js').run((_request, response) => {
	response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': BODY.length });
	response.end(BODY);
});
