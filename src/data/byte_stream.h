/* byte_stream.h: the bytes of a file in their order, unpacked on the way: a plain file, one that
 * gzip packed (zlib), or a member of a zip archive (libzip). Little of it is in memory. */
#ifndef HWNAS_DATA_BYTE_STREAM_H
#define HWNAS_DATA_BYTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct hwnas_byte_stream hwnas_byte_stream;

/* Opens a regular file; `member` is one of a zip archive, and NULL of other files. */
HWNAS_CHECKED hwnas_status hwnas_byte_stream_open(hwnas_byte_stream **out, const char *path,
                                                  const char *member);
void hwnas_byte_stream_close(hwnas_byte_stream *stream); /* accepts NULL */

/* Reads up to `n` bytes: fewer only where it ends. Damage is HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_byte_stream_read(size_t *out, hwnas_byte_stream *stream,
                                                  void *bytes, size_t n);
/* Bytes that are still to be read; -1: nobody says, as of gzip. */
int64_t hwnas_byte_stream_left(const hwnas_byte_stream *stream);

HWNAS_CHECKED hwnas_status hwnas_is_zip(bool *out, const char *path);
/* Names of a zip archive's members: a NULL-terminated list, yours to free() with its names. */
HWNAS_CHECKED hwnas_status hwnas_zip_list(char ***out, const char *path);
void hwnas_zip_list_free(char **names); /* accepts NULL */

#endif
