#include "base/env_names.h"

#include <stdint.h>
#include <string.h>

struct pattern { const char *text; uint8_t len; bool is_prefix; };
#define EXACT(text) { text, sizeof(text) - 1, false }
#define PREFIX(text) { text, sizeof(text) - 1, true }

static const struct pattern steering[] = {
	/* Loader and C library. */
	PREFIX("LD_"), PREFIX("DYLD_"), PREFIX("GCONV_"), PREFIX("GLIBC_"), PREFIX("MALLOC_"), PREFIX("RESOLV_"),
	EXACT("GETCONF_DIR"), EXACT("HOSTALIASES"), EXACT("LOCALDOMAIN"), EXACT("LOCPATH"), EXACT("NIS_PATH"),
	EXACT("NLSPATH"), EXACT("RES_OPTIONS"), EXACT("TZDIR"),
	/* What most programs ask. */
	EXACT("PATH"), EXACT("HOME"), EXACT("SHELL"), EXACT("TMPDIR"), EXACT("TMP"), EXACT("TEMP"), EXACT("TERMCAP"),
	EXACT("TERMPATH"), PREFIX("TERMINFO"), PREFIX("LISTEN_"), EXACT("NOTIFY_SOCKET"), PREFIX("OPENSSL_"),
	EXACT("SSLKEYLOGFILE"), EXACT("GIO_EXTRA_MODULES"), EXACT("GIT_EXEC_PATH"), EXACT("ASAN_OPTIONS"),
	EXACT("LSAN_OPTIONS"), EXACT("TSAN_OPTIONS"), EXACT("UBSAN_OPTIONS"),
	/* Shells. */
	EXACT("IFS"), EXACT("ENV"), EXACT("CDPATH"), EXACT("SHELLOPTS"), EXACT("BASHOPTS"), EXACT("PS4"),
	EXACT("GLOBIGNORE"), EXACT("POSIXLY_CORRECT"), EXACT("ZDOTDIR"), EXACT("FPATH"), PREFIX("BASH_"),
	/* Interpreters and runtimes. */
	PREFIX("PYTHON"), PREFIX("PERL"), PREFIX("RUBY"), PREFIX("GEM_"), PREFIX("BUNDLE_"), PREFIX("NODE_"),
	PREFIX("LUA_"), PREFIX("AWK"), PREFIX("PHP_FCGI_"), EXACT("PHPRC"), EXACT("PHP_INI_SCAN_DIR"),
	EXACT("JAVA_TOOL_OPTIONS"), EXACT("JDK_JAVA_OPTIONS"), EXACT("_JAVA_OPTIONS"), EXACT("CLASSPATH"),
	PREFIX("DOTNET_"), PREFIX("CORECLR_"), PREFIX("COR_"), PREFIX("MONO_"), PREFIX("GUILE_"), PREFIX("ERL_"),
	EXACT("TCLLIBPATH"), EXACT("TCL_LIBRARY"), PREFIX("R_PROFILE"), PREFIX("R_ENVIRON"), PREFIX("R_LIBS"),
	EXACT("R_HOME"), EXACT("GODEBUG"),
};

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool env_name_is_variable(const char *name, size_t len)
{
	if (len == 0 || !is_letter(name[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!is_letter(name[i]) && !(name[i] >= '0' && name[i] <= '9'))
			return false;
	return true;
}

static bool fits(const struct pattern *pattern, const char *name, size_t len)
{
	return pattern->text[0] == name[0] && (pattern->is_prefix ? len >= pattern->len : len == pattern->len)
		&& memcmp(name, pattern->text, pattern->len) == 0;
}

bool env_name_is_safe(const char *name, size_t len)
{
	if (!env_name_is_variable(name, len))
		return false;
	for (size_t i = 0; i < sizeof(steering) / sizeof(steering[0]); i++)
		if (fits(&steering[i], name, len))
			return false;
	return true;
}
