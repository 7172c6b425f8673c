// Loaded by fcgi-host-wait.js, so that loading a module has been done before.
'use strict';

module.exports = {};
