# shellcheck shell=bash
# Installs Debian packages; sourced by ./quickstart and ./check.

# need_packages NAME ...: installs those of them that are missing, without
# starting their services.  Fails with a message when it cannot.
need_packages() {
	local package missing=() policy=/usr/sbin/policy-rc.d made_policy=no status=0

	if ! command -v dpkg-query >/dev/null; then
		echo "This is no Debian system: taking it that what is needed is installed ($*)." >&2
		return 0
	fi
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "These packages are missing; as root: apt-get install ${missing[*]}" >&2
		return 1
	fi
	echo "Installing: ${missing[*]}"
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
		made_policy=yes
	fi
	{ apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"; } </dev/null || status=1
	[ $made_policy = no ] || rm -f "$policy"
	[ $status = 0 ] || echo "Installing failed." >&2
	return $status
}
