# frozen_string_literal: true

# Ruby's part of a waiting process: see README.md.
#
# Ruby requires this file before it runs the script, since the host has named it in RUBYOPT.  It returns when a
# request is there; then Ruby goes on to the script, as it always does.
module FCGIHostWait
  # What has had its effect when Ruby has started; where a request has others, it gets a Ruby that was started with them.
  STEERING = /\A(?:LANG|LANGUAGE|LC_.*|HOME)\z/n.freeze
  STARTED = Time.now

  module_function

  def steering
    ENV.select { |name, _| name.match?(STEERING) }
  end

  # As the host started us, with the environment that ENV has now.
  def start_anew
    command = IO.binread("/proc/self/cmdline").split("\0", -1)[0...-1]
    exec(["/proc/self/exe", command.first], *command.drop(1), close_others: false)
  end

  # --- files loaded ahead

  # What cannot be loaded is the script's own affair.
  def load_ahead(list)
    list.split(":").each do |name|
      require name
    rescue Exception
      next
    end
  end

  def state(path)
    s = File.stat(path)
    [s.dev, s.ino, s.size, s.mtime, s.ctime]
  rescue SystemCallError
    nil
  end

  # One that changed while we loaded it counts as changed for good.
  def note(paths)
    paths.select { |path| path.start_with?("/") }.to_h do |path|
      is = state(path)
      [path, is && is.last < STARTED ? is : nil]
    end
  end

  # --- messages

  def tell(control, type, payload = "")
    control.syswrite([1 + payload.bytesize].pack("N") + type + payload.b)
  rescue SystemCallError
    nil # the host is gone: the next read says so
  end

  def receive(control, length)
    data = String.new(encoding: Encoding::BINARY)
    data << control.sysread(length - data.bytesize) while data.bytesize < length
    data
  rescue EOFError, SystemCallError
    exit!(0)
  end

  def wait(control)
    tell(control, "R")
    loop do
      message = receive(control, receive(control, 4).unpack1("N"))
      return message.byteslice(1..).split("\0") if message.start_with?("E")
    end
  end

  def learn(control, before)
    folder = File.join(File.dirname(File.realpath($PROGRAM_NAME)), "")
    names = $LOADED_FEATURES - before
    names = names.select { |name| name.start_with?("/") && !name.start_with?(folder) }
    # Bundler chooses versions; what was loaded before it would be in its way.
    names = [] if names.any? { |name| name.include?("/bundler/") }
    tell(control, "M", names.map { |name| "#{name}\0" }.join)
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

  # The script may have been opened already.  Is it still the one?
  def script_same?
    is = File.stat($PROGRAM_NAME)
    Dir.each_child("/proc/self/fd") do |fd|
      next if fd.to_i < 3

      open = File.stat("/proc/self/fd/#{fd}")
      return true if open.dev == is.dev && open.ino == is.ino
    rescue SystemCallError
      next
    end
    false
  rescue SystemCallError
    true
  end

  # Returns in the children only: the preloaded library has its own fork().
  def become_zygote(paths)
    GC.start
    ENV["FCGI_HOST_FORK"] = [$PROGRAM_NAME, *paths].join("\n")
    fork
    ENV.delete("FCGI_HOST_FORK")
  end

  def run
    options = take_back_hook
    fd = options["ZYGOTE"] || options["PARK"]
    return unless fd

    before = $LOADED_FEATURES.dup
    load_ahead(options["PRELOAD"].to_s)
    files = note($LOADED_FEATURES - before)
    become_zygote(files.keys) if options["ZYGOTE"]
    control = IO.for_fd(fd.to_i, "r+b")
    control.sync = true
    control.close_on_exec = true
    started_with = steering
    self.environment = wait(control)
    start_anew if started_with != steering || !script_same? || files.any? { |path, is| is.nil? || state(path) != is }
    if options["LEARN"]
      at_exit { learn(control, before) }
    else
      control.close
    end
  end
end

begin
  FCGIHostWait.run
ensure
  Object.send(:remove_const, :FCGIHostWait)
end
