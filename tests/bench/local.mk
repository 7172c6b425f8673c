# What the benchmarks measure with; see README.md here.
EXTRA_DIST += %D%/README.md %D%/web_bench.py %D%/web_servers.py %D%/pool_bench.py %D%/compare_bench.py %D%/wait_bench.py
check_PROGRAMS += %D%/bench_hello %D%/raw_loop %D%/spawn_bench %D%/body_bench %D%/fastcgi_answer

tests_bench_bench_hello_SOURCES = %D%/bench_hello.c
tests_bench_bench_hello_LDFLAGS =
tests_bench_raw_loop_SOURCES = %D%/raw_loop.c %D%/bench_figures.c %D%/bench_figures.h
tests_bench_spawn_bench_SOURCES = %D%/spawn_bench.c %D%/bench_figures.c %D%/bench_figures.h
tests_bench_spawn_bench_LDADD = $(FCGI_HOST_LIBS)
tests_bench_body_bench_SOURCES = %D%/body_bench.c
tests_bench_fastcgi_answer_SOURCES = %D%/fastcgi_answer.c
tests_bench_fastcgi_answer_LDFLAGS =
