#!/usr/bin/node
'use strict';
/* POST {"name":"Johnny"} is answered with {"greeting":"Hello, Johnny!"}. */
const { run } = require('./serve.js');

const BODY_MAX = 65536;

/* The whole body as text, or null if it is larger. */
async function bodyOf(request) {
	const chunks = [];
	let length = 0;
	for await (const chunk of request) {
		length += chunk.length;
		if (length > BODY_MAX)
			return null;
		chunks.push(chunk);
	}
	return Buffer.concat(chunks).toString();
}

function answer(response, status, text, type = 'text/plain') {
	response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) });
	response.end(text);
}

async function greet(request, response) {
	const body = await bodyOf(request);
	if (body === null)
		return answer(response, 413, 'the body is larger than 64 KiB\n');
	let name;
	try {
		({ name } = JSON.parse(body));
	} catch {
		/* Then there is no name. */
	}
	if (typeof name !== 'string')
		return answer(response, 400, 'expected a JSON object with a string, name\n');
	return answer(response, 200, JSON.stringify({ greeting: `Hello, ${name}!` }), 'application/json');
}

run((request, response) => {
	/* Where the body breaks off there is nobody to answer. */
	greet(request, response).catch(() => response.destroy());
});
