/*
 * file.h - the bytes of a configuration file, if none but those who may decide
 * what runs can have written them.
 */
#ifndef FCGI_HOST_CONFIG_FILE_H
#define FCGI_HOST_CONFIG_FILE_H

#include "config/complaint.h"

/* 0 with the text on the heap; -1 after complaining: it cannot be read, or
 * someone other than its owner may write it, or its owner is neither root nor
 * who runs us. */
int file_read(const char *path, struct complaints *complaints, char **text_out, size_t *len_out);

#endif
