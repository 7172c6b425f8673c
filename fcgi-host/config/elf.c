#include "config/elf.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct file { const unsigned char *data; size_t size; };

/* Our own header, from the linker. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((weak, visibility("hidden")));

static const void *at(const struct file *file, size_t offset, size_t len)
{
	return offset > file->size || len > file->size - offset ? NULL : file->data + offset;
}

/* Copies, since nothing in a file need be aligned. */
static bool copy(const struct file *file, size_t offset, void *out, size_t len)
{
	const void *from = at(file, offset, len);

	if (from != NULL)
		memcpy(out, from, len);
	return from != NULL;
}

static bool header_at(const struct file *file, unsigned index, ElfW(Phdr) *out)
{
	ElfW(Ehdr) head;

	if (!copy(file, 0, &head, sizeof(head)) || head.e_phentsize != sizeof(*out) || index >= head.e_phnum || head.e_phoff > file->size)
		return false;
	return copy(file, head.e_phoff + (size_t)index * sizeof(*out), out, sizeof(*out));
}

static bool find(const struct file *file, unsigned type, ElfW(Phdr) *out)
{
	for (unsigned i = 0; header_at(file, i, out); i++)
		if (out->p_type == type)
			return true;
	return false;
}

/* Where an address of the running program is in the file. */
static size_t offset_of(const struct file *file, size_t address)
{
	ElfW(Phdr) header;

	for (unsigned i = 0; header_at(file, i, &header); i++)
		if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz)
			return header.p_offset + (address - header.p_vaddr);
	return SIZE_MAX;
}

/* The names of what it takes from libraries stand there, besides others. */
static bool has_name(const struct file *file, const char *name)
{
	ElfW(Phdr) header;
	ElfW(Dyn) entry = { .d_tag = DT_NULL + 1 };
	size_t strings = SIZE_MAX, size = 0;
	const void *text;

	if (!find(file, PT_DYNAMIC, &header) || at(file, header.p_offset, header.p_filesz) == NULL)
		return false;
	for (size_t i = 0; i < header.p_filesz / sizeof(entry) && entry.d_tag != DT_NULL; i++) {
		copy(file, header.p_offset + i * sizeof(entry), &entry, sizeof(entry));
		if (entry.d_tag == DT_STRTAB)
			strings = offset_of(file, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_STRSZ)
			size = entry.d_un.d_val;
	}
	text = at(file, strings, size);
	return text != NULL && memmem(text, size, name, strlen(name) + 1) != NULL;
}

static bool is_of_this_machine(const ElfW(Ehdr) *head)
{
	return &__ehdr_start == NULL || (head->e_machine == __ehdr_start.e_machine &&
		head->e_ident[EI_CLASS] == __ehdr_start.e_ident[EI_CLASS] && head->e_ident[EI_DATA] == __ehdr_start.e_ident[EI_DATA]);
}

static void read_file(const struct file *file, struct elf *out)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) loader;
	const char *path;

	if (!copy(file, 0, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	out->kind = is_of_this_machine(&head) ? ELF_STATIC : ELF_OTHER;
	if (out->kind == ELF_OTHER || !find(file, PT_INTERP, &loader))
		return;
	path = at(file, loader.p_offset, loader.p_filesz);
	if (path == NULL || loader.p_filesz > sizeof(out->loader) || memchr(path, '\0', loader.p_filesz) == NULL)
		return;
	out->kind = ELF_DYNAMIC;
	memcpy(out->loader, path, strlen(path) + 1);
	out->has_libc_start = has_name(file, "__libc_start_main");
}

void elf_read(int fd, struct elf *out)
{
	struct file file = { 0 };
	struct stat st;
	void *data;

	*out = (struct elf){ .kind = ELF_NOT };
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return;
	file.size = (size_t)st.st_size;
	data = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return;
	file.data = data;
	read_file(&file, out);
	munmap(data, file.size);
}
