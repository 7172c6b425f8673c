#!/usr/bin/perl
# The smallest handler: a header, a blank line, a body.
use strict;
use warnings;

print "Content-Type: text/plain; charset=utf-8\n\n";
print "Hello from Perl\n";
print "pid: $$\n";
print "method: $ENV{REQUEST_METHOD}\n";
print "uri: ", $ENV{REQUEST_URI} // '', "\n";
