# One cmocka file per module.  `make check` runs them all.
if HAVE_CMOCKA
UNIT_LIBS = $(FCGI_HOST_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS = %D%/test_bytes %D%/test_text
UNIT_TESTS += %D%/test_fcgi %D%/test_fcgi_params %D%/test_siphash %D%/test_vars \
	%D%/test_cgi_header %D%/test_cgi_request %D%/test_cgi_environment
UNIT_TESTS += %D%/test_child_table %D%/test_env_names %D%/test_spawn %D%/test_spawn_failures %D%/test_spawner
UNIT_TESTS += %D%/test_tree %D%/test_address %D%/test_config %D%/test_config_print %D%/test_pattern %D%/test_route
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)

tests_unit_test_bytes_SOURCES = %D%/test_bytes.c
tests_unit_test_bytes_LDADD = $(UNIT_LIBS)
tests_unit_test_text_SOURCES = %D%/test_text.c
tests_unit_test_text_LDADD = $(UNIT_LIBS)
tests_unit_test_fcgi_SOURCES = %D%/test_fcgi.c
tests_unit_test_fcgi_LDADD = $(UNIT_LIBS)
tests_unit_test_fcgi_params_SOURCES = %D%/test_fcgi_params.c
tests_unit_test_fcgi_params_LDADD = $(UNIT_LIBS)
tests_unit_test_siphash_SOURCES = %D%/test_siphash.c
tests_unit_test_siphash_LDADD = $(UNIT_LIBS)
tests_unit_test_vars_SOURCES = %D%/test_vars.c
tests_unit_test_vars_LDADD = $(UNIT_LIBS)
tests_unit_test_cgi_header_SOURCES = %D%/test_cgi_header.c
tests_unit_test_cgi_header_LDADD = $(UNIT_LIBS)
tests_unit_test_cgi_request_SOURCES = %D%/test_cgi_request.c
tests_unit_test_cgi_request_LDADD = $(UNIT_LIBS)
tests_unit_test_cgi_environment_SOURCES = %D%/test_cgi_environment.c
tests_unit_test_cgi_environment_LDADD = $(UNIT_LIBS)
tests_unit_test_child_table_SOURCES = %D%/test_child_table.c
tests_unit_test_child_table_LDADD = $(UNIT_LIBS)
tests_unit_test_env_names_SOURCES = %D%/test_env_names.c
tests_unit_test_env_names_LDADD = $(UNIT_LIBS)
tests_unit_test_spawn_SOURCES = %D%/test_spawn.c %D%/spawn_fixture.c %D%/spawn_fixture.h
tests_unit_test_spawn_LDADD = $(UNIT_LIBS)
tests_unit_test_spawn_failures_SOURCES = %D%/test_spawn_failures.c %D%/spawn_fixture.c %D%/spawn_fixture.h
tests_unit_test_spawn_failures_LDADD = $(UNIT_LIBS)
tests_unit_test_spawner_SOURCES = %D%/test_spawner.c
tests_unit_test_spawner_LDADD = $(UNIT_LIBS)
tests_unit_test_tree_SOURCES = %D%/test_tree.c
tests_unit_test_tree_LDADD = $(UNIT_LIBS)
tests_unit_test_address_SOURCES = %D%/test_address.c
tests_unit_test_address_LDADD = $(UNIT_LIBS)
tests_unit_test_pattern_SOURCES = %D%/test_pattern.c
tests_unit_test_pattern_LDADD = $(UNIT_LIBS)
tests_unit_test_route_SOURCES = %D%/test_route.c
tests_unit_test_route_LDADD = $(UNIT_LIBS)
tests_unit_test_config_SOURCES = %D%/test_config.c %D%/config_fixture.c %D%/config_fixture.h
tests_unit_test_config_LDADD = $(UNIT_LIBS)
tests_unit_test_config_print_SOURCES = %D%/test_config_print.c %D%/config_fixture.c %D%/config_fixture.h
tests_unit_test_config_print_LDADD = $(UNIT_LIBS)
endif
