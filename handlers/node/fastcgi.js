'use strict';
/*
 * FastCGI responders, used like node:http:
 *
 *	fastcgi.createServer((request, response) => {
 *		response.writeHead(200, { 'Content-Type': 'text/plain' });
 *		response.end(`Hello from ${request.url}\n`);
 *	}).listen({ fd: 0 });
 *
 * `request` is a Readable of the body with method, url, headers and env (all variables of the request); `response` is a
 * Writable with statusCode, setHeader(), writeHead(). A connection carries one request at a time, as web servers do it.
 */
const net = require('node:net');
const { Readable, Writable } = require('node:stream');

const VERSION = 1;
const BEGIN_REQUEST = 1, ABORT_REQUEST = 2, END_REQUEST = 3, PARAMS = 4, STDIN = 5, STDOUT = 6;
const GET_VALUES = 9, GET_VALUES_RESULT = 10, UNKNOWN_TYPE = 11;
const RESPONDER = 1, KEEP_CONNECTION = 1;
const REQUEST_COMPLETE = 0, CANT_MULTIPLEX = 1, UNKNOWN_ROLE = 3;
const HEADER_LENGTH = 8, CONTENT_MAX = 65535;
const PARAMS_MAX = 1 << 20;

class Request extends Readable {
	constructor(env, onWanted) {
		super({ read: onWanted });
		this.env = env;
		this.method = env.REQUEST_METHOD;
		this.url = env.REQUEST_URI || (env.SCRIPT_NAME || '') + (env.PATH_INFO || '');
		this.headers = headersOf(env);
	}
}

/* What CGI calls HTTP_ACCEPT_LANGUAGE, node calls accept-language. */
function headersOf(env) {
	const headers = {};
	for (const [name, value] of Object.entries(env)) {
		if (name.startsWith('HTTP_'))
			headers[name.slice(5).toLowerCase().replaceAll('_', '-')] = value;
	}
	if (env.CONTENT_TYPE)
		headers['content-type'] = env.CONTENT_TYPE;
	if (env.CONTENT_LENGTH)
		headers['content-length'] = env.CONTENT_LENGTH;
	return headers;
}

/* An answer with a CGI header.  `sink` has write(chunk, done), end(done), and destroy() for an answer that breaks off. */
class Response extends Writable {
	constructor(sink) {
		super();
		this.sink = sink;
		this.statusCode = 200;
		this.headers = new Map();
		this.headersSent = false;
	}

	setHeader(name, value) {
		this.headers.set(name.toLowerCase(), [name, value]);
	}

	writeHead(statusCode, headers = {}) {
		this.statusCode = statusCode;
		for (const [name, value] of Object.entries(headers))
			this.setHeader(name, value);
		return this;
	}

	header() {
		let text = `Status: ${this.statusCode}\r\n`;
		for (const [name, value] of this.headers.values()) {
			for (const one of [].concat(value)) {
				if (/[\r\n\0]/.test(one))
					throw new Error(`the value of ${name} has a line end`);
				text += `${name}: ${one}\r\n`;
			}
		}
		return Buffer.from(text + '\r\n', 'latin1');
	}

	withHeader(chunk) {
		if (this.headersSent)
			return chunk;
		this.headersSent = true;
		return Buffer.concat([this.header(), chunk]);
	}

	_write(chunk, _encoding, done) {
		this.sink.write(this.withHeader(chunk), done);
	}

	_final(done) {
		if (this.headersSent)
			this.sink.end(done);
		else
			this.sink.write(this.withHeader(Buffer.alloc(0)), () => this.sink.end(done));
	}

	_destroy(_error, done) {
		if (!this.writableFinished)
			this.sink.destroy();
		done();
	}
}

/*
 *	 0         1         2 3          4 5              6              7
 *	+---------+---------+------------+----------------+--------------+----------+---------+---------+
 *	| version | type    | request id | content length | padding len. | reserved | content | padding |
 *	+---------+---------+------------+----------------+--------------+----------+---------+---------+
 */
function record(type, id, content) {
	const header = Buffer.alloc(HEADER_LENGTH);
	header[0] = VERSION;
	header[1] = type;
	header.writeUInt16BE(id, 2);
	header.writeUInt16BE(content.length, 4);
	return Buffer.concat([header, content]);
}

function endRecord(id, protocolStatus) {
	return record(END_REQUEST, id, Buffer.from([0, 0, 0, 0, protocolStatus, 0, 0, 0]));
}

/* Lengths are one byte, or four with the highest bit set.  Throws RangeError on bytes that are no pairs. */
function decodePairs(bytes) {
	const pairs = {};
	let at = 0;
	const length = () => {
		if (bytes.readUInt8(at) < 0x80)
			return bytes[at++];
		at += 4;
		return bytes.readUInt32BE(at - 4) & 0x7fffffff;
	};
	while (at < bytes.length) {
		const nameEnd = length(), valueEnd = length();
		if (at + nameEnd + valueEnd > bytes.length)
			throw new RangeError('a name or value is cut off');
		const name = bytes.toString('utf8', at, at + nameEnd);
		pairs[name] = bytes.toString('utf8', at + nameEnd, at + nameEnd + valueEnd);
		at += nameEnd + valueEnd;
	}
	return pairs;
}

