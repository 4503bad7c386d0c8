/* wanted.h: what networks want of cuDNN: operations, each of them once, found by cutting alone. */
#ifndef HWNAS_TESTS_GPU_WANTED_H
#define HWNAS_TESTS_GPU_WANTED_H

#include "device/cudnn/compile.h"

typedef struct wanted {
    hwnas_cudnn_operation o;
    char *signature;
    char *form; /* the signature without sizes: operators, types, layouts, which are 1 or odd */
} wanted;

/* A network that was cut, and the numbers of what it wants. */
typedef struct wanter {
    char *space, *code; /* of the architecture */
    size_t n, capacity;
    int *wants;
} wanter;

typedef struct wanted_set {
    size_t n, capacity, n_slots; /* n_slots: a power of two, more than twice n */
    wanted *all;
    int *slots; /* number + 1, by hash of the signature */
    size_t n_networks, network_capacity;
    wanter *networks;
    /* Steps of all networks: by plans; nodes and conversions by kernels of ours; by cuDNN's RNN. */
    size_t n_engine, n_own, n_conversions, n_rnn;
} wanted_set;

/* Cuts the graph as if every plan could be made, and adds what is new. */
HWNAS_CHECKED hwnas_status wanted_cut(wanted_set *set, const hwnas_graph *graph,
                                      hwnas_precision precision, const char *space,
                                      const char *code);
bool wanted_has(const wanted_set *set, const char *signature);
/* Numbers of all that is wanted, shuffled; one of each form comes before the second of any. Returns
 * how many forms there are. `order` has set->n places. */
size_t wanted_order(int *order, const wanted_set *set, uint64_t seed);
void wanted_done(wanted_set *set);

#endif
