'use strict';
// Node's part of a waiting process: see README.md.
//
// Node requires this file before it loads the script, since the host has named it in NODE_OPTIONS.  It returns when a
// request is there; then Node goes on to the script, as it always does.

const fs = require('fs');

const STARTED_NS = BigInt(Date.now()) * 1000000n;

// What has had its effect when Node has started; where a request has others, it gets a Node that was started with them.
const steers = (name) => /^(?:LANG|LANGUAGE|LC_.*|TZ|HOME)$/.test(name);
const steering = () => JSON.stringify(Object.entries(process.env).filter(([name]) => steers(name)).sort());

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

function state(path) {
  try {
    const s = fs.statSync(path, { bigint: true });
    return { text: [s.dev, s.ino, s.size, s.mtimeNs, s.ctimeNs].join(' '), isUnsure: s.ctimeNs >= STARTED_NS };
  } catch {
    return { text: '', isUnsure: true };
  }
}

// What cannot be loaded is the script's own affair.
function load(names) {
  for (const name of names) {
    try {
      require(name);
    } catch { /* as said */ }
  }
  // A file that changed while we loaded it counts as changed for good.
  return Object.keys(require.cache).filter((path) => path !== __filename).map((path) => ({ path, ...state(path) }));
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

function wait(control) {
  send(control, 'R', Buffer.alloc(0));
  for (;;) {
    const message = receive(control, receive(control, 4).readUInt32BE(0));
    if (message[0] === 0x45) return message.subarray(1).toString('utf8').split('\0').filter(Boolean);
  }
}

function learn(control, before) {
  const own = process.argv[1] ? require('path').dirname(fs.realpathSync(process.argv[1])) + '/' : '/';
  const fromElsewhere = (path) => !path.startsWith(own) || path.slice(own.length).startsWith('node_modules/');
  const builtins = process.moduleLoadList.filter((name) => /^NativeModule [a-z]/.test(name) && !before.has(name))
    .map((name) => name.slice(13)).filter((name) => !name.startsWith('internal/'));
  const files = Object.keys(require.cache).filter((path) => path !== __filename && fromElsewhere(path));
  send(control, 'M', Buffer.from([...builtins, ...files].map((name) => `${name}\0`).join('')));
}

// --- from the start to the request

function setEnvironment(items) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const item of items) {
    const at = item.indexOf('=');
    process.env[item.slice(0, at)] = item.slice(at + 1);
  }
}

// Node cannot exec: the request is passed on to a Node of its own, which has our descriptors.
function startAnew() {
  const result = require('child_process').spawnSync(process.execPath, [...process.execArgv, ...process.argv.slice(1)],
    { argv0: process.argv0, stdio: 'inherit' });
  if (result.signal) process.kill(process.pid, result.signal);
  process.reallyExit(result.status === null ? 126 : result.status);
}

function run() {
  const options = takeBackHook();
  if (options.PARK === undefined) return;
  const control = Number(options.PARK);
  const before = new Set(process.moduleLoadList);
  const files = load((options.PRELOAD || '').split(':').filter(Boolean));
  const startedWith = steering();
  setEnvironment(wait(control));
  if (startedWith !== steering() || files.some(hasChanged)) startAnew();
  if (options.LEARN) process.on('exit', () => learn(control, before));
  else fs.closeSync(control);
}

delete require.cache[__filename];
run();
