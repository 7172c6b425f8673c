# Perl's part of a waiting process: see README.md.
#
# Perl loads this module before it reads the script, since the host has named it in PERL5OPT.  It returns when a
# request is there; then Perl goes on to the script, as it always does.  No pragma and no module is used here: a
# script could see that they are loaded.
package FCGIHost::Wait;

# What has had its effect when Perl has started; where a request has others, it gets a Perl that was started with them.
sub steers { $_[0] eq "LANG" || $_[0] eq "LANGUAGE" || index($_[0], "LC_") == 0 }
sub steering { join "\0", map { "$_=$ENV{$_}" } sort grep { steers($_) } keys %ENV }

sub strings {
	open(my $file, "<", "/proc/self/$_[0]") or return;
	local $/;
	my @strings = split /\0/, <$file>, -1;
	pop @strings;
	return @strings;
}

# The path that was given to execve(): for a script its own, not the interpreter's.
sub started_path {
	my $at_execfn = 31;
	open(my $auxv, "<:raw", "/proc/self/auxv") or return;
	local $/;
	my %at = unpack length(pack "L!", 0) == 8 ? "Q*" : "L*", <$auxv>;
	open(my $memory, "<:raw", "/proc/self/mem") or return;
	sysseek($memory, $at{$at_execfn}, 0) && sysread($memory, my $text, 4096) or return;
	return (split /\0/, $text)[0];
}

# As the host has started us, with the environment that %ENV has now.
sub start_anew {
	my @command = strings("cmdline");
	my $path = started_path();
	my @script = @command;
	# The kernel has put the interpreter before a script.
	shift @script while defined $path && @script && $script[0] ne $path;
	exec { $path } @script if @script;
	exec { -x $^X ? $^X : "/proc/self/exe" } @command;
}

# --- modules loaded ahead

sub script_folder { $0 =~ m{^(.*/)} ? $1 : "./" }

# Where a usual start would find it: File/Spec.pm in /usr/share/perl.
sub found {
	my ($file, @path) = @_;
	for my $folder (@path) {
		return "$folder/$file" if !ref $folder && -e "$folder/$file";
	}
	return "";
}

# Names are File/Spec.pm, as learnt, or File::Spec, as people write.  What is not there or fails is named in the log,
# where the operator has asked for it.
sub load {
	my ($list, $is_learnt) = @_;
	for my $name (split /(?<!:):(?!:)/, $list) {
		my $file = $name;
		if ($file !~ /\.p[ml]\z/) {
			$file =~ s{::}{/}g;
			$file .= ".pm";
		}
		local ($@, $!);
		next if eval { require $file } || $is_learnt;
		my ($why) = split /\n/, $@;
		print STDERR "fcgi-host: preload: $name: $why\n";
	}
}

# Perl's own stat() has whole seconds only, and a module for more would be seen.
sub number_of_statx {
	my %numbers = (3 => 383, 21 => 383, 22 => 379, 40 => 397, 62 => 332, 183 => 291, 243 => 291, 258 => 291);
	open(my $exe, "<:raw", "/proc/self/exe") or return;
	sysread($exe, my $head, 20) == 20 or return;
	return $numbers{unpack "x18 S", $head};
}

my ($statx, $started);

# Changed when, in seconds and nanoseconds, and all that tells whether it is the same.
sub details {
	my ($path) = @_;
	my $room = "\0" x 256;
	# At most its name, AT_FDCWD, no flags, the basic fields.
	if ($statx && syscall($statx, -100, "$path", 0, 0x7ff, $room) == 0) {
		my @is = unpack "x32 Q Q x48 q L x4 q L x12 L L", $room;
		return ($is[2] + $is[3] / 1e9, "@is");
	}
	my @is = stat $path or return;
	return ($is[10] + 1, "@is[0, 1, 7, 9, 10]");
}

sub state { (details($_[0]))[1] // "" }

sub prepare_states {
	$statx = number_of_statx();
	# Our own entry in /proc is as old as we are.  Files bear a time that may be a few ms behind.
	$started = ((details("/proc/$$"))[0] // $^T) - 0.02;
}

sub is_unsure { ((details($_[0]))[0] // $started) >= $started }

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

# Of a child that a zygote has forked nobody knows yet.
sub wait_for_environment {
	my ($control, $is_forked) = @_;
	send_message($control, "R", $is_forked ? pack "N", $$ : "");
	while (1) {
		my $message = receive($control, unpack "N", receive($control, 4));
		return split /\0/, substr $message, 1 if $message =~ /^E/;
	}
}

# The modules that a usual start finds by their name alone, and that are not the script's own.  The script may have
# closed all descriptors, and opened others, or forked.
sub learn {
	my ($control, $known) = @_;
	my $folder = script_folder();
	my @is = stat $control;
	return unless @is && $is[1] == $known->{socket} && $$ == $known->{pid};
	my @files = grep { !$known->{modules}{$_} && !ref $INC{$_} && index($INC{$_}, $folder) != 0 && $INC{$_} eq found($_, @{$known->{path}}) }
		grep { m{^[^/].*\.p[ml]\z} } keys %INC;
	send_message($control, "M", join "", map { "$_\0" } sort @files);
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

# Would the script have got another module of this name, from its own folder?
sub is_hidden { -e script_folder() . $_[0] }

# Returns the names and files that were loaded.
sub prepare {
	my ($option, $start, $fd) = @_;
	my %before = %INC;
	load($option->{PRELOAD} // "", $option->{LEARN});
	my @loaded = grep { !exists $before{$_} } keys %INC;
	if (grep { is_hidden($_) } @loaded) {
		%ENV = %$start;
		delete $ENV{FCGI_HOST_PRELOAD};
		open(my $control, "+<&=", $fd);
		fcntl $control, 2, 0;        # F_SETFD
		start_anew();
	}
	return map { $_ => $INC{$_} } grep { !ref $INC{$_} } @loaded;
}

sub hand_over {
	my ($control, $is_forked, %loaded) = @_;
	my @files = values %loaded;
	my %state = map { $_ => state($_) } @files;
	my $is_unsure = grep { is_unsure($_) } @files;
	my $is_fit = set_environment(wait_for_environment($control, $is_forked));
	start_anew() if !$is_fit || !is_script_the_same() || $is_unsure || grep { state($_) ne $state{$_} } @files;
	start_anew() if grep { is_hidden($_) } keys %loaded;
	$^T = time;
}

sub run {
	my %start = %ENV;
	my %option = take_back_hook();
	my $fd = $option{ZYGOTE} // $option{PARK};
	return unless defined $fd;
	prepare_states();
	my %known = (modules => {%INC}, path => [@INC]);
	my %loaded = prepare(\%option, \%start, $fd);

	if (defined $option{ZYGOTE}) {
		become_zygote(values %loaded);
		srand;
	}
	open(my $control, "+<&=", $fd) or exit 0;
	fcntl $control, 2, 1;                # F_SETFD, FD_CLOEXEC
	hand_over($control, defined $option{ZYGOTE}, %loaded);
	if ($option{LEARN}) {
		@known{"pid", "socket"} = ($$, (stat $control)[1]);
		# Compiled first, so it runs last.
		eval 'END { learn($control, \%known) }';
	}
}

{
	local ($_, $@, $!, $?);
	run();
}
delete @main::{"BEGIN", "FCGIHost::"};
1;
