<?php
// A page for php-cgi or PHP-FPM.  Both take the page to run from
// SCRIPT_FILENAME, which the handler's `env` sets.
header('Content-Type: text/plain; charset=utf-8');
echo "Hello from PHP\n";
echo 'pid: ', getmypid(), "\n";
echo 'method: ', $_SERVER['REQUEST_METHOD'], "\n";
echo 'uri: ', $_SERVER['REQUEST_URI'] ?? '', "\n";
