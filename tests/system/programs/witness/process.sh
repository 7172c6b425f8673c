# Run by a script: what a child of it is given, and what the kernel says of the script itself.
echo "== a child's environment"
/usr/bin/env
echo "== a child's state"
pwd
umask
ulimit -a
grep -E '^(Sig[PBIC]|Shd)' /proc/self/status
echo "== the script's state"
readlink /proc/$PPID/cwd /proc/$PPID/exe
tr '\0' '\n' < /proc/$PPID/cmdline
cat /proc/$PPID/comm /proc/$PPID/oom_score_adj /proc/$PPID/limits
# While it starts us, all signals wait.
while grep -q '^SigBlk:.*fffffffe7ffbfeff' /proc/$PPID/status; do :; done
grep -E '^(Umask|[UG]id|Groups|Threads|Sig[PBIC]|Shd|Cap|NoNew|Seccomp:)' /proc/$PPID/status
# its group and session as far as they are its own, its priority
sed 's/.*) //' /proc/$PPID/stat | { read -r _ _ group session _ _ _ _ _ _ _ _ _ _ _ priority nice _
	[ "$group" = "$PPID" ] && echo "its own group"
	[ "$session" = "$PPID" ] && echo "its own session"
	echo "priority $priority, nice $nice"; }
# The numbers of what Node opens for itself are no script's business.
for fd in /proc/$PPID/fd/*; do
	number=${fd##*/}
	target=$(readlink "$fd") || continue    # closed meanwhile
	[ "$1" = "no numbers" ] && [ "$number" -gt 2 ] && shown="" || shown=$number
	echo "$shown ${target%%\[*} $(grep -E '^(flags|pos)' /proc/$PPID/fdinfo/"$number" | tr '\n\t' '  ')"
done | if [ "$1" = "no numbers" ]; then sort; else cat; fi
