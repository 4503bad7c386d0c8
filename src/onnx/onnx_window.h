/* onnx_window.h: the windows of convolutions and pools, and images as we have them. Private to
 * onnx/.
 *
 * Those of one or three dimensions, or padded in words, become those of two that we have. Three
 * dimensions are seen as two at a time, which is exact:
 *
 * - a convolution is a sum over the kernel's depth of convolutions of all slices;
 * - a greatest value or a mean over a box is one over height and width, then one over depth. */
#ifndef HWNAS_ONNX_ONNX_WINDOW_H
#define HWNAS_ONNX_ONNX_WINDOW_H

#include "onnx/onnx_build.h"

enum { HWNAS_ONNX_MAX_SPATIAL = 3, HWNAS_ONNX_MAX_TAPS = 256 };

typedef struct hwnas_onnx_window {
    int n; /* spatial dimensions */
    int64_t kernel[HWNAS_ONNX_MAX_SPATIAL], stride[HWNAS_ONNX_MAX_SPATIAL];
    int64_t dilation[HWNAS_ONNX_MAX_SPATIAL];
    int64_t before[HWNAS_ONNX_MAX_SPATIAL], after[HWNAS_ONNX_MAX_SPATIAL];
    int64_t beyond[HWNAS_ONNX_MAX_SPATIAL]; /* rounding up: what the last window may reach over the
                                               end */
    bool is_plain; /* as our tables say it: two dimensions, numbers for the padding, rounded down */
} hwnas_onnx_window;

/* The node's window over `in`; with `n` 0 it was refused. `kernel`: of the weights; NULL: an
 * attribute. */
hwnas_onnx_window hwnas_onnx_read_window(hwnas_onnx_builder *b, const hwnas_tensor *in,
                                         const int64_t *kernel);
/* `n` values of an attribute, the first one at `from`; `absent` where it has none. */
void hwnas_onnx_read_ints(int64_t *to, int n, const hwnas_onnx_builder *b, const char *name,
                          int64_t absent, size_t from);

/* `x` with spatial dimensions of these sizes. */
int hwnas_onnx_reshape_spatial(hwnas_onnx_builder *b, int x, int n, const int64_t *sizes);
/* What has one spatial dimension as an image of one row, and back. */
int hwnas_onnx_as_row(hwnas_onnx_builder *b, int x);
int hwnas_onnx_from_row(hwnas_onnx_builder *b, int x);

/* Values of attributes. */
hwnas_attr hwnas_onnx_pair(int64_t y, int64_t x);
hwnas_attr hwnas_onnx_four(int64_t a, int64_t b, int64_t c, int64_t d);

#endif
