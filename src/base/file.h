/* file.h: whole files in, whole files out. A file appears complete or not at all. */
#ifndef HWNAS_BASE_FILE_H
#define HWNAS_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

/* Closes what is open, which is -1 then; nothing where it is -1. */
void hwnas_close_fd(int *fd);

/* Opens a regular file for reading; anything else is refused, at once. */
HWNAS_CHECKED hwnas_status hwnas_file_open(int *out, size_t *size, const char *path);

/* Reads a regular file of at most `limit` bytes. The text is NUL-terminated and yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_file_read(char **out, size_t *length, const char *path,
                                           size_t limit);

/* The same of a text in UTF-8, without its byte order mark. UTF-16 is refused. */
HWNAS_CHECKED hwnas_status hwnas_file_read_text(char **out, size_t *length, const char *path,
                                                size_t limit);

/* Writes a whole file in the place of what is there. An old file stays whole until then, and gives
 * its mode to the new one; a symbolic link is followed; a pipe or a device is written to. */
HWNAS_CHECKED hwnas_status hwnas_file_write(const char *path, const void *bytes, size_t length);

/* Whether that would work, for those who have long work before them. Leaves what is there. */
HWNAS_CHECKED hwnas_status hwnas_file_try(const char *path);

/* The two halves of hwnas_file_write(), for files that appear together. A draft is on the disk but
 * has no name; where `path` is a pipe or a device, it is written at publication, and `bytes` must
 * live until then. */
typedef struct hwnas_draft hwnas_draft;
HWNAS_CHECKED hwnas_status hwnas_draft_make(hwnas_draft **out, const char *path, const void *bytes,
                                            size_t length);
HWNAS_CHECKED hwnas_status hwnas_draft_publish(hwnas_draft *draft);
void hwnas_draft_free(hwnas_draft *draft); /* forgets it unless it was published */
/* It goes to a pipe or a device. */
bool hwnas_draft_is_stream(const hwnas_draft *draft);

/* The name behind all symbolic links, of a file that may not exist. Yours to free(). */
char *hwnas_file_follow(const char *path);

/* Whether two paths lead to one file, that is there or would be. */
bool hwnas_file_is_same(const char *a, const char *b);
bool hwnas_file_exists(const char *path);
/* XXH3, 128 bits, of what is in it, in hexadecimal; yours to free(). NULL: it cannot be read, which
 * whoever needs it will say. */
char *hwnas_file_hash(const char *path);
/* The file of the program that a name stands for, there or in $PATH; yours to free(); NULL: none
 * that may be run. */
char *hwnas_program_find(const char *name);

/* realpath() and fopen() for reading; NULL means that there is no such file, or none to read, and
 * never that there is no memory. */
char *hwnas_file_real(const char *path); /* yours to free() */
FILE *hwnas_file_stream(const char *path);

/* Finds a file that ships with hwnas: `name` itself when it is a path to a file; else
 * DIR/NAME.SUFFIX in the directories of $HWNAS_PATH (colon-separated), the source tree that the
 * program was built from, and the installed data directory. E.g. ("accel_nasbench",
 * "search_spaces", ".yaml"). `out` is yours to free(). HWNAS_E_NOT_FOUND lists where it looked. */
HWNAS_CHECKED hwnas_status hwnas_file_find(char **out, const char *name, const char *room,
                                           const char *suffix);

/* Of "FILE" or "FILE#REST" how long FILE is. Its name may have a '#' as well: it is the longest that
 * is there; where none is, what stands before the last '#'. */
size_t hwnas_file_name_length(const char *text);

/* `path` as seen from the directory of the file `from`; absolute paths stay. Yours to free(). */
char *hwnas_file_beside(const char *from, const char *path);

#endif
