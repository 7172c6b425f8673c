#!/usr/bin/ruby
# A CGI script that prints all that it can see of its process.
features = $LOADED_FEATURES.dup
state = [$;, $,, $/, $\, $., $!, $@, $_, $?, $~, $-w, $VERBOSE, $DEBUG, $-p, $-l, $-a, $-i, $stdout.equal?(STDOUT), $>.equal?(STDOUT)]

def show(*values)
  puts values.map(&:inspect).join(" ")
end

puts "Content-Type: text/plain", ""
show "state", state
# The one name that stays: see handlers/shims/README.md.
show "features", features.reject { |f| f.end_with?("fcgi_host_wait.rb") }
show "path", $LOAD_PATH
show "names", Object.constants.sort, global_variables.sort, binding.local_variables
show "methods", Kernel.private_instance_methods(false).sort, Object.private_instance_methods(false).sort, Object.methods(false).sort
show "argv", $PROGRAM_NAME, __FILE__, __dir__, ARGV, $0.encoding, $0.frozen?
show "environment", ENV.to_a
show "encodings", Encoding.default_external, Encoding.default_internal, Encoding.find("locale"), Encoding.find("filesystem")
show "streams", [STDIN, STDOUT, STDERR].map { |io| [io.fileno, io.sync, io.external_encoding, io.internal_encoding, io.close_on_exec?] }
show "signals", (Signal.list.keys - %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM PIPE]).to_h { |name| [name, (trap(name, "DEFAULT") rescue $!.class)] }
show "process", Process.getpgrp == $$, File.umask.to_s(8), Process.getpriority(Process::PRIO_PROCESS, 0), Process.euid, Process.groups
show "pid", $$ == File.readlink("/proc/self").to_i
show "threads", Thread.list.size, Thread.main.equal?(Thread.current), Thread.current.keys, Thread.abort_on_exception
show "callers", caller
show "collector", GC.disable, GC.enable, GC.stress
show "self", self, self.class, self.singleton_methods, self.instance_variables
show "open", Dir.children("/proc/self/fd").map(&:to_i).sort
$stdout.flush
system("/bin/sh", "./process.sh")
show "stdin", $stdin.read
show "data", DATA.read, DATA.pos, DATA.lineno, DATA.fileno
at_exit { puts "at_exit, registered first" }
at_exit { puts "at_exit, registered last, #{$!.inspect}" }
KEPT = Object.new
ObjectSpace.define_finalizer(KEPT, proc { puts "an object's end" })
warn "a warning"
$stderr.puts "stderr says so"
begin
  case ENV["QUERY_STRING"]
  when "raise" then def inner(value) = {}.fetch(value)
                    inner(7)
  when "text" then abort "a text"
  when "exit" then exit 7
  when "syntax" then eval "a b c )"
  when "_exit" then $stdout.flush
                    exit! 5
  when "signal" then Process.kill("USR1", $$)
                     sleep 10
  when "throw" then throw :nothing
  when "interrupt" then Process.kill("INT", $$)
                        sleep 10
  when "use" then require "json"
                  require "set"
                  show $LOADED_FEATURES - features
  end
ensure
  puts "ensured"
end
print "no end of line at the end"
__END__
data, line 1
data, line 2