class Connection {
	constructor(socket, handler) {
		this.socket = socket;
		this.handler = handler;
		this.input = Buffer.alloc(0);
		this.id = 0;            /* of the request in work; 0 is none */
		socket.on('data', (chunk) => this.onData(chunk));
		socket.on('error', () => socket.destroy());
		socket.on('close', () => this.onClose());
	}

	onClose() {
		if (this.request)
			this.request.destroy();
		if (this.response)
			this.response.destroy();
	}

	onData(chunk) {
		this.input = this.input.length ? Buffer.concat([this.input, chunk]) : chunk;
		try {
			while (this.takeRecord());
		} catch {       /* no FastCGI: there is nobody to tell */
			this.socket.destroy();
		}
	}

	takeRecord() {
		const { input } = this;
		if (input.length < HEADER_LENGTH)
			return false;
		if (input[0] !== VERSION)
			throw new RangeError('unknown version');
		const end = HEADER_LENGTH + input.readUInt16BE(4);
		if (input.length < end + input[6])
			return false;
		this.input = input.subarray(end + input[6]);
		this.onRecord(input[1], input.readUInt16BE(2), input.subarray(HEADER_LENGTH, end));
		return true;
	}

	onRecord(type, id, content) {
		if (id === 0)
			this.onManagement(type, content);
		else if (type === BEGIN_REQUEST)
			this.onBegin(id, content);
		else if (id !== this.id)
			return;         /* of a request that is over: to be ignored */
		else if (type === PARAMS)
			this.onParams(content);
		else if (type === STDIN)
			this.onStdin(content);
		else if (type === ABORT_REQUEST)
			this.socket.end(endRecord(id, REQUEST_COMPLETE));
	}

	onManagement(type, content) {
		if (type !== GET_VALUES) {
			this.socket.write(record(UNKNOWN_TYPE, 0, Buffer.from([type, 0, 0, 0, 0, 0, 0, 0])));
			return;
		}
		const name = 'FCGI_MPXS_CONNS';         /* the only one that has an answer here */
		const pair = name in decodePairs(content) ? String.fromCharCode(name.length, 1) + name + '0' : '';
		this.socket.write(record(GET_VALUES_RESULT, 0, Buffer.from(pair, 'latin1')));
	}

	onBegin(id, content) {
		if (this.id !== 0) {
			this.socket.write(endRecord(id, CANT_MULTIPLEX));
			return;
		}
		this.isKept = (content.readUInt8(2) & KEEP_CONNECTION) !== 0;
		if (content.readUInt16BE(0) !== RESPONDER) {
			this.socket.write(endRecord(id, UNKNOWN_ROLE));
			if (!this.isKept)
				this.socket.end();
			return;
		}
		this.id = id;
		this.params = [];
		this.paramsLength = 0;
		this.request = this.response = null;
	}

	onParams(content) {
		this.paramsLength += content.length;
		if (this.request || this.paramsLength > PARAMS_MAX)
			throw new RangeError('too many params');
		if (content.length > 0) {
			this.params.push(content);
			return;
		}
		this.request = new Request(decodePairs(Buffer.concat(this.params)), () => this.socket.resume());
		this.response = new Response(this);
		this.handler(this.request, this.response);
	}

	onStdin(content) {
		if (!this.request)
			throw new RangeError('a body before the params');
		/* Without bytes it is the end. */
		if (!this.request.push(content.length > 0 ? Buffer.from(content) : null) && content.length > 0)
			this.socket.pause();
	}

	/* Collects what is sent in one turn of the event loop, so that a small answer is one write. */
	send(bytes) {
		if (this.socket.writableCorked === 0) {
			this.socket.cork();
			setImmediate(() => this.socket.uncork());
		}
		return this.socket.write(bytes);
	}

	/* The response's sink. */
	write(chunk, done) {
		let hasRoom = true;
		for (let at = 0; at < chunk.length; at += CONTENT_MAX)
			hasRoom = this.send(record(STDOUT, this.id, chunk.subarray(at, at + CONTENT_MAX)));
		if (hasRoom)
			done();
		else
			this.socket.once('drain', done);
	}

	end(done) {
		const id = this.id;
		this.id = 0;
		this.send(Buffer.concat([record(STDOUT, id, Buffer.alloc(0)), endRecord(id, REQUEST_COMPLETE)]));
		if (this.isKept)
			this.socket.resume();   /* the rest of a body that nobody read is ignored */
		else
			this.socket.end();
		done();
	}

	destroy() {
		this.socket.destroy();
	}
}

function createServer(handler) {
	return net.createServer((socket) => new Connection(socket, handler));
}

/* A CGI program's one request, for the same handlers. */
function serveCgi(handler) {
	const { stdin, stdout, env } = process;
	const request = Object.assign(stdin, { env, method: env.REQUEST_METHOD, url: env.REQUEST_URI, headers: headersOf(env) });
	const sink = {
		write: (chunk, done) => stdout.write(chunk, done),
		end: (done) => { stdin.destroy(); done(); },
		destroy: () => process.exit(1),
	};
	handler(request, new Response(sink));
}

module.exports = { createServer, serveCgi };
