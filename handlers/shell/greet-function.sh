#!/bin/sh
# The greeting as a function: JSON on stdin, JSON on stdout, and an exit status
# that is not 0 where there is no answer.  The shell has no JSON parser: of one
# line, an object with the one key "name", the string is passed on undecoded.
LC_ALL=C exec awk '
	BEGIN {
		before = "^[ \t\r]*[{][ \t]*\"name\"[ \t]*:[ \t]*\""
		string = "([^\"\\\\\001-\037]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f])*"
		after = "\"[ \t]*[}][ \t\r]*$"
	}
	NR == 1 && $0 ~ (before string after) { name = $0; is_found = sub(before, "", name) && sub(after, "", name) }
	END {
		if (NR == 1 && is_found) {
			printf "{\"greeting\":\"Hello, %s!\"}", name
			exit 0
		}
		print "expected {\"name\":\"...\"}" >"/dev/stderr"
		exit 1
	}'
