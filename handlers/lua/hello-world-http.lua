#!/usr/bin/lua5.1
-- hello-world as an HTTP server of its own, on libuv (Debian: lua-luv): hello-world-http.lua PORT
local uv = require("luv")

local BACKLOG = 1024
local HEADER_MAX = 65536
local BODY = "Hello, World!\n"
local ANSWER = "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s"

local function answer(client, status, body, is_kept)
  client:write(ANSWER:format(status, #body, is_kept and "keep-alive" or "close", body))
  if not is_kept then
    client:shutdown(function() client:close() end)
  end
end

-- Takes whole requests off `input`, answers them, and returns what is left, or nil if the connection ends.
local function answer_requests(client, input)
  while true do
    local _, last = input:find("\r\n\r\n", 1, true)
    if not last and #input <= HEADER_MAX then
      return input
    elseif not last then
      answer(client, "431 Request Header Fields Too Large", "The header is too large\n", false)
      return nil
    end
    local header = input:sub(1, last):lower()
    input = input:sub(last + 1)
    if not header:find("^get ") then
      answer(client, "405 Method Not Allowed", "Only GET\n", false)
      return nil
    end
    local is_kept = not header:find("\r\nconnection: *close") and
      (header:find("^[^\r]* http/1%.1\r\n") or header:find("\r\nconnection: *keep%-alive"))
    answer(client, "200 OK", BODY, is_kept)
    if not is_kept then
      return nil
    end
  end
end

local function serve(client)
  local input = ""
  client:nodelay(true)
  client:read_start(function(err, chunk)
    if err or not chunk then
      if not client:is_closing() then client:close() end
      return
    end
    input = answer_requests(client, input .. chunk)
    if not input then
      client:read_stop()
    end
  end)
end

local port = assert(tonumber(arg[1]), "usage: hello-world-http.lua PORT")
local server = uv.new_tcp()
assert(server:bind("127.0.0.1", port))
assert(server:listen(BACKLOG, function(err)
  assert(not err, err)
  local client = uv.new_tcp()
  server:accept(client)
  serve(client)
end))
uv.run()
