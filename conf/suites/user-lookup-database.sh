#!/bin/bash
# Setup of the suite user-lookup: a PostgreSQL of its own with a table of users (Debian: postgresql).
# Prints the variables with which a client finds it and then `ready`, serves until standard input ends, and leaves nothing.
set -euo pipefail
umask 077

USERS=10000
DATABASE=postgres

die() { echo "user-lookup-database: $*" >&2; exit 1; }

bin=''
for bin in /usr/lib/postgresql/*/bin; do :; done        # the newest
[ -x "$bin/initdb" ] || die 'no PostgreSQL in /usr/lib/postgresql (Debian: postgresql)'

# PostgreSQL does not run as root. Its folder is closed to all others but root, since whoever can connect needs no password.
as=(setpriv)
owner=$(id -un)
if [ "$(id -u)" = 0 ]; then
	owner=postgres
	as+=(--reuid=postgres --regid=postgres --init-groups)
fi

# In the folder that the suite has for it, if that is short: the path of a socket has 107 bytes.
parent=${FCGI_HOST_SETUP_DIR:-/tmp}
[ ${#parent} -le 64 ] || parent=/tmp
dir=$(mktemp -d "$parent/fcgi-host-users.XXXXXX")
server=''
clean_up() {
	trap '' INT TERM HUP
	if [ -n "$server" ]; then
		kill -INT "$server" 2>/dev/null || true         # PostgreSQL's fast shutdown
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

chown "$owner" "$dir"
cd "$dir"
log=$dir/log
failed() { cat "$log" >&2; die "$1"; }

"${as[@]}" "$bin/initdb" -D "$dir/data" -U "$owner" --auth=trust --encoding=UTF8 --locale=C --no-sync >"$log" 2>&1 ||
	failed 'initdb failed'
# It ends even if this program is killed.
"${as[@]}" --pdeathsig INT "$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c unix_socket_permissions=0700 \
	-c max_connections=300 -c fsync=off </dev/null >"$log" 2>&1 &
server=$!

export PGHOST=$dir PGPORT=5432 PGUSER=$owner PGDATABASE=$DATABASE
tries=600
until "$bin/pg_isready" -q; do
	tries=$((tries - 1))
	kill -0 "$server" 2>/dev/null && [ $tries -gt 0 ] || failed 'PostgreSQL did not start'
	sleep 0.05
done

"$bin/psql" -q -v ON_ERROR_STOP=1 -v users=$USERS >"$dir/psql.log" 2>&1 <<'EOF' || { cat "$dir/psql.log" >&2; failed 'filling the table failed'; }
CREATE TABLE users (id integer PRIMARY KEY, name text NOT NULL, email text NOT NULL);
INSERT INTO users SELECT id, 'User ' || id, 'user' || id || '@example.org' FROM generate_series(1, :users) AS id;
ANALYZE users;
EOF

for name in PGHOST PGPORT PGUSER PGDATABASE; do
	echo "$name=${!name}"
done
echo ready
cat >/dev/null || true          # until standard input ends
