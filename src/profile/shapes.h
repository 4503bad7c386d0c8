/* shapes.h: the shapes of inputs as a user writes them: "ids=1x128,mask=1x128", or by the names of
 * dimensions "sequence=128", and of a sweep "ids=1x{32,64,128}". */
#ifndef HWNAS_PROFILE_SHAPES_H
#define HWNAS_PROFILE_SHAPES_H

#include "base/mem.h"
#include "onnx/onnx.h"

enum { HWNAS_SHAPE_VARIANTS = 16, HWNAS_SHAPE_INPUTS = 64 };

/* The shapes of one network; none: as the file has them. */
typedef struct hwnas_shape_set {
    const char *text; /* without braces; NULL: none */
    size_t n;
    hwnas_onnx_shape *list;
} hwnas_shape_set;

/* Reads the text into `sets`, of which there are *n: as many as the braces have entries, which must
 * be the same everywhere: the k-th set has the k-th entry of each. What it makes is in the arena.
 * HWNAS_E_USAGE with the place in the text. */
HWNAS_CHECKED hwnas_status hwnas_shapes_parse(hwnas_shape_set sets[HWNAS_SHAPE_VARIANTS], size_t *n,
                                              hwnas_arena *arena, const char *text);

#endif
