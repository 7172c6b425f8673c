#!/bin/sh
# POST {"name":"Johnny"} is answered with {"greeting":"Hello, Johnny!"}.
#
# The shell has no JSON parser.  This takes exactly one form of JSON, an object
# whose only key, written "name", has a string as its value, and answers 400 to
# everything else.  The string is never decoded: what was between its quotes is
# checked to be a JSON string's content, and so it can stand in another JSON
# string as it is.  Two things are not checked: that the bytes are UTF-8, and
# that the two halves of a \uD83D\uDE00 pair belong together.
LC_ALL=C
export LC_ALL

answer() {      # status, body
	printf 'Status: %s\nContent-Type: application/json\n\n%s\n' "$1" "$2"
	exit 0
}

# NUL bytes become another byte that JSON refuses, as awk may stop at a NUL.
greeting=$(head -c 65537 | tr '\000' '\001' | awk '
	{ body = body $0 "\n" }
	END {
		if (length(body) > 65537) exit 3
		space = "[ \t\r\n]*"
		hex = "[0-9A-Fa-f]"
		string = "([^\"\\\\\001-\037]|\\\\[\"\\\\/bfnrt]|\\\\u" hex hex hex hex ")*"
		before = "^" space "[{]" space "\"name\"" space ":" space "\""
		after = "\"" space "[}]" space "$"
		if (body !~ (before string after)) exit 4
		sub(before, "", body)
		sub(after, "", body)
		printf "{\"greeting\":\"Hello, %s!\"}", body
	}')
case $? in
0) answer '200 OK' "$greeting" ;;
3) answer '413 Content Too Large' '{"error":"the body is larger than 64 KiB"}' ;;
*) answer '400 Bad Request' '{"error":"expected a JSON object with one string, name"}' ;;
esac
