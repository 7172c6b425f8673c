# Run by pytest, not by `make check`: see CONTRIBUTING.md.
EXTRA_DIST += \
	%D%/lib/__init__.py %D%/lib/answer.py %D%/lib/fronts.py %D%/lib/handlers.py %D%/lib/host.py %D%/lib/http.py \
	%D%/lib/logs.py %D%/lib/paths.py %D%/lib/proc.py %D%/lib/wait.py %D%/lib/wire.py %D%/lib/yaml_text.py %D%/lib/network.py %D%/lib/browser.py %D%/lib/terminal.py %D%/lib/suite_programs.py \
	%D%/programs/faulty_worker.py %D%/programs/leaves_stdin.py %D%/programs/worker.c
EXTRA_DIST += \
	%D%/conftest.py %D%/pytest.ini %D%/test_at_the_edge.py %D%/test_bodies.py %D%/test_bounds.py %D%/test_bridge.py %D%/test_cli.py \
	%D%/test_client_gone.py %D%/test_completion.py %D%/test_config_mistakes.py %D%/test_descriptors.py %D%/test_environment.py \
	%D%/test_failures.py %D%/test_fastcgi_protocol.py %D%/test_git.py %D%/test_handler_input.py \
	%D%/test_harness.py %D%/test_idle.py %D%/test_large_bodies.py %D%/test_layers.py %D%/test_listeners.py %D%/test_metrics.py \
	%D%/test_logging.py %D%/test_manual.py %D%/test_persistent_workers.py %D%/test_php.py %D%/test_pool_soak.py \
	%D%/test_queue.py %D%/test_readme.py %D%/test_redirect.py %D%/test_reload.py %D%/test_response_header.py \
	%D%/test_same_variables.py %D%/test_samples.py %D%/test_scripts.py %D%/test_server_timing.py %D%/test_sizing.py %D%/test_slow_requests.py %D%/test_status.py %D%/test_stdio.py %D%/test_service_manager.py %D%/test_status_page.py \
	%D%/test_stop_and_kill.py %D%/test_top.py
EXTRA_DIST += %D%/test_cluster.py %D%/test_retries.py %D%/test_shortages.py
EXTRA_DIST += %D%/test_migration.py
EXTRA_DIST += %D%/test_front_ends.py
EXTRA_DIST += %D%/test_documented_commands.py %D%/lib/waiting.py
EXTRA_DIST += %D%/test_suites.py %D%/test_suite_programs.py
EXTRA_DIST += %D%/test_compare.py
EXTRA_DIST += %D%/test_waiting.py
EXTRA_DIST += %D%/test_waiting_languages.py %D%/test_waiting_safety.py %D%/test_waiting_installed.py %D%/test_waiting_scripts.py %D%/lib/spares.py %D%/programs/witness/witness.py %D%/programs/witness/process.sh \
	%D%/programs/witness/witness.c %D%/programs/witness/witness.js %D%/programs/witness/witness.php %D%/programs/witness/witness.pl \
	%D%/programs/witness/witness.rb %D%/programs/witness/witness.sh
