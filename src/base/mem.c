/* mem.c: an arena of growing chunks, and allocation that does not fail. */
#include "base/mem.h"

#include <gmp.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#define ALIGN 16
#define FIRST_CHUNK 4096

/* A search builds one graph after another, and fresh pages cost the kernel more than a graph costs
 * us. So a thread keeps this many bytes of freed arenas; none where a sanitizer watches what is
 * freed. */
#ifdef HWNAS_SANITIZED
#define MAX_SPARE 0
#else
#define MAX_SPARE (1 << 20)
#endif

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(ALIGN) char bytes[];
} chunk;

struct hwnas_arena {
    chunk *head; /* newest first */
};

/* ---- Memory for small things ---- */

static struct {
    hwnas_oom_handler *handler;
    void *data;
} oom;

void hwnas_set_oom_handler(hwnas_oom_handler *handler, void *data)
{
    oom.handler = handler;
    oom.data = data;
}

void hwnas_out_of_memory(void)
{
    if (oom.handler && oom.handler(oom.data))
        return;
    fputs("hwnas: out of memory\n", stderr);
    exit(1);
}

static void *hard_malloc(size_t size)
{
    void *p;
    while (!(p = malloc(size ? size : 1)))
        hwnas_out_of_memory();
    return p;
}

void *hwnas_alloc(size_t size)
{
    void *p;
    while (!(p = calloc(1, size ? size : 1)))
        hwnas_out_of_memory();
    return p;
}

void *hwnas_realloc(void *old, size_t size)
{
    void *p;
    while (!(p = realloc(old, size ? size : 1)))
        hwnas_out_of_memory();
    return p;
}

char *hwnas_strdup(const char *from)
{
    const size_t size = strlen(from) + 1;
    return memcpy(hard_malloc(size), from, size);
}

/* vsnprintf(), which allocates for long numbers. */
static size_t print(char *out, size_t size, const char *format, va_list arguments)
{
    for (;;) {
        va_list copy;
        va_copy(copy, arguments);
        const int n = vsnprintf(out, size, format, copy);
        va_end(copy);
        if (n >= 0)
            return (size_t)n;
        hwnas_out_of_memory();
    }
}

char *hwnas_vprintf(const char *format, va_list arguments)
{
    const size_t n = print(NULL, 0, format, arguments);
    char *out = hard_malloc(n + 1);
    print(out, n + 1, format, arguments);
    return out;
}

char *hwnas_printf(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *out = hwnas_vprintf(format, ap);
    va_end(ap);
    return out;
}

/* ---- Memory for libraries ---- */

static void (*gmp_free)(void *, size_t);

static void *gmp_realloc(void *old, size_t old_size, size_t size)
{
    void *p = hard_malloc(size);
    memcpy(p, old, old_size < size ? old_size : size);
    gmp_free(old, old_size);
    return p;
}

/* GnuTLS clears numbers that GMP frees, and leaves to GMP where they come from: its way to free
 * stays. Who set the latter too is left alone. */
static void guard_gmp(void)
{
    void *(*allocate)(size_t), *(*usual)(size_t), *(*reallocate)(void *, size_t, size_t);
    mp_get_memory_functions(&allocate, &reallocate, &gmp_free);
    mp_set_memory_functions(NULL, NULL, NULL); /* its own */
    mp_get_memory_functions(&usual, NULL, NULL);
    if (allocate == usual)
        mp_set_memory_functions(hard_malloc, gmp_realloc, gmp_free);
    else
        mp_set_memory_functions(allocate, reallocate, gmp_free);
}

static void guard_libraries(void)
{
    json_malloc_t allocate;
    json_free_t release;
    json_get_alloc_funcs(&allocate, &release);
    if (allocate == malloc && release == free)
        json_set_alloc_funcs(hard_malloc, free);
    guard_gmp();
}

void hwnas_guard_libraries(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, guard_libraries);
}

/* ---- Large blocks ---- */

enum { CACHE_LINE = 64 };

/* In pages of whatever size the kernel gives: asking for huge ones makes networks up to 1.5 times
 * slower on some virtual machines (docs/engine.md). */
