#!/usr/bin/lua5.1
-- The same few bytes for every request, as a FastCGI worker or a CGI program (Debian: lua-wsapi-fcgi).
local function application()
  local body = "Hello, World!\n"
  local headers = { ["Content-Type"] = "text/plain", ["Content-Length"] = tostring(#body) }
  return 200, headers, coroutine.wrap(function() coroutine.yield(body) end)
end

if os.getenv("REQUEST_METHOD") then
  require("wsapi.cgi").run(application)
else
  require("wsapi.fastcgi").run(application)
end
