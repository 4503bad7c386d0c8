/* mem.h: memory.
 *
 * Small allocations do not fail: when there is no memory for them hwnas_out_of_memory() is called,
 * which as a rule ends the process; every finished trial is already in the store. What grows with
 * the user's input (tensor data, files) goes through hwnas_try_alloc() and its failure is a status.
 * An arena's blocks live until the arena is freed; that is the lifetime of a space or a graph. A
 * thread keeps a little of what its arenas had for its next ones. */
#ifndef HWNAS_BASE_MEM_H
#define HWNAS_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

#include "base/status.h"

typedef struct hwnas_arena hwnas_arena;

hwnas_arena *hwnas_arena_new(void);
void hwnas_arena_free(hwnas_arena *arena); /* accepts NULL */
/* Zeroed, aligned for any type. */
void *hwnas_arena_alloc(hwnas_arena *arena, size_t size);
/* Room for `new_size` bytes that begin with the `old_size` bytes of `old`, which may be NULL; the
 * rest is not zeroed. */
void *hwnas_arena_grow(hwnas_arena *arena, const void *old, size_t old_size, size_t new_size);
void *hwnas_arena_copy(hwnas_arena *arena, const void *from, size_t size);
char *hwnas_arena_string(hwnas_arena *arena, const char *from, size_t length);
/* Two or three strings as one: the parts of a name. `c` may be "". */
char *hwnas_arena_join(hwnas_arena *arena, const char *a, const char *b, const char *c);
char *hwnas_arena_printf(hwnas_arena *arena, const char *format, ...) HWNAS_PRINTF(2, 3);

void *hwnas_alloc(size_t size); /* zeroed */
void *hwnas_realloc(void *old, size_t size);
char *hwnas_strdup(const char *from);
char *hwnas_printf(const char *format, ...) HWNAS_PRINTF(1, 2); /* yours to free() */
char *hwnas_vprintf(const char *format, va_list arguments) HWNAS_PRINTF(1, 0);

/* Asks the handler of hwnas_set_oom_handler(), and returns when it has made room, so that the
 * caller tries again; otherwise prints a line and ends the process with status 1. For the few
 * places that get memory from others than the functions above. */
void hwnas_out_of_memory(void);

/* From now on Jansson and GMP, which lose data or abort() without memory, call
 * hwnas_out_of_memory() as well. Leaves them alone when the program has given them an allocator of
 * its own. May be called often and by any thread, before they are used. */
void hwnas_guard_libraries(void);

/* 64-byte aligned, zeroed; release with free(). HWNAS_E_MEMORY names what it was for. */
HWNAS_CHECKED hwnas_status hwnas_try_alloc(void **out, size_t size, const char *what);

/* Makes room for one more element at the end of a heap array. */
#define HWNAS_GROW(array, n, capacity)                                                             \
    do {                                                                                           \
        if ((n) == (capacity)) {                                                                   \
            (capacity) = (capacity) ? 2 * (capacity) : 16;                                         \
            (array) = hwnas_realloc((array), (size_t)(capacity) * sizeof *(array));                \
        }                                                                                          \
    } while (0)

/* The same in an arena, whose owner frees it. */
#define HWNAS_ARENA_GROW(arena, array, n, capacity)                                                \
    do {                                                                                           \
        if ((n) == (capacity)) {                                                                   \
            (capacity) = (capacity) ? 4 * (capacity) : 16;                                         \
            (array) = hwnas_arena_grow((arena), (array), (n) * sizeof *(array),                    \
                                       (size_t)(capacity) * sizeof *(array));                      \
        }                                                                                          \
    } while (0)

#endif
