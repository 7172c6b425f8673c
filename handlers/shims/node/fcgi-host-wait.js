'use strict';
// Node's part of a waiting process: see README.md.
//
// Node requires this file before it loads the script, since the host has named it in NODE_OPTIONS.  It returns when a
// request is there; then Node goes on to the script, as it always does.

const fs = require('fs');
const path = require('path');

// Files bear a time that may be a few ms behind.
const STARTED_NS = BigInt(Date.now() - 20) * 1000000n;

// What has had its effect when Node has started; where a request has others, it gets a Node that was started with them.
const STEERING = ['HOME', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_COLLATE', 'LC_CTYPE', 'LC_MESSAGES', 'LC_MONETARY',
  'LC_NUMERIC', 'LC_TIME', 'TZ'];
const steering = () => STEERING.map((name) => process.env[name]).join('\0');

function takeBackHook() {
  const rest = (process.env.NODE_OPTIONS || '').replace(/^--require[ =]\S*fcgi-host-wait\.js ?/, '');
  if (rest) process.env.NODE_OPTIONS = rest;
  else delete process.env.NODE_OPTIONS;
  const options = {};
  for (const name of Object.keys(process.env)) {
    if (!name.startsWith('FCGI_HOST_')) continue;
    options[name.slice(10)] = process.env[name];
    delete process.env[name];
  }
  return options;
}

// --- modules loaded ahead

function state(file) {
  try {
    const s = fs.statSync(file, { bigint: true });
    return { text: [s.dev, s.ino, s.size, s.mtimeNs, s.ctimeNs].join(' '), isUnsure: s.ctimeNs >= STARTED_NS };
  } catch {
    return { text: '', isUnsure: true };
  }
}

const folderOfScript = () => path.join(path.dirname(fs.realpathSync(process.argv[1])), '/');

// As the script would find them.  What cannot be loaded is named in the log, where the operator has asked for it.
function load(names, areLearnt) {
  if (names.length === 0 || !process.argv[1]) return [];
  const folder = folderOfScript();
  const requireForScript = require('module').createRequire(path.join(folder, 'script.js'));
  for (const name of names) {
    try {
      requireForScript(name.startsWith('node_modules/') ? folder + name : name);
    } catch (e) {
      if (!areLearnt) fs.writeSync(2, `fcgi-host: preload: ${name}: ${String(e.message).split('\n')[0]}\n`);
    }
  }
  // A file that changed while we loaded it counts as changed for good.
  return Object.keys(require.cache).filter((file) => file !== __filename).map((file) => ({ path: file, ...state(file) }));
}

const hasChanged = (file) => file.isUnsure || state(file.path).text !== file.text;

// --- messages

function send(control, type, payload) {
  const message = Buffer.alloc(5 + payload.length);
  message.writeUInt32BE(1 + payload.length, 0);
  message.write(type, 4, 'latin1');
  payload.copy(message, 5);
  try {
    for (let sent = 0; sent < message.length;) sent += fs.writeSync(control, message, sent);
  } catch { /* the host is gone: the next read says so */ }
}

function receive(control, length) {
  const data = Buffer.alloc(length);
  for (let got = 0; got < length;) {
    let count = 0;
    try {
      count = fs.readSync(control, data, got, length - got, null);
    } catch { /* the same */ }
    if (count === 0) process.reallyExit(0);
    got += count;
  }
  return data;
}

function receiveMessage(control) {
  const message = receive(control, receive(control, 4).readUInt32BE(0));
  return { isEnvironment: message[0] === 0x45, items: message.subarray(1).toString('utf8').split('\0').filter(Boolean) };
}

function wait(control) {
  send(control, 'R', Buffer.alloc(0));
  for (;;) {
    const message = receiveMessage(control);
    if (message.isEnvironment) return message.items;
  }
}

// The name by which the next ones load this file ahead; none where it is the script's own.
function nameOf(file, folder) {
  if (file.startsWith(`${folder}node_modules/`)) return file.slice(folder.length);
  if (file.startsWith(folder)) return undefined;
  const root = require('module').globalPaths.map((dir) => path.join(dir, '/')).find((dir) => file.startsWith(dir));
  return root && file.slice(root.length);
}

