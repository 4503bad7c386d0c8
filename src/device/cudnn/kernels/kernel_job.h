/* kernel_job.h: what one launch of a kernel of ours is to do.
 *
 * This text is read by the library, by NVRTC with the kernels, and by the tests, which compile the
 * kernels for the host; so it is C and C++ at once, and includes nothing. */
#ifndef HWNAS_DEVICE_KERNEL_JOB_H
#define HWNAS_DEVICE_KERNEL_JOB_H

enum {
    HWNAS_JOB_RANK = 8,
    HWNAS_JOB_VIEWS = 8,
    HWNAS_JOB_LINKS = 8,
    HWNAS_JOB_OPERANDS = 5, /* of one function */
    HWNAS_JOB_INTS = 24,
};

/* How a value is stored. */
enum { HWNAS_BLOCK_THREADS = 128 }; /* in kernels whose threads work together */
enum { HWNAS_STORED_F32, HWNAS_STORED_F16, HWNAS_STORED_BF16, HWNAS_STORED_S8, HWNAS_STORED_S32,
       HWNAS_N_STORED };

/* A tensor, or a part of one: where each of its elements lies. Steps are in elements; 0 repeats. */
typedef struct hwnas_view {
    void *at;
    int type, rank;
    int dims[HWNAS_JOB_RANK], steps[HWNAS_JOB_RANK];
} hwnas_view;

/* A function of elements. One operand may be what the link before gave. */
typedef struct hwnas_kernel_link {
    int function;                     /* one of functions.h */
    int operands[HWNAS_JOB_OPERANDS]; /* views; HWNAS_OPERAND_* else */
    float a, b;
} hwnas_kernel_link;
enum { HWNAS_OPERAND_NONE = -1, HWNAS_OPERAND_LAST = -2 };

typedef struct hwnas_kernel_job {
    int n; /* what threads, or blocks of them, share out: elements or lines of the output */
    int n_views, n_links;
    hwnas_view views[HWNAS_JOB_VIEWS]; /* the output first */
    hwnas_kernel_link links[HWNAS_JOB_LINKS];
    int ints[HWNAS_JOB_INTS]; /* as the kernel has them; the first is known when it is compiled */
    float numbers[2];
} hwnas_kernel_job;

#define FUNCTION(NAME, VALUE) HWNAS_FUNCTION_##NAME,
enum {
#include "functions.h"
    HWNAS_N_FUNCTIONS
};
#undef FUNCTION

/* ints[0] of some kernels. */
enum {
    HWNAS_REDUCE_MEAN,
    HWNAS_REDUCE_SUM,
    HWNAS_REDUCE_L1,
    HWNAS_REDUCE_L2,
    HWNAS_REDUCE_LOG_SUM,
    HWNAS_REDUCE_LOG_SUM_EXP,
    HWNAS_REDUCE_MAX,
    HWNAS_REDUCE_MIN,
    HWNAS_REDUCE_PROD,
    HWNAS_REDUCE_SUM_SQUARE,
};
enum {
    HWNAS_SCATTER_REPLACE,
    HWNAS_SCATTER_ADD,
    HWNAS_SCATTER_MUL,
    HWNAS_SCATTER_MAX,
    HWNAS_SCATTER_MIN
};
enum { HWNAS_PAD_CONSTANT, HWNAS_PAD_EDGE, HWNAS_PAD_REFLECT, HWNAS_PAD_WRAP };
enum { HWNAS_SAMPLE_LINEAR, HWNAS_SAMPLE_NEAREST, HWNAS_SAMPLE_CUBIC };
enum { HWNAS_SAMPLE_ZEROS, HWNAS_SAMPLE_BORDER, HWNAS_SAMPLE_REFLECTION };
enum { HWNAS_RNN_LSTM, HWNAS_RNN_GRU };
enum {
    HWNAS_RNN_MOST_HIDDEN = 4096
}; /* of the recurrent kernel, whose state fills the 48 KiB of shared memory that every GPU has */

#endif
