# One cmocka file per module.  `make check` runs them all.
if HAVE_CMOCKA
UNIT_LIBS = $(FCGI_HOST_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS = %D%/test_bytes %D%/test_text %D%/test_clock %D%/test_lines %D%/test_log %D%/test_loop
UNIT_TESTS += %D%/test_fcgi %D%/test_fcgi_params %D%/test_siphash %D%/test_vars \
	%D%/test_cgi_header %D%/test_cgi_request %D%/test_cgi_environment
UNIT_TESTS += %D%/test_child_table %D%/test_env_names %D%/test_spawn %D%/test_spawn_failures %D%/test_spawner
UNIT_TESTS += %D%/test_budget %D%/test_pool %D%/test_worker %D%/test_socket_path
UNIT_TESTS += %D%/test_answer %D%/test_body %D%/test_script %D%/test_listener
UNIT_TESTS += %D%/test_tree %D%/test_address %D%/test_config %D%/test_config_print %D%/test_pattern %D%/test_route
UNIT_TESTS += %D%/test_histogram %D%/test_json %D%/test_figures
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)

tests_unit_test_bytes_SOURCES = %D%/test_bytes.c
tests_unit_test_bytes_LDADD = $(UNIT_LIBS)
tests_unit_test_text_SOURCES = %D%/test_text.c
tests_unit_test_text_LDADD = $(UNIT_LIBS)
tests_unit_test_histogram_SOURCES = %D%/test_histogram.c
tests_unit_test_histogram_LDADD = $(UNIT_LIBS)
tests_unit_test_json_SOURCES = %D%/test_json.c
tests_unit_test_json_LDADD = $(UNIT_LIBS)
tests_unit_test_figures_SOURCES = %D%/test_figures.c
tests_unit_test_figures_LDADD = $(UNIT_LIBS)
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
tests_unit_test_clock_SOURCES = %D%/test_clock.c
tests_unit_test_clock_LDADD = $(UNIT_LIBS)
tests_unit_test_lines_SOURCES = %D%/test_lines.c
tests_unit_test_lines_LDADD = $(UNIT_LIBS)
tests_unit_test_log_SOURCES = %D%/test_log.c
tests_unit_test_log_LDADD = $(UNIT_LIBS)
tests_unit_test_loop_SOURCES = %D%/test_loop.c
tests_unit_test_loop_LDADD = $(UNIT_LIBS)
tests_unit_test_socket_path_SOURCES = %D%/test_socket_path.c
tests_unit_test_socket_path_LDADD = $(UNIT_LIBS)
tests_unit_test_answer_SOURCES = %D%/test_answer.c
tests_unit_test_answer_LDADD = $(UNIT_LIBS)
tests_unit_test_body_SOURCES = %D%/test_body.c
tests_unit_test_body_LDADD = $(UNIT_LIBS)
tests_unit_test_script_SOURCES = %D%/test_script.c
tests_unit_test_script_LDADD = $(UNIT_LIBS)
tests_unit_test_listener_SOURCES = %D%/test_listener.c
tests_unit_test_listener_LDADD = $(UNIT_LIBS)
tests_unit_test_budget_SOURCES = %D%/test_budget.c
tests_unit_test_budget_LDADD = $(UNIT_LIBS)
tests_unit_test_pool_SOURCES = %D%/test_pool.c %D%/pool_fixture.c %D%/pool_fixture.h \
	%D%/spawn_fixture.c %D%/spawn_fixture.h
tests_unit_test_pool_LDADD = $(UNIT_LIBS)
tests_unit_test_worker_SOURCES = %D%/test_worker.c %D%/pool_fixture.c %D%/pool_fixture.h \
	%D%/spawn_fixture.c %D%/spawn_fixture.h
tests_unit_test_worker_LDADD = $(UNIT_LIBS)
endif
