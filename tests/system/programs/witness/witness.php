#!/usr/bin/php-cgi
<?php
// A CGI script that prints all that it can see of its process.
function show(...$values) { echo implode(" ", array_map(fn ($v) => is_string($v) ? $v : json_encode($v, JSON_PARTIAL_OUTPUT_ON_ERROR), $values)), "\n"; }
header("Content-Type: text/plain");
$now = microtime(true);
show("the time of the request is now", abs($now - $_SERVER["REQUEST_TIME_FLOAT"]) < 3, abs($now - $_SERVER["REQUEST_TIME"]) < 3);
unset($_SERVER["REQUEST_TIME"], $_SERVER["REQUEST_TIME_FLOAT"]);
show("server", $_SERVER);
show("environment", getenv(), $_ENV);
show("request", $_GET, $_POST, $_COOKIE, $_FILES, $_REQUEST, $argv ?? null, $argc ?? null);
show("files", get_included_files(), __FILE__, getcwd(), php_ini_loaded_file(), preg_replace("/,?\\n\\S*fcgi-host.ini/", "", php_ini_scanned_files()), get_include_path());
// The one setting of a zygote's own: see handlers/shims/README.md.
show("settings", array_diff_key(ini_get_all(null, false), ["opcache.revalidate_freq" => 0]));
show("extensions", get_loaded_extensions(), get_loaded_extensions(true));
show("names", array_keys(get_defined_functions()["user"]), get_declared_classes(), array_keys(get_defined_vars()));
show("constants", array_diff_key(get_defined_constants(), ["NAN" => 0, "INF" => 0]));
show("process", PHP_SAPI, umask(), getmypid() == readlink("/proc/self"), getmyuid(), get_current_user(), headers_list(), ob_get_level());
show("limits", set_time_limit(30), ignore_user_abort(), connection_status(), error_get_last(), setlocale(LC_ALL, 0), date_default_timezone_get());
show("streams", stream_get_wrappers(), stream_get_filters(), error_reporting(), array_map("intval", scandir("/proc/self/fd")));
ob_implicit_flush();
flush();
passthru("/bin/sh ./process.sh");
show("stdin", file_get_contents("php://input"));
register_shutdown_function(function () { echo "shutdown, registered first\n"; });
register_shutdown_function(function () { echo "shutdown, registered last\n"; });
class Kept { function __destruct() { echo "an object's end\n"; } }
$kept = new Kept;
error_log("stderr says so");
file_put_contents("php://stderr", "and so\n");
function inner($value) { throw new RuntimeException("an exception $value"); }
switch ($_SERVER["QUERY_STRING"]) {
case "raise": inner(7); break;
case "text": exit("a text");
case "exit": exit(7);
case "error": trigger_error("an error", E_USER_ERROR); break;
case "warning": echo $undefined; break;
case "session": session_id("a"); session_start(); show($_SESSION); break;
case "signal":
	while (ob_get_level()) ob_end_flush();
	flush();
	posix_kill(posix_getpid(), 10); break;
}
echo "no end of line at the end";
