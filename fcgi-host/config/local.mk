# The YAML tree with positions, the one table of keys, the typed configuration.
fcgi_host_libfcgihost_a_SOURCES += \
	%D%/address.c %D%/address.h \
	%D%/complaint.c %D%/complaint.h \
	%D%/config.h \
	%D%/elf.c %D%/elf.h \
	%D%/entries.c \
	%D%/file.c %D%/file.h \
	%D%/fit.c %D%/fit.h \
	%D%/keys.c %D%/keys.h \
	%D%/kinds.h %D%/kinds_net.c %D%/kinds_number.c %D%/kinds_route.c %D%/kinds_text.c \
	%D%/load.c \
	%D%/pattern.c %D%/pattern.h \
	%D%/printer.c %D%/printer.h \
	%D%/reader.c %D%/reader.h \
	%D%/reference.c \
	%D%/rules.c %D%/rules.h \
	%D%/runtime.c %D%/runtime.h \
	%D%/scope.c \
	%D%/tree.c %D%/tree.h
