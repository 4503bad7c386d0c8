/* kernel.h: what kernels are written in: a small part of CUDA C that is plain C for the host as
 * well.
 *
 * For a GPU, NVRTC compiles a kernel with the types, ranks and functions of its job as constants
 * (JOB_TYPE_0, ...), so what they decide is decided then. For the host, where the tests hold the
 * same text to the operators' own loops, they are read from the job, and the loops over blocks and
 * threads are loops, or threads of the host.
 *
 *   FOR_EACH(i)      every i below job.n, shared out among all threads
 *   FOR_BLOCKS(i)    the same among blocks
 *   THREADS(t)       every thread t of the block, then a barrier; what goes on to the next THREADS
 * is SHARED */
#ifndef HWNAS_CUDNN_KERNEL_H
#define HWNAS_CUDNN_KERNEL_H

#include "kernel_job.h"

enum { N_THREADS = HWNAS_BLOCK_THREADS };

#ifdef __CUDACC_RTC__

/* Only the kernel that is wanted, by -DWANT_NAME=, (a comma, so that the second of these two is the
 * first that is not): the others are not compiled. */
#define KERNEL(NAME) KERNEL_IF_(WANT_##NAME, NAME)
#define KERNEL_IF_(WANT, NAME)                                                                     \
    KERNEL_PICK_(WANT extern "C" __global__ void NAME(const __grid_constant__ hwnas_kernel_job job),      \
                 [[maybe_unused]] static __device__ void NAME(const hwnas_kernel_job &job), )
#define KERNEL_PICK_(...) KERNEL_SECOND_(__VA_ARGS__)
#define KERNEL_SECOND_(FIRST, SECOND, ...) SECOND
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__
#define UNROLL _Pragma("unroll")
#define INFINITY __int_as_float(0x7f800000)
#define FOR_EACH(i)                                                                                \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < job.n; i += gridDim.x * blockDim.x)
#define FOR_BLOCKS(i) for (int i = blockIdx.x; i < job.n; i += gridDim.x)
#define THREADS(t)                                                                                 \
    for (int t = threadIdx.x, is_first_ = 1; is_first_; is_first_ = 0, __syncthreads())
#define PASTE_(A, B) A##B
#define TYPE(k) PASTE_(JOB_TYPE_, k)
#define RANK(k) PASTE_(JOB_RANK_, k)
#define CODE JOB_CODE
#define N_VIEWS JOB_N_VIEWS
#define N_LINKS JOB_N_LINKS
static __device__ constexpr int hwnas_types[] = {JOB_TYPE_0, JOB_TYPE_1, JOB_TYPE_2, JOB_TYPE_3,
                                                 JOB_TYPE_4, JOB_TYPE_5, JOB_TYPE_6, JOB_TYPE_7};
static __device__ constexpr int hwnas_functions[] = {
    JOB_FUNCTION_0, JOB_FUNCTION_1, JOB_FUNCTION_2, JOB_FUNCTION_3,
    JOB_FUNCTION_4, JOB_FUNCTION_5, JOB_FUNCTION_6, JOB_FUNCTION_7};
#define TYPE_OF(k) hwnas_types[k]
#define FUNCTION_OF(k) hwnas_functions[k]

DEVICE float kernel_bits_to_float(unsigned bits)
{
    return __uint_as_float(bits);
}

DEVICE unsigned kernel_float_to_bits(float x)
{
    return __float_as_uint(x);
}

