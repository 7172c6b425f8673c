#!/usr/bin/node
// A CGI script that prints all that it can see of its process.
const loaded = [...process.moduleLoadList];
const cached = Object.keys(require.cache);
const kinds = ['warning', 'exit', 'beforeExit', 'uncaughtException', 'unhandledRejection', 'SIGTERM', 'newListener', 'removeListener'];
const show = (...values) => process.stdout.write(`${values.map((v) => (typeof v === 'string' ? v : JSON.stringify(v))).join(' ')}\n`);
const fs = require('fs');

// What Node has loaded at its own start depends on what it is to do: a module that is there already is nothing to see.
if (process.env.QUERY_STRING === 'modules') show(loaded);
process.stdout.write('Content-Type: text/plain\n\n');
show('cache', cached, module.children.length, module.loaded, module.parent, module.paths, module.id, module.filename);
show('main', require.main === module, require.main.filename, __filename, __dirname);
show('argv', process.argv, process.argv0, process.execArgv, process.execPath, process.title);
show('environment', Object.entries(process.env));
show('listeners', kinds.map((k) => process.listenerCount(k)), process.eventNames().map(String));
show('globals', Object.getOwnPropertyNames(globalThis).sort(), Object.keys(process).sort());
show('flags', [...process.allowedNodeEnvironmentFlags].length, process.noDeprecation, process.throwDeprecation, Error.stackTraceLimit);
show('ids', process.getuid(), process.getgroups(), process.umask(), process.cwd(), process.exitCode, process.connected === undefined);
show('pid', String(process.pid) === fs.readlinkSync('/proc/self'));
show('stack', new Error('a stack').stack.split('\n').slice(1));
show('extensions', Object.keys(require.extensions), require('module').globalPaths);
show('prepare', typeof Error.prepareStackTrace, process.hasUncaughtExceptionCaptureCallback());
show('streams', fs.fstatSync(0).isFIFO(), process.stdout.fd, process.stderr.fd, process.stdout.writableLength, process.stdout._type, process.stdout.listenerCount('error'));
show('locale', new Intl.DateTimeFormat().resolvedOptions());
show('open', fs.readdirSync('/proc/self/fd').length);
process.on('exit', (code) => fs.writeSync(1, `exit, registered first, ${code}\n`));
process.on('exit', (code) => fs.writeSync(1, `exit, registered last, ${code}\n`));
process.on('beforeExit', () => fs.writeSync(1, 'before exit\n'));
process.stderr.write('stderr says so\n');
console.error('and once more');
const end = process.env.QUERY_STRING;
function inner(value) { return value.none.none; }
process.stdin.on('data', (data) => show('stdin', String(data)));
process.stdin.on('end', () => {
  fs.writeSync(1, require('child_process').execFileSync('/bin/sh', ['./process.sh', 'no numbers'], { stdio: ['ignore', 'pipe', 'inherit'] }));
  if (end === 'raise') inner({});
  if (end === 'reject') Promise.reject(new Error('nobody cares'));
  if (end === 'exit') process.exit(7);
  if (end === 'code') process.exitCode = 3;
  if (end === 'syntax') require('vm').runInThisContext('a b');
  if (end === 'signal') process.kill(process.pid, 'SIGUSR2');
  if (end === 'use') show(Object.keys(require('http')).length, Object.keys(require('crypto')).length);
  // Only after the first turn of the loop: what has been closed while it waited is still in the list until then.
  setTimeout(() => show('resources', process.getActiveResourcesInfo()) || process.stdout.write('no end of line at the end'), 1);
});
