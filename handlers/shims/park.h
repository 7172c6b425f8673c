/*
 * park.h - what the parts of fcgi-host-park.so share.
 *
 * The library is preloaded into a handler's process, stops it before the
 * program's own code, and lets it run when a request is there.  The messages
 * are those of README.md.  Everything here is for one process with one thread,
 * the one that runs main; nothing is used any more once the program runs.
 */
#ifndef FCGI_HOST_PARK_H
#define FCGI_HOST_PARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- park_message.c: one message at a time on a control descriptor */

enum { PARK_DESCRIPTORS_MAX = 4 };

struct park_message {
	char type;                       /* 0: the host is gone */
	char *text;                      /* the payload; in the one buffer, until the next message */
	size_t length;
	int descriptors[PARK_DESCRIPTORS_MAX];
	int descriptor_count;
};

/* Have room for usual messages ready, its pages in place. */
void park_message_prepare(void);

/* Waits for a message.  One that is malformed counts as the host being gone. */
void park_receive(int control, struct park_message *message_out);

/* A host that is gone is noticed at the next park_receive(). */
void park_send(int control, char type, const void *payload, size_t length);

/* --- park_files.c: what was loaded ahead, and whether it is still the same */

/* Takes down the program and every shared library that is loaded now.  A file
 * that changed since `start_ns` (CLOCK_REALTIME) counts as changed for good: which text was loaded is not known. */
void park_files_note(const char *program, int64_t start_ns);

/* The same for files of an interpreter, a path a line. */
void park_files_note_list(const char *paths);

/* The first one that is no longer what was loaded, or NULL. */
const char *park_files_changed(void);

/* --- park_zygote.c */

/* The fork server: says R, forks a child per K, and never returns in this process.
 * In a child it returns the descriptor of the child's own control: 0, 1 and 2 are the request's, `control` is
 * closed; each may use `cpu_s` seconds of processor time (0: as many as the zygote).
 * `fork_child` is libc's fork(). */
int park_zygote(int control, unsigned long cpu_s, pid_t (*fork_child)(void));

/* --- park_rehearse.c */

/* In a child: have its own copies of the pages that it will write to.  Failing is no error.  An interpreter
 * (`is_program` false) rehearses what else it does itself. */
void park_rehearse(bool is_program);

#endif
