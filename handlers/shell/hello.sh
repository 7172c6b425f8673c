#!/bin/sh
# The smallest handler: a header, a blank line, a body.
printf 'Content-Type: text/plain; charset=utf-8\n\n'
printf 'Hello from shell\n'
printf 'pid: %s\n' "$$"
printf 'method: %s\n' "$REQUEST_METHOD"
printf 'uri: %s\n' "$REQUEST_URI"
