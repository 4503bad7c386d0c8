/* evict.c: by the instruction that writes a line of the caches back and drops it, which all cores
 * obey, for each page that is present. It takes about 35 us for a MiB, where reading a buffer
 * larger than the caches takes as long for all of them, and leaves the private caches of other
 * cores as they are. */
#include "measure/evict.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/mem.h"

enum { PAGE = 4096, LINE = 64, CHUNK = 512, N_SLOTS_LOG = 20 };

/* Pages by their numbers, in a table with open addressing; 0 is not a page. */
typedef struct page {
    uintptr_t number;
    uint64_t sum; /* of what it holds */
    bool changes;
} page;

struct hwnas_evictor {
    int pagemap;
    bool is_noted;
    size_t n_pages;
    page *pages; /* 1 << N_SLOTS_LOG */
};

#if defined __x86_64__
#include <cpuid.h>
#include <immintrin.h>
__attribute__((target("clflushopt"))) static void drop(const char *at)
{
    for (int i = 0; i < PAGE; i += LINE)
        _mm_clflushopt((void *)(uintptr_t)(at + i));
}
static void wait_for_drops(void)
{
    _mm_mfence();
}
static bool can_drop(void)
{
    unsigned a, b = 0, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_CLFLUSHOPT;
}
#elif defined __aarch64__
static void drop(const char *at)
{
    for (int i = 0; i < PAGE; i += LINE)
        __asm__ volatile("dc civac, %0" : : "r"(at + i) : "memory");
}
static void wait_for_drops(void)
{
    __asm__ volatile("dsb sy" : : : "memory");
}
static bool can_drop(void)
{
    return true;
}
#else
static void drop(const char *at)
{
    (void)at;
}
static void wait_for_drops(void)
{
}
static bool can_drop(void)
{
    return false;
}
#endif

hwnas_status hwnas_evictor_open(hwnas_evictor **out)
{
#ifdef HWNAS_SANITIZED
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the sanitizer's memory is too large to be walked");
#endif
    if (!can_drop() || sysconf(_SC_PAGESIZE) != PAGE)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "this processor cannot put memory out of its caches");
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "the kernel does not tell which pages are present: %s", strerror(errno));
    hwnas_evictor *e = hwnas_alloc(sizeof *e);
    e->pagemap = fd;
    e->pages = hwnas_alloc(sizeof *e->pages << N_SLOTS_LOG);
    *out = e;
    return HWNAS_OK;
}

void hwnas_evictor_close(hwnas_evictor *e)
{
    if (!e)
        return;
    close(e->pagemap);
    free(e->pages);
    free(e);
}

/* The slot of a page, or the free one where it would stand; NULL: it is not there and the table is
 * full. */
static page *find_page(const hwnas_evictor *e, uintptr_t number)
{
    const size_t mask = ((size_t)1 << N_SLOTS_LOG) - 1;
    size_t at = (size_t)(number * 0x9E3779B97F4A7C15u >> (64 - N_SLOTS_LOG));
    while (e->pages[at].number && e->pages[at].number != number)
        at = (at + 1) & mask;
    return e->pages[at].number || e->n_pages < mask / 2 ? &e->pages[at] : NULL;
}

static void note_page(hwnas_evictor *e, const char *at)
{
    const uintptr_t number = (uintptr_t)at / PAGE;
    const uint64_t sum = XXH3_64bits(at, PAGE);
    page *p = find_page(e, number);
    if (!p)
        return;
    if (!p->number) {
        *p = (page){.number = number, .changes = e->is_noted};
        e->n_pages++;
    } else {
        p->changes |= p->sum != sum;
    }
    p->sum = sum;
}

static void drop_page(hwnas_evictor *e, const char *at)
{
    (void)e;
    drop(at);
}

static void drop_constant_page(hwnas_evictor *e, const char *at)
{
    const page *p = find_page(e, (uintptr_t)at / PAGE);
    if (p && p->number && !p->changes)
        drop(at);
}

/* Calls `what` for each page that is present and may be read, but not for what the kernel itself
 * puts into a process. */
static hwnas_status walk(hwnas_evictor *e, void (*what)(hwnas_evictor *e, const char *at))
{
    const uint64_t present = (uint64_t)1 << 63; /* Documentation/admin-guide/mm/pagemap.rst */
    char line[512], mode[5];
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot read /proc/self/maps: %s", strerror(errno));
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 || mode[0] != 'r' ||
            strstr(line, "[v"))
            continue;
        for (unsigned long at = from; at < to; at += CHUNK * PAGE) {
            uint64_t entries[CHUNK];
            size_t n = (to - at) / PAGE < CHUNK ? (to - at) / PAGE : CHUNK;
            ssize_t got = pread(e->pagemap, entries, n * sizeof *entries,
                                (off_t)(at / PAGE * sizeof *entries));
            for (ssize_t i = 0; i < got / (ssize_t)sizeof *entries; i++)
                if (entries[i] & present)
                    what(e, (const char *)at + i * PAGE);
        }
    }
    fclose(maps);
    wait_for_drops();
    return HWNAS_OK;
}

hwnas_status hwnas_evictor_note(hwnas_evictor *e)
{
    TRY(walk(e, note_page));
    e->is_noted = true;
    return HWNAS_OK;
}

hwnas_status hwnas_evict_all(hwnas_evictor *e)
{
    return walk(e, drop_page);
}

hwnas_status hwnas_evict_constants(hwnas_evictor *e)
{
    return walk(e, drop_constant_page);
}