DEVICE float kernel_from_half(unsigned short bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

DEVICE unsigned short kernel_to_half(float x)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

#else

#include <math.h>
#include <string.h>

#include "base/half.h"

#define DEVICE static inline __attribute__((unused))
#define SHARED static
#define UNROLL
#define TYPE(k) job.views[k].type
#define RANK(k) job.views[k].rank
#define CODE job.ints[0]
#define N_VIEWS job.n_views
#define N_LINKS job.n_links
#define TYPE_OF(k) job.views[k].type
#define FUNCTION_OF(k) job.links[k].function

#ifdef HWNAS_KERNEL_BLOCK

/* By threads of the host, one for each of the GPU's, whose barrier is a barrier: what races on a
 * GPU races here. What a block shares is static, so each block that runs at the same time is
 * another compilation of the text, with a number of its own. */
typedef struct kernel_launch {
    int n_blocks, block, n_threads, thread;
    void (*wait)(void *barrier); /* until all threads of the block are there */
    void *barrier;
} kernel_launch;

#define KERNEL(NAME) static void NAME(hwnas_kernel_job job, kernel_launch launch)
#define FOR_EACH(i)                                                                                \
    for (int i = launch.block * launch.n_threads + launch.thread; i < job.n;                       \
         i += launch.n_blocks * launch.n_threads)
#define FOR_BLOCKS(i) for (int i = launch.block; i < job.n; i += launch.n_blocks)
#define THREADS(t)                                                                                 \
    for (int t = launch.thread, is_first_ = 1; is_first_;                                          \
         is_first_ = 0, launch.wait(launch.barrier))

#else

/* The host's own: how many blocks and threads; whether threads come in the opposite order, so that
 * a missing barrier shows. */
typedef struct kernel_launch {
    int n_blocks, n_threads, is_backward;
} kernel_launch;

#define KERNEL(NAME)                                                                               \
    void NAME(hwnas_kernel_job job, kernel_launch launch);                                         \
    void NAME(hwnas_kernel_job job, kernel_launch launch)
#define FOR_EACH(i)                                                                                \
    for (int thread_ = 0; thread_ < launch.n_blocks * launch.n_threads; thread_++)                 \
        for (int i = thread_; i < job.n; i += launch.n_blocks * launch.n_threads)
#define FOR_BLOCKS(i)                                                                              \
    for (int block_ = 0; block_ < launch.n_blocks; block_++)                                       \
        for (int i = block_; i < job.n; i += launch.n_blocks)
#define THREADS(t)                                                                                 \
    for (int at_##t = 0, t = launch.is_backward ? N_THREADS - 1 : 0; at_##t < N_THREADS;           \
         at_##t++, t += launch.is_backward ? -1 : 1)

#endif

DEVICE float kernel_bits_to_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

DEVICE unsigned kernel_float_to_bits(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

DEVICE float kernel_from_half(unsigned short bits)
{
    return hwnas_half_value(bits);
}

DEVICE unsigned short kernel_to_half(float x)
{
    return hwnas_half_of(x);
}

#endif

/* Rounds to the nearest, halves to even; what is not a number stays so. */
DEVICE unsigned short kernel_to_bfloat(float x)
{
    const unsigned bits = kernel_float_to_bits(x);
    if (x != x)
        return (unsigned short)(bits >> 16 | 0x40);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

DEVICE float kernel_load(const void *at, int type, int i)
{
    switch (type) {
    case HWNAS_STORED_F16:
        return kernel_from_half(((const unsigned short *)at)[i]);
    case HWNAS_STORED_BF16:
        return kernel_bits_to_float((unsigned)((const unsigned short *)at)[i] << 16);
    case HWNAS_STORED_S8:
        return ((const signed char *)at)[i];
    case HWNAS_STORED_S32:
        return (float)((const int *)at)[i];
    default:
        return ((const float *)at)[i];
    }
}

DEVICE void kernel_store(void *at, int type, int i, float x)
{
    switch (type) {
    case HWNAS_STORED_F16:
        ((unsigned short *)at)[i] = kernel_to_half(x);
        break;
    case HWNAS_STORED_BF16:
        ((unsigned short *)at)[i] = kernel_to_bfloat(x);
        break;
    case HWNAS_STORED_S8:
        ((signed char *)at)[i] = (signed char)fminf(127, fmaxf(-128, rintf(x)));
        break;
    case HWNAS_STORED_S32:
        ((int *)at)[i] = (int)rintf(x);
        break;
    default:
        ((float *)at)[i] = x;
    }
}

/* View k, a constant, at an offset in elements. */
#define LOAD(k, i) kernel_load(job.views[k].at, TYPE(k), i)
#define STORE(k, i, x) kernel_store(job.views[k].at, TYPE(k), i, x)

/* Where the i-th element of a view lies, its last dimension the fastest. */
DEVICE int kernel_offset(const hwnas_view *view, int rank, int i)
{
    unsigned left = (unsigned)i;
    int offset = 0;
    UNROLL
    for (int d = rank - 1; d >= 0; d--) {
        offset += (int)(left % (unsigned)view->dims[d]) * view->steps[d];
        left /= (unsigned)view->dims[d];
    }
    return offset;
}
#define OFFSET(k, i) kernel_offset(&job.views[k], RANK(k), i)

/* A number that counts places, from the end where it is negative; beyond the dimension, the
 * nearest. */
DEVICE int kernel_place(float index, int n)
{
    const int i = (int)index + (index < 0 ? n : 0);
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

#endif
