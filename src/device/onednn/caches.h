/* caches.h: the sizes of the processor's caches, as oneDNN knows them.
 *
 * oneDNN divides its work by what CPUID tells of the caches. Some virtual machines tell nothing:
 * 0 bytes, or 0 cores that share one. oneDNN 3.7 believes it. Its products then lack terms, and
 * some of its convolutions divide by zero. It has no setting for the sizes. */
#ifndef HWNAS_DEVICE_ONEDNN_CACHES_H
#define HWNAS_DEVICE_ONEDNN_CACHES_H

#include <stdint.h>

enum { HWNAS_ONEDNN_CACHE_LEVELS = 10 };

/* oneDNN's own record, as its library xbyak lays it out (xbyak_util.h, class Cpu, versions 6.68 to
 * 7.24). */
typedef struct hwnas_onednn_caches {
    uint32_t bytes[HWNAS_ONEDNN_CACHE_LEVELS];   /* of each level, the first level first */
    uint32_t sharing[HWNAS_ONEDNN_CACHE_LEVELS]; /* the cores that share one cache of a level */
    uint32_t levels;
} hwnas_onednn_caches;

/* The record inside of the loaded oneDNN; NULL where there is none that we recognise: another
 * processor, another layout. The memory is oneDNN's. One thread at a time. */
hwnas_onednn_caches *hwnas_onednn_find_caches(void);

/* Gives each level that has no size the size that oneDNN itself assumes where it knows of no
 * caches. To be called before anything is compiled; changes nothing where the sizes are known. One
 * thread at a time. */
void hwnas_onednn_know_caches(void);

#endif