hwnas_status hwnas_try_alloc(void **out, size_t size, const char *what)
{
    const size_t rounded = size ? (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE : CACHE_LINE;
    void *p = NULL;
    if (rounded < size || posix_memalign(&p, CACHE_LINE, rounded))
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for %s (%.1f MiB)", what,
                          (double)size / (1 << 20));
    memset(p, 0, rounded);
    *out = p;
    return HWNAS_OK;
}

/* ---- Spare chunks of this thread ---- */

typedef struct spare {
    chunk *head;
    size_t size; /* of all of them */
} spare;

static tss_t spare_key;

static void free_spare(void *data)
{
    spare *s = data;
    for (chunk *c = s->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(s);
}

static void make_spare_key(void)
{
    while (tss_create(&spare_key, free_spare) != thrd_success)
        hwnas_out_of_memory();
}

static spare *find_spare(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, make_spare_key);
    spare *s = tss_get(spare_key);
    if (!s) {
        s = hwnas_alloc(sizeof *s);
        while (tss_set(spare_key, s) != thrd_success)
            hwnas_out_of_memory();
    }
    return s;
}

/* A spare chunk of at least `size` bytes, or a new one of `room`. */
static chunk *take_chunk(size_t size, size_t room)
{
    spare *s = find_spare();
    for (chunk **c = &s->head; *c; c = &(*c)->next)
        if ((*c)->size >= size) {
            chunk *taken = *c;
            *c = taken->next;
            s->size -= taken->size;
            return taken;
        }
    chunk *fresh = hard_malloc(sizeof *fresh + room);
    fresh->size = room;
    return fresh;
}

static void give_chunk(chunk *c)
{
    spare *s = find_spare();
    if (s->size + c->size > MAX_SPARE) {
        free(c);
        return;
    }
    c->next = s->head;
    s->head = c;
    s->size += c->size;
}

/* ---- Arenas ---- */

hwnas_arena *hwnas_arena_new(void)
{
    return hwnas_alloc(sizeof(hwnas_arena));
}

void hwnas_arena_free(hwnas_arena *arena)
{
    if (!arena)
        return;
    for (chunk *c = arena->head, *next; c; c = next) {
        next = c->next;
        give_chunk(c);
    }
    free(arena);
}

/* Not zeroed. */
static void *take(hwnas_arena *arena, size_t size)
{
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    chunk *c = arena->head;
    if (!c || c->size - c->used < size) {
        size_t room = c ? 2 * c->size : FIRST_CHUNK;
        if (room < size)
            room = size;
        c = take_chunk(size, room);
        c->used = 0;
        c->next = arena->head;
        arena->head = c;
    }
    void *p = c->bytes + c->used;
    c->used += size;
    return p;
}

void *hwnas_arena_alloc(hwnas_arena *arena, size_t size)
{
    return memset(take(arena, size), 0, size);
}

void *hwnas_arena_grow(hwnas_arena *arena, const void *old, size_t old_size, size_t new_size)
{
    void *p = take(arena, new_size);
    if (old_size)
        memcpy(p, old, old_size);
    return p;
}

void *hwnas_arena_copy(hwnas_arena *arena, const void *from, size_t size)
{
    void *p = take(arena, size);
    if (size)
        memcpy(p, from, size);
    return p;
}

char *hwnas_arena_string(hwnas_arena *arena, const char *from, size_t length)
{
    char *p = take(arena, length + 1);
    if (length) /* an empty text of a file may be no pointer */
        memcpy(p, from, length);
    p[length] = '\0';
    return p;
}

char *hwnas_arena_join(hwnas_arena *arena, const char *a, const char *b, const char *c)
{
    const size_t n_a = strlen(a), n_b = strlen(b), n_c = strlen(c);
    char *p = take(arena, n_a + n_b + n_c + 1);
    memcpy(p, a, n_a);
    memcpy(p + n_a, b, n_b);
    memcpy(p + n_a + n_b, c, n_c + 1);
    return p;
}

char *hwnas_arena_printf(hwnas_arena *arena, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *text = hwnas_vprintf(format, ap);
    va_end(ap);
    char *p = hwnas_arena_string(arena, text, strlen(text));
    free(text);
    return p;
}
