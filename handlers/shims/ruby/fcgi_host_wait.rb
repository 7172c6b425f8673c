# frozen_string_literal: true

# Ruby's part of a waiting process: see README.md.
#
# Ruby requires this file before it runs the script, since the host has named it in RUBYOPT.  It returns when a
# request is there; then Ruby goes on to the script, as it always does.
module FCGIHostWait
  # What has had its effect when Ruby has started; where a request has others, it gets a Ruby that was started with them.
  STEERING = /\A(?:LANG|LANGUAGE|LC_.*|HOME)\z/n.freeze
  AT_EXECFN = 31
  STARTED = Time.now

  module_function

  def steering
    ENV.select { |name, _| name.match?(STEERING) }
  end

  # --- a usual start, with the same descriptors

  # The path that was given to execve(): for a script its own, not the interpreter's.
  def started_path
    auxv = IO.binread("/proc/self/auxv").unpack([0].pack("J").bytesize == 8 ? "Q*" : "L*")
    File.open("/proc/self/mem", "rb") do |memory|
      memory.sysseek(auxv.each_slice(2).to_h.fetch(AT_EXECFN))
      memory.sysread(4096).unpack1("Z*")
    end
  rescue SystemCallError, KeyError, RangeError
    nil
  end

  # As the host has started us, with the environment that ENV has now.  The kernel has put the interpreter before a script.
  def start_anew
    command = IO.binread("/proc/self/cmdline").split("\0", -1)[0...-1]
    path = started_path
    at = command.index(path)
    exec([path, command[at]], *command.drop(at + 1), close_others: false) if at
    exec(["/proc/self/exe", command.first], *command.drop(1), close_others: false)
  end

  # --- files loaded ahead

  # What is not there or fails is named in the log, where the operator has asked for it.
  def load_ahead(list, is_learnt)
    list.split(":").each do |name|
      require name
    rescue Exception => e # rubocop:disable Lint/RescueException
      warn "fcgi-host: preload: #{name}: #{e.message.lines.first&.chomp}" unless is_learnt
    end
  end

  def state(path)
    s = File.stat(path)
    [s.dev, s.ino, s.size, s.mtime, s.ctime]
  rescue SystemCallError
    nil
  end

  # One that changed while we loaded it counts as changed for good.  Files bear a time that may be a few ms behind.
  def note(paths)
    paths.select { |path| path.start_with?("/") }.to_h do |path|
      is = state(path)
      [path, is && is.last < STARTED - 0.02 ? is : nil]
    end
  end

  # Ruby has opened the script and read its beginning.
  def script
    path = File.absolute_path($PROGRAM_NAME)
    File.file?(path) ? [path] : []
  end

  # --- messages

  def tell(control, type, payload = "")
    control.syswrite([1 + payload.bytesize].pack("N") + type + payload.b)
  rescue SystemCallError, IOError
    nil # the host is gone: the next read says so
  end

  def receive(control, length)
    data = String.new(encoding: Encoding::BINARY)
    data << control.sysread(length - data.bytesize) while data.bytesize < length
    data
  rescue EOFError, SystemCallError
    exit!(0)
  end

  # Of a child that a zygote has forked nobody knows yet.
  def wait(control, is_forked)
    tell(control, "R", is_forked ? [Process.pid].pack("N") : "")
    loop do
      message = receive(control, receive(control, 4).unpack1("N"))
      return message.byteslice(1..).split("\0") if message.start_with?("E")
    end
  end

  # --- what the next ones load ahead

  # The name by which a usual start finds the very file: json/version.rb
  def name_of(feature, path)
    folder = path.select { |dir| feature.start_with?(File.join(dir, "")) }.max_by(&:length)
    return unless folder

    name = feature.delete_prefix(File.join(folder, ""))
    name if path.find { |dir| File.exist?(File.join(dir, name)) } == folder
  end

  # The script may have closed all descriptors, and opened others, or forked.
  def learn(control, known)
    is = control.stat
    return unless is.socket? && is.ino == known[:socket] && Process.pid == known[:pid]

    folder = File.join(File.dirname(File.realpath($PROGRAM_NAME)), "")
    features = ($LOADED_FEATURES - known[:features]).reject { |feature| feature.start_with?(folder) }
    # Bundler chooses versions; what was loaded before it would be in its way.
    features = [] if features.any? { |feature| feature.include?("/bundler/") }
    tell(control, "M", features.filter_map { |feature| name_of(feature, known[:path]) }.map { |name| "#{name}\0" }.join)
  rescue SystemCallError, IOError
    nil
  end

  # --- from the start to the request

  def take_back(name, pattern)
    return unless ENV[name]

    rest = ENV[name].sub(pattern, "")
    ENV[name] = rest.empty? ? nil : rest
  end

  def take_back_hook
    take_back("RUBYOPT", /\A-r\S*fcgi_host_wait\.rb ?/)
    take_back("LD_PRELOAD", /\A[^:]*fcgi-host-park\.so:?/)
    ENV.keys.grep(/\AFCGI_HOST_/).to_h { |name| [name.delete_prefix("FCGI_HOST_"), ENV.delete(name)] }
  end

  def environment=(items)
    ENV.clear
    items.each do |item|
      name, value = item.split("=", 2)
      ENV[name] = value
    end
  end

  # Returns in the children only: the preloaded library has its own fork().
  def become_zygote(paths)
    GC.start
    ENV["FCGI_HOST_FORK"] = paths.join("\n")
    fork
    ENV.delete("FCGI_HOST_FORK")
    Random.srand
    # The library's generator for temporary names, which tmpdir made when it was loaded.
    names = Dir::Tmpname.const_get(:RANDOM) if defined?(Dir::Tmpname) && Dir::Tmpname.const_defined?(:RANDOM)
    names.send(:initialize) if names.is_a?(Random)
  end

  def open_control(fd)
    control = IO.for_fd(fd.to_i, "r+b", autoclose: false)
    control.sync = true
    control.close_on_exec = true
    control
  end

  def hand_over(control, is_forked, files)
    started_with = steering
    self.environment = wait(control, is_forked)
    start_anew if started_with != steering || files.any? { |path, is| is.nil? || state(path) != is }
  end

  def run
    options = take_back_hook
    fd = options["ZYGOTE"] || options["PARK"]
    return unless fd

    known = { features: $LOADED_FEATURES.dup, path: $LOAD_PATH.map(&:to_s) }
    load_ahead(options["PRELOAD"].to_s, options["LEARN"])
    files = note(script + ($LOADED_FEATURES - known[:features]))
    become_zygote(files.keys) if options["ZYGOTE"]
    control = open_control(fd)
    hand_over(control, options["ZYGOTE"], files)
    return control.tap { |io| io.autoclose = true }.close unless options["LEARN"]

    known.update(pid: Process.pid, socket: control.stat.ino)
    at_exit { learn(control, known) }
  end
end

begin
  FCGIHostWait.run
ensure
  Object.send(:remove_const, :FCGIHostWait)
end
