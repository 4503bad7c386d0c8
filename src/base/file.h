/* file.h: whole files in, whole files out. A file appears complete or not at all. */
#ifndef HWNAS_BASE_FILE_H
#define HWNAS_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Reads a regular file of at most `limit` bytes. The text is NUL-terminated and yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_file_read(char **out, size_t *length, const char *path,
                                           size_t limit);

/* Writes beside `path` and renames over it. */
HWNAS_CHECKED hwnas_status hwnas_file_write(const char *path, const void *bytes, size_t length);

/* Whether that would work, for those who have long work before them. Leaves what is there. */
HWNAS_CHECKED hwnas_status hwnas_file_try(const char *path);

bool hwnas_file_exists(const char *path);

/* Finds a file that ships with hwnas: `name` itself when it is a path to a file; else
 * DIR/NAME.SUFFIX in the directories of $HWNAS_PATH (colon-separated), the source tree that the
 * program was built from, and the installed data directory. E.g. ("accel_nasbench",
 * "search_spaces", ".yaml"). `out` is yours to free(). HWNAS_E_NOT_FOUND lists where it looked. */
HWNAS_CHECKED hwnas_status hwnas_file_find(char **out, const char *name, const char *room,
                                           const char *suffix);

/* `path` as seen from the directory of the file `from`; absolute paths stay. Yours to free(). */
char *hwnas_file_beside(const char *from, const char *path);

#endif
