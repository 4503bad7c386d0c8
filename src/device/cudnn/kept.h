/* kept.h: files that are kept between processes, plans and kernels: in $HWNAS_PLANS, else the
 * user's cache (~/.cache/hwnas/plans). Together they have a limit; what was not used for longest
 * goes first. That something cannot be kept is no failure. */
#ifndef HWNAS_DEVICE_CUDNN_KEPT_H
#define HWNAS_DEVICE_CUDNN_KEPT_H

#include <stdbool.h>
#include <stddef.h>

#define HWNAS_KEPT_BYTES ((size_t)1 << 30)

/* Yours to free(); NULL: HWNAS_PLANS is empty, nothing is kept. */
char *hwnas_kept_path(const char *name);
/* The whole file, NUL-terminated, yours to free(); false where there is none. */
bool hwnas_kept_read(char **out, size_t *n, const char *path);
void hwnas_kept_write(const char *path, const void *bytes, size_t n);
/* Deletes files of `directory` until those that are left are `limit` bytes at most. */
void hwnas_kept_prune(const char *directory, size_t limit);

#endif
