#!/usr/bin/perl
# A CGI script that prints all that it can see of its process; uses no module, to see those that are there.
sub shown { my @values = map { defined $_ ? $_ : "undef" } @_; s/([^ -~])/sprintf "\\x%02x", ord $1/ge for @values; "@values" }
sub show { print shown(@_), "\n" }

my @state = ($., $,, $/, $\, $|, $;, "$!", $@, $?, $_, $^W, $^H, %^H, ${^WARNING_BITS}, $^D, $^P, $^S, ${^TAINT}, ${^UNICODE}, ${^OPEN},
	${^UTF8LOCALE}, ${^GLOBAL_PHASE});
my %loaded = %INC;
my $before = "$^T";
print "Content-Type: text/plain\n\n";
show("state", @state);
show("loaded", map { "$_=$loaded{$_}" } sort keys %loaded);
show("path", @INC);
# Where any sub without a name has been, there is __ANON__.
show("names", sort grep { !/^_<|^__ANON__/ } keys %main::);
show("files", sort grep { /^_</ } keys %main::);
show("argv", $0, __FILE__, @ARGV, $^X, $0 eq __FILE__);
show("environment", map { "$_=$ENV{$_}" } sort keys %ENV);
show("signals", map { "$_=" . ($SIG{$_} // "undef") } sort keys %SIG);
show("process", $$ == readlink "/proc/self", $<, $>, $(, $), getpgrp == $$, umask, getpriority(0, 0));
show("a caller", caller);
show("the time of the start is now", abs(time - $^T) < 3);
show("descriptors", map { fileno $_ } *STDIN, *STDOUT, *STDERR, *DATA);
show("layers", map { PerlIO::get_layers($_) } *STDIN, *STDOUT, *STDERR);
opendir my $fds, "/proc/self/fd";
show("open", sort { $a <=> $b } grep { /^\d/ } readdir $fds);
closedir $fds;
print qx(/bin/sh ./process.sh);
show("stdin", <STDIN>);
show("data", <DATA>);
show("at the end of the data", tell DATA);

package Kept { sub new { bless {} } sub DESTROY { print "an object's end in ${^GLOBAL_PHASE}\n" } }
our $kept = Kept->new;
END { print "END, compiled first, status $?\n" }
END { print "END, compiled last, status $?\n" }
warn "a warning\n";
warn "with a line";
print STDERR "stderr says so\n";
my $end = $ENV{QUERY_STRING};
if ($end eq "die") { sub inner { die "an exception" } inner(7) }
elsif ($end eq "text") { die "a text\n" }
elsif ($end eq "exit") { exit 7 }
elsif ($end eq "syntax") { eval "a b c d 1" or die $@ }
elsif ($end eq "_exit") { require POSIX; $| = 1; print ""; POSIX::_exit(5) }
elsif ($end eq "signal") { $| = 1; kill "USR1", $$; sleep 10 }
elsif ($end eq "errno") { $! = 5; die "errno" }
elsif ($end eq "use") { require Data::Dumper; require IO::Handle; show(sort keys %INC) }
print "no end of line at the end";
__END__
data, line 1
data, line 2
