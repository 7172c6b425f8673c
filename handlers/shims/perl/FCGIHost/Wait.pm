# Perl's part of a waiting process: see README.md.
#
# Perl loads this module before it reads the script, since the host has named it in PERL5OPT.  It returns when a
# request is there; then Perl goes on to the script, as it always does.  No pragma and no module is used here: a
# script could see that they are loaded.
package FCGIHost::Wait;

# What has had its effect when Perl has started; where a request has others, it gets a Perl that was started with them.
sub steering { join "\0", map { "$_=$ENV{$_}" } sort grep { /^(?:LANG|LANGUAGE|LC_.*)$/ } keys %ENV }

sub command {
	open(my $file, "<", "/proc/self/cmdline") or die "/proc/self/cmdline: $!\n";
	local $/;
	return split /\0/, <$file>, -1;
}

# As the host started us, with the environment that %ENV has now.
sub start_anew {
	my @command = command();
	pop @command;
	exec { -x $^X ? $^X : "/proc/self/exe" } @command;
}

# --- modules loaded ahead

sub script_folder { $0 =~ m{^(.*/)} ? $1 : "./" }

# Items are File/Spec.pm=/usr/share/perl/File/Spec.pm, as learnt, or File::Spec, as people write.
sub load {
	my %learnt;
	for my $item (split /(?<!:):(?!:)/, $_[0]) {
		my ($file, $path) = split /=/, $item, 2;
		if ($file !~ /\.p[ml]$/) {
			$file =~ s{::}{/}g;
			$file .= ".pm";
		}
		$learnt{$file} = $path if defined $path;
		local ($@, $!);
		eval { require $file };      # what cannot be loaded is the script's own affair
	}
	return \%learnt;
}

# Would the script have got another module of this name?
sub is_foreign {
	my ($file, $learnt) = @_;
	return -e script_folder() . $file || (defined $learnt->{$file} && $learnt->{$file} ne $INC{$file});
}

sub state { join " ", (stat $_[0])[0, 1, 7, 9, 10] }

# perl has only whole seconds: what changed in the second of our start, or later, may have changed after it was read.
sub is_unsure { ((stat $_[0])[10] // $^T) >= $^T }

# --- messages

sub send_message {
	my ($control, $type, $payload) = @_;
	my $message = pack("N", 1 + length $payload) . $type . $payload;
	local $SIG{PIPE} = "IGNORE";
	while (length $message) {
		my $sent = syswrite $control, $message;
		return unless $sent;
		substr($message, 0, $sent, "");
	}
}

sub receive {
	my ($control, $length) = @_;
	my $data = "";
	while (length $data < $length) {
		sysread($control, $data, $length - length $data, length $data) or exit 0;
	}
	return $data;
}

sub wait_for_environment {
	my ($control) = @_;
	send_message($control, "R", "");
	while (1) {
		my $message = receive($control, unpack "N", receive($control, 4));
		return split /\0/, substr $message, 1 if $message =~ /^E/;
	}
}

sub learn {
	my ($control, $before) = @_;
	my $folder = script_folder();
	my @items = map { "$_=$INC{$_}\0" }
		grep { !$before->{$_} && !ref $INC{$_} && index($INC{$_}, $folder) != 0 && m{^[^/].*\.p[ml]$} } keys %INC;
	send_message($control, "M", join "", @items);
}

# --- from the start to the request

sub take_back_hook {
	my ($ours) = __FILE__ =~ m{^(.*)/FCGIHost/Wait\.pm$};
	@INC = grep { $_ ne $ours } @INC;
	delete $INC{"FCGIHost/Wait.pm"};
	$ENV{PERL5OPT} =~ s/^\S+ -MFCGIHost::Wait ?// if defined $ENV{PERL5OPT};
	delete $ENV{PERL5OPT} unless length($ENV{PERL5OPT} // "");
	$ENV{LD_PRELOAD} =~ s/^[^:]*fcgi-host-park\.so:?// if defined $ENV{LD_PRELOAD};
	delete $ENV{LD_PRELOAD} unless length($ENV{LD_PRELOAD} // "");
	return map { s/^FCGI_HOST_//r => delete $ENV{$_} } grep { /^FCGI_HOST_/ } keys %ENV;
}

sub set_environment {
	my $before = steering();
	%ENV = ();
	for my $item (@_) {
		my ($name, $value) = split /=/, $item, 2;
		$ENV{$name} = $value;
	}
	return $before eq steering();
}

# The script has been opened already.  Is it still the one?
sub is_script_the_same {
	my ($dev, $ino) = stat $0;
	return 1 unless defined $ino;
	for my $fd (3 .. 20) {
		my @is = stat "/proc/self/fd/$fd" or next;
		return 1 if $is[0] == $dev && $is[1] == $ino;
	}
	return $0 eq "-e" || $0 eq "-";
}

# Returns in the children only: the preloaded library has its own fork().
sub become_zygote {
	local $ENV{FCGI_HOST_FORK} = join "\n", $0, @_;
	fork;
}

sub prepare {
	my ($list, $start, $fd) = @_;
	my %before = %INC;
	my $learnt = load($list);
	my @loaded = grep { !exists $before{$_} } keys %INC;
	if (grep { is_foreign($_, $learnt) } @loaded) {
		%ENV = %$start;
		delete $ENV{FCGI_HOST_PRELOAD};
		open(my $control, "+<&=", $fd);
		fcntl $control, 2, 0;
		start_anew();
	}
	return map { $INC{$_} } @loaded;
}

sub run {
	my %start = %ENV;
	my %option = take_back_hook();
	my $fd = $option{ZYGOTE} // $option{PARK};
	return unless defined $fd;
	my %before = %INC;
	my @files = prepare($option{PRELOAD} // "", \%start, $fd);
	my %state = map { $_ => state($_) } @files;
	my $is_unsure = grep { is_unsure($_) } @files;

	become_zygote(@files) if defined $option{ZYGOTE};
	srand if defined $option{ZYGOTE};
	open(my $control, "+<&=", $fd) or exit 0;
	fcntl $control, 2, 1;                # F_SETFD, FD_CLOEXEC
	my $is_fit = set_environment(wait_for_environment($control));
	start_anew() if !$is_fit || !is_script_the_same() || $is_unsure || grep { state($_) ne $state{$_} } @files;
	if ($option{LEARN}) {
		# Compiled first, so it runs last.
		eval 'END { learn($control, \%before) }';
	}
}

{
	local ($_, $@, $!, $?);
	run();
}
1;
