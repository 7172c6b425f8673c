/*
 * elf.h - what an executable file says about how it is started.
 *
 * Reads only; the file may be anything, whatever its first bytes promise.
 */
#ifndef FCGI_HOST_CONFIG_ELF_H
#define FCGI_HOST_CONFIG_ELF_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum elf_kind {
	ELF_NOT,                /* no ELF file, or a broken one */
	ELF_OTHER,              /* of another machine or word size than this program */
	ELF_STATIC,             /* no dynamic loader */
	ELF_DYNAMIC,
};

struct elf {
	enum elf_kind kind;
	char loader[PATH_MAX];          /* DYNAMIC: its PT_INTERP */
	bool has_libc_start;            /* DYNAMIC: it asks the C library to call its main */
};

void elf_read(int fd, struct elf *out);

#endif
