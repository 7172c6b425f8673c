#!/usr/bin/perl
# POST {"name":"Johnny"} is answered with {"greeting":"Hello, Johnny!"}.
use strict;
use warnings;
use JSON::PP;

my $BODY_MAX = 65536;
my $json = JSON::PP->new->utf8->canonical;

sub answer {
	my ($status, $value) = @_;
	print "Status: $status\nContent-Type: application/json\n\n", $json->encode($value), "\n";
	exit 0;
}

# JSON has strings and numbers; Perl has scalars.  JSON::PP writes a scalar as
# a number when it was read from one, which tells the two apart.
sub is_string {
	my ($value) = @_;
	return defined $value && !ref $value && $json->encode([$value]) =~ /^\["/;
}

binmode STDIN;
binmode STDOUT;
my $body = '';
while (length $body <= $BODY_MAX) {
	last unless read STDIN, $body, $BODY_MAX + 1 - length $body, length $body;
}
answer('413 Content Too Large', { error => 'the body is larger than 64 KiB' })
	if length $body > $BODY_MAX;

my $request = eval { $json->decode($body) };
answer('400 Bad Request', { error => 'expected a JSON object with one string, name' })
	unless ref $request eq 'HASH' && join(',', keys %$request) eq 'name' && is_string($request->{name});
answer('200 OK', { greeting => "Hello, $request->{name}!" });