function learn(control, known) {
  try {
    // The script may have closed all descriptors, and opened others.
    if (fs.fstatSync(control).ino !== known.socket) return;
    const folder = folderOfScript();
    const builtins = process.moduleLoadList.filter((name) => /^NativeModule [a-z]/.test(name) && !known.builtins.has(name))
      .map((name) => name.slice(13)).filter((name) => !name.startsWith('internal/'));
    const files = Object.keys(require.cache).map((file) => nameOf(file, folder)).filter(Boolean);
    send(control, 'M', Buffer.from([...builtins, ...files].map((name) => `${name}\0`).join('')));
  } catch { /* nobody to tell */ }
}

// --- from the start to the request

function setEnvironment(items) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const item of items) {
    const at = item.indexOf('=');
    process.env[item.slice(0, at)] = item.slice(at + 1);
  }
}

// --- rehearsal: V8 compiles a function when it is first called

function rehearseMessages() {
  const file = fs.openSync(require.resolve('./rehearsal.bin'), 'r');
  receiveMessage(file);
  fs.closeSync(file);
  setEnvironment(Object.entries(process.env).map(([name, value]) => `${name}=${value}`));
}

function rehearseModules() {
  const file = require.resolve('./rehearsal.js');
  require(file);
  delete require.cache[file];
}

// The pipe of stdout is opened once more, and gets no byte.  Of another user's pipe we cannot have one.
function rehearseStreams() {
  if (!fs.fstatSync(1).isFIFO()) return;
  const { Writable } = require('stream');
  const { Socket } = require('net');
  new console.Console(new Writable({ write: (data, encoding, done) => done() })).log('');
  const pipe = new Socket({ fd: fs.openSync('/proc/self/fd/1', fs.constants.O_WRONLY), readable: false, writable: true });
  pipe.write('');
  pipe.destroy();
}

// What nearly every script will do, without effect.
function rehearse() {
  for (const part of [rehearseMessages, rehearseModules, rehearseStreams]) {
    try {
      part();
    } catch { /* it will only be slower */ }
  }
}

// --- a usual start, with the same descriptors

// The path that was given to execve(): for a script its own, not the interpreter's.
function startedPath() {
  const AT_EXECFN = 31;
  const auxv = fs.readFileSync('/proc/self/auxv');
  const text = Buffer.alloc(4096);
  for (let at = 0; at + 16 <= auxv.length; at += 16) {
    if (auxv.readBigUInt64LE(at) !== BigInt(AT_EXECFN)) continue;
    const memory = fs.openSync('/proc/self/mem', 'r');
    fs.readSync(memory, text, 0, text.length, auxv.readBigUInt64LE(at + 8));
    fs.closeSync(memory);
  }
  return text.toString('utf8', 0, text.indexOf(0));
}

// Node cannot exec: the request is passed on to a Node of its own, which has our descriptors.
function startAnew() {
  const command = fs.readFileSync('/proc/self/cmdline', 'utf8').split('\0').slice(0, -1);
  const started = startedPath();
  const at = Math.max(command.indexOf(started), 0);   // the kernel has put the interpreter before a script
  const program = command[at] === started ? started : process.execPath;
  const result = require('child_process').spawnSync(program, command.slice(at + 1), { argv0: command[at], stdio: 'inherit' });
  if (result.signal) process.kill(process.pid, result.signal);
  process.reallyExit(result.status === null ? 126 : result.status);
}

function run() {
  const options = takeBackHook();
  if (options.PARK === undefined) return;
  const control = Number(options.PARK);
  const builtins = new Set(process.moduleLoadList);
  const files = load((options.PRELOAD || '').split(':').filter(Boolean), Boolean(options.LEARN));
  rehearse();
  const startedWith = steering();
  setEnvironment(wait(control));
  if (startedWith !== steering() || files.some(hasChanged)) startAnew();
  if (options.LEARN) {
    const known = { builtins, socket: fs.fstatSync(control).ino };
    process.on('exit', () => learn(control, known));
  } else {
    fs.closeSync(control);
  }
}

delete require.cache[__filename];
run();
