/* fake_gpu.h: what the parts of the stand-in share. */
#ifndef TEST_GPU_FAKE_GPU_H
#define TEST_GPU_FAKE_GPU_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

enum { FAKE_SM = 90, FAKE_BYTES = 1 << 30, FAKE_L2_BYTES = 1 << 20 };
#define EXPORT __attribute__((visibility("default")))

extern struct fake_state {
    int n_allocations, n_launches, n_recorded; /* since the last reset */
    int n_live, n_broken, n_replays; /* what fake_gpu_count() tells */
    bool is_lost;
} fake;

/* The number behind a fault that FAKE_GPU_FAULT asks for, 1 without one; 0: it does not ask. */
int fake_fault(const char *name);
/* Whether all of it lies in one block of the GPU's memory; that it does not is counted
 * as broken. */
bool fake_owns(const char *begin, size_t bytes);

/* A plan was made, by another thread than that which runs networks or not. */
void fake_note_plan(bool is_ahead);

/* Work of a library's own on the stream; first in a struct that `free` frees. */
typedef struct fake_call fake_call;
struct fake_call {
    int refs; /* of the stream and of graphs */
    CUresult (*run)(fake_call *call);
    void (*free)(fake_call *call);
    double extra; /* of a kernel's simulated time, that it takes beside it */
};
/* Does it or records it; takes the call over. */
CUresult fake_enqueue(fake_call *call);

#endif
