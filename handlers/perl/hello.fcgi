#!/usr/bin/perl
# hello.pl as a FastCGI program (Debian: libfcgi-perl).  Started with a
# listening socket on descriptor 0 it serves requests until it is told to end;
# started without one it is a CGI program and serves a single request.  So the
# word `process` alone switches it from persistent to per-request.
use strict;
use warnings;
use FCGI;

my $request = FCGI::Request();
while ($request->Accept() >= 0) {
	print "Content-Type: text/plain; charset=utf-8\n\n";
	print "Hello from Perl\n";
	print "pid: $$\n";
	print "method: $ENV{REQUEST_METHOD}\n";
	print "uri: ", $ENV{REQUEST_URI} // '', "\n";
	$request->Finish();
}
