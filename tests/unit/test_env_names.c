#include "base/env_names.h"

#include <stdint.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void names_that_steer_nothing_pass(void **state)
{
	static const char *const safe[] = {
		"A", "_", "a1", "REQUEST_URI", "GIT_PROJECT_ROOT", "PATH_INFO", "PATH_TRANSLATED", "HTTP_X_PYTHON",
		"ENVIRONMENT", "IFSX", "PHP_VALUE", "TEMPERATURE", "LANG", "ld_preload",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(safe) / sizeof(safe[0]); i++)
		if (!env_name_is_safe(safe[i], strlen(safe[i])))
			fail_msg("%s does not pass", safe[i]);
}

static void steering_names_and_no_names_do_not(void **state)
{
	static const char *const unsafe[] = {
		"", "1A", "A-B", "A B", "BASH_FUNC_x%%", "A\xc3\xa4", "PATH", "LD_PRELOAD", "LD_X", "GCONV_PATH", "GLIBC_TUNABLES",
		"IFS", "ENV", "BASH_ENV",
		"SHELLOPTS", "PYTHONPATH", "PERL5LIB", "PERLLIB", "RUBYOPT", "NODE_OPTIONS", "PHPRC", "LUA_INIT", "OPENSSL_CONF",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
		if (env_name_is_safe(unsafe[i], strlen(unsafe[i])))
			fail_msg("%s passes", unsafe[i]);
	assert_false(env_name_is_safe("A\0B", 3));
	assert_true(env_name_is_safe("PATHS", 5));
	assert_false(env_name_is_safe("PATHS", 4));     /* the length counts, not a NUL */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_steer_nothing_pass),
		cmocka_unit_test(steering_names_and_no_names_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
