#!/bin/sh
# A CGI script that prints all that it can see of its process.
printf 'Content-Type: text/plain\n\n'
echo "== own"
echo "argv $0 $# $* flags $- last $? $!"
command -v local >/dev/null && set | grep -v '^\(PPID\|_\|SECONDS\|EPOCH.*\|RANDOM\|SRANDOM\|BASH_EXECUTION_STRING\|BASHPID\)='
trap
alias
umask
pwd
if [ -n "$BASH_VERSION" ]; then
	shopt
	set -o
	declare -F
	declare -p DIRSTACK GROUPS BASH_SOURCE FUNCNAME BASH_ARGV0
	[ "$SECONDS" -lt 3 ] && echo "it has just been started"
	exec {made}</dev/null && echo "the next descriptor is $made"
	exec {made}<&-
fi
/bin/sh ./process.sh
echo "stdin $(cat)"
echo "stderr says so" >&2
trap 'echo "at the end: $?"' EXIT
case $QUERY_STRING in
exit) exit 7 ;;
undefined) set -u; echo "$nothing" ;;
syntax) eval 'fi fi' ;;
errexit) set -e; false ;;
signal) kill -USR1 $$ ;;
exec) trap - EXIT; exec echo "another program" ;;
background) { sleep 0.1; echo late; } & wait ;;
esac
printf 'no end of line at the end'
