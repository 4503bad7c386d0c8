/* kernels.h: operators as launches of our own kernels, for what cuDNN has no engine for.
 *
 * Every operator that graphs are run with has a kernel, so a node never lacks one; that of a
 * convolution or a product is a last resort. This needs no GPU: a launch is data, and kernels/ is
 * compiled by others. */
#ifndef HWNAS_CUDNN_KERNELS_H
#define HWNAS_CUDNN_KERNELS_H

#include "device/cudnn/kernels/kernel_job.h"
#include "device/device.h"

/* One kernel: `kernels/FILE.cu` has it. */
typedef struct hwnas_kernel {
    const char *name, *file;
    bool shares_lines; /* a block has one of job.n at a time, not a thread */
} hwnas_kernel;

/* All of them; the last has no name. */
extern const hwnas_kernel hwnas_kernels[];

/* One launch. A view's `at` is NULL until the launch is bound to memory. */
typedef struct hwnas_launch {
    const hwnas_kernel *kernel;
    hwnas_kernel_job job;
    int tensors[HWNAS_JOB_VIEWS];     /* by view: of the graph; -1: its dimensions alone */
    int64_t offsets[HWNAS_JOB_VIEWS]; /* by view: bytes from the tensor's beginning */
} hwnas_launch;

typedef struct hwnas_launches {
    size_t n, capacity;
    hwnas_launch *all;
} hwnas_launches;
void hwnas_launches_done(hwnas_launches *launches);

/* Elements that a kernel can count: a thread goes on by all threads of a launch, and must not come
 * to 2^31. */
enum { HWNAS_KERNEL_THREADS = 1 << 24, HWNAS_KERNEL_MOST = 0x7fffffff - HWNAS_KERNEL_THREADS };

/* Bytes of one element. */
size_t hwnas_stored_size(int type);
/* A tensor whose last dimension is the fastest. HWNAS_E_UNSUPPORTED: above HWNAS_KERNEL_MOST. */
HWNAS_CHECKED hwnas_status hwnas_view_plain(hwnas_view *out, const hwnas_tensor *tensor, int type);
/* An image whose channels are the fastest, its dimensions in the order of NCHW. */
HWNAS_CHECKED hwnas_status hwnas_view_nhwc(hwnas_view *out, const hwnas_tensor *tensor, int type);

/* Appends what computes a node. `views`: of each tensor of the graph, as it lies in memory. */
HWNAS_CHECKED hwnas_status hwnas_kernels_lower(hwnas_launches *out, const hwnas_graph *graph,
                                               const hwnas_node *node, const hwnas_view *views);
/* Appends a copy of a tensor into another, of the same dimensions, whatever their types and
 * layouts. */
void hwnas_kernels_copy(hwnas_launches *out, int to, const hwnas_view *to_view, int from,
                        const hwnas_view *from_view);
/* Appends one launch for several nodes that are functions of elements, each of which reads the
 * output of the one before and no other reads that. False, with nothing appended: too many operands
 * for one. */
bool hwnas_kernels_chain(hwnas_launches *out, const hwnas_graph *graph, size_t n_nodes,
                         const int *nodes, const hwnas_view *views);

/* What a kernel is compiled for: macros as the compiler's options, one a line, and nothing of the
 * places and dimensions. Equal text, equal kernel. Yours to free(). */
char *hwnas_launch_options(const hwnas_launch *launch);
/* Blocks of how many threads are to be launched. */
void hwnas_launch_shape(int *n_blocks, int *n_threads, const hwnas_launch *launch);

/* ---- For the files that lower ---- */

/* A new launch with its output and, of the node's inputs, the first `n_inputs`, as they are. */
hwnas_launch *hwnas_launch_new(hwnas_launches *out, const char *kernel, const hwnas_graph *graph,
                               const hwnas_node *node, const hwnas_view *views, int n_inputs);
void hwnas_launch_add_view(hwnas_launch *launch, int tensor, const hwnas_view *view);
/* The view without the dimensions in `set`, and with those alone. */
hwnas_view hwnas_view_without(const hwnas_view *view, unsigned set);
hwnas_view hwnas_view_only(const hwnas_view *view, unsigned set);
/* As if of `like`'s dimensions: repeated where they are 1 or absent. */
hwnas_view hwnas_view_broadcast(const hwnas_view *view, const hwnas_view *like);
int64_t hwnas_view_count(const hwnas_view *view);
/* A dimension that may be counted from the end. */
int hwnas_view_axis(const hwnas_view *view, int64_t axis);

/* Operators that are not functions of elements: kernels_lower.c. NULL: it is one, or has none. */
typedef void hwnas_lower(hwnas_launches *out, const hwnas_graph *graph, const hwnas_node *node,
                         const hwnas_view *views);
hwnas_lower *hwnas_kernels_lowering(const hwnas_node *node);
hwnas_lower hwnas_lower_recurrent;

#endif
