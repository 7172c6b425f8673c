#!/usr/bin/node
'use strict';
/* A function: {"name":"Johnny"} on standard input, {"greeting":"Hello, Johnny!"} on standard output (protocol: stdio). */
const { readFileSync } = require('node:fs');

let name;
try {
	({ name } = JSON.parse(readFileSync(0, 'utf8')));
} catch {
	/* Then there is no name. */
}
if (typeof name === 'string') {
	process.stdout.write(JSON.stringify({ greeting: `Hello, ${name}!` }));
} else {
	process.stderr.write('expected a JSON object with a string, name\n');
	process.exitCode = 1;
}
