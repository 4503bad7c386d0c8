/* place.h: buffers of known lifetime in one piece of memory.
 *
 * A block is live from the step that writes it to the last step that reads it, both included;
 * blocks that are live at one time never overlap. */
#ifndef HWNAS_DEVICE_PLACE_H
#define HWNAS_DEVICE_PLACE_H

#include <stddef.h>

enum { HWNAS_PLACE_ALIGN = 64 };

typedef struct hwnas_block {
    size_t size;
    int first, last;
    size_t offset; /* set by hwnas_place_blocks() */
} hwnas_block;

/* Gives each block its offset, a multiple of HWNAS_PLACE_ALIGN; returns the bytes that all of them
 * take together. */
size_t hwnas_place_blocks(hwnas_block *blocks, size_t n);

#endif
