# sources of process/
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/brood.c %D%/brood.h \
	%D%/budget.c %D%/budget.h \
	%D%/child_table.c %D%/child_table.h \
	%D%/edition.c %D%/edition.h \
	%D%/exiting.c %D%/exiting.h \
	%D%/hook.c %D%/hook_folder.c %D%/hook.h \
	%D%/look.c %D%/look.h %D%/priority.c %D%/priority.h \
	%D%/modules.c %D%/modules.h \
	%D%/pool.c %D%/pool.h %D%/pool_private.h \
	%D%/pool_recycle.c \
	%D%/pool_workers.c \
	%D%/program.c %D%/program.h \
	%D%/shim_link.c %D%/shim_link.h \
	%D%/socket_path.c %D%/socket_path.h %D%/socket_rights.c %D%/socket_rights.h \
	%D%/socket_folder.c %D%/socket_folder.h \
	%D%/spare.c %D%/spare.h \
	%D%/spares.c %D%/spares.h %D%/spares_private.h %D%/spares_zygote.c \
	%D%/spawn.c %D%/spawn.h \
	%D%/spawn_ahead.c %D%/spawn_private.h \
	%D%/spawn_child.c %D%/spawn_child.h \
	%D%/spawn_link.c %D%/spawn_link.h \
	%D%/spawn_proto.h \
	%D%/spawn_text.c \
	%D%/spawner.c %D%/spawner.h \
	%D%/stamp.c %D%/stamp.h \
	%D%/worker.c %D%/worker.h \
	%D%/zygote.c %D%/zygote.h
