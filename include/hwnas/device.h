/* device.h: what runs graphs: for those who write one.
 *
 * A device is a table of functions. It knows graphs and buffers, and of spaces at most which of
 * their architectures it remembers. A
 * device, and what was compiled for it, is used by one thread at a time (but for `prepare`).
 * Networks are measured in a child process: a program with devices of its own calls
 * hwnas_runner_main() first of all. */
#ifndef HWNAS_PUBLIC_DEVICE_H
#define HWNAS_PUBLIC_DEVICE_H

#include <hwnas.h>
#include <hwnas/graph.h>
#include <hwnas/space.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HWNAS_DEVICE_ABI 14
/* Samples that start() takes before the first of them is waited for. */
#define HWNAS_MOST_STARTED 16

typedef struct hwnas_device_ops hwnas_device_ops;

/* Devices and executables embed these as their first member; `ops` is set by who makes them. */
struct hwnas_device {
    const hwnas_device_ops *ops;
};
struct hwnas_exec {
    const hwnas_device_ops *ops;
};

/* A piece of a run that the device does as one: a fused partition, a kernel, a node. */
typedef struct hwnas_exec_step {
    size_t n_nodes;   /* 0: brings values into another type, between nodes of different ones */
    const int *nodes; /* that it computes, of the graph that was compiled; borrowed from the exec */
    const char *how;  /* what computes it, in a few words: "partition", "loops"; behind a comma, why
                         that is slow: "cuDNN, no tensor cores"; static */
} hwnas_exec_step;

/* What a run would take, known without one. */
typedef struct hwnas_footprint {
    size_t n_steps;   /* that do something */
    size_t n_library; /* of them, by the device's library */
    size_t n_own;     /* of them, by ours where the library has nothing: conversions included */
    size_t weight_bytes, activation_bytes, workspace_bytes, buffer_bytes; /* buffers: in, out */
    size_t device_bytes; /* that the device has; 0: not known */
    /* Pieces that the device compiles and keeps, in memory or on disk: how many it looked up, and
     * how many were there. 0: it keeps none. */
    size_t n_lookups, n_hits;
} hwnas_footprint;

/* What holds a device's clocks down. */
typedef enum hwnas_throttle {
    HWNAS_THROTTLE_POWER = 1,    /* its power limit, as it is set: no disturbance */
    HWNAS_THROTTLE_HEAT = 2,     /* the others are: samples taken meanwhile are set aside */
    HWNAS_THROTTLE_BRAKE = 4,    /* from outside, as when a power supply fails */
    HWNAS_THROTTLE_HARDWARE = 8, /* it does not say why */
} hwnas_throttle;

/* How a device does at this moment. */
typedef struct hwnas_device_state {
    double hertz;       /* of the clock that it computes with; NaN: not known */
    unsigned throttles; /* a set of hwnas_throttle */
    bool is_recorded;   /* a run is launched whole, as it was recorded; else step by step */
} hwnas_device_state;

struct hwnas_device_ops {
    unsigned abi;     /* HWNAS_DEVICE_ABI; checked before anything else is believed */
    const char *name; /* what stands before ':' in a device's spelling: "cpu", "replay" */
    const char *help;

    const char *
        caveat; /* (optional) what is not proven of it, half a sentence; `hwnas devices` tells it */
    /* (optional) The word W behind the last colon, "NAME:0:W", with which the device prepares
     * networks sooner, and may run them slower than without: a search runs networks in that way and
     * measures its front without it. */
    const char *quick;
    /* (optional) How many there are here, named by numbers: NAME:0, NAME:1, ... */
    int (*count)(void);

    /* `argument` is what stands after ':', or "". (optional) NULL: nothing is run or looked up, the
     * program that asks a study for networks tells it their values (hwnas/study.h). */
    hwnas_status (*open)(hwnas_device **out, const char *argument,
                         const hwnas_device_options *options);
    void (*describe)(const hwnas_device *device, hwnas_device_info *out);
    void (*close)(hwnas_device *device);

    /* (optional) `progress` hears from now on what is compiled, and that it goes on, at least every
     * few seconds; NULL: nobody does. */
    void (*listen)(hwnas_device *device, void (*progress)(void *context, const char *phase),
                   void *context);

    unsigned precisions;  /* that it computes in: a set of bits 1 << hwnas_precision */
    unsigned trains;      /* those in which a run may be a training step */
    bool is_deployed;     /* networks are served by such: how fast it can be is worth knowing */
    bool has_own_threads; /* it computes with threads of its own on the processor's cores, not with
                             OpenMP's, which must not spin there meanwhile */

    /* Compiles a graph (batch norms already folded, unless it is to be trained); an operator that the device lacks is
     * HWNAS_E_UNSUPPORTED with the node's name. Weights are copied or converted; the graph may be
     * freed afterwards. NULL with `lookup`. */
    hwnas_status (*compile)(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                            const hwnas_exec_options *options);
    /* (optional) Makes what compiling a network will want and what costs a processor's time, and
     * remembers it: called by a second thread, on other cores, while the first one runs a network
     * that was compiled before. To be left when `goes_on` says so, which is to be asked now and
     * then; a failure is for `compile` to find. Only of a device that is spelled with its `quick`
     * word. */
    void (*prepare)(hwnas_device *device, const hwnas_graph *graph,
                    const hwnas_exec_options *options, bool (*goes_on)(void *context),
                    void *context);
    /* One inference, complete on return. Buffers are fp32 in the graph's layout, one for each graph
     * input and output. */
    hwnas_status (*run)(hwnas_exec *exec, const float *const *inputs, float *const *outputs);
    void (*free_exec)(hwnas_exec *exec);
    /* (optional) The graph of bytes that a folded graph becomes in s8; NULL: the library makes one,
     * with ranges that it finds itself. Both are the caller's, `origin` by malloc(): by node of the
     * new graph the node that it comes from, or -1. */
    hwnas_status (*quantize)(hwnas_graph **out, int **origin, hwnas_device *device,
                             const hwnas_graph *graph, const hwnas_exec_options *options);
    /* (optional) Bytes that the executable holds: weights and buffers. */
    size_t (*memory)(const hwnas_exec *exec);
    /* (optional) What a run would take. */
    void (*footprint)(const hwnas_exec *exec, hwnas_footprint *out);
    /* (optional) What a run consists of, in the order of running; returns how many. Borrowed. */
    size_t (*steps)(const hwnas_exec *exec, const hwnas_exec_step **out);
    /* (optional) As `run`, each step waited for: seconds[i] is what the i-th step took. */
    hwnas_status (*run_steps)(hwnas_exec *exec, const float *const *inputs, float *const *outputs,
                              double *seconds);
    /* (optional) Does `runs` times what `run` does, with the inputs of the last run and without
     * moving inputs and outputs; *seconds is what all of it took by the device's own clock. */
    hwnas_status (*time)(hwnas_exec *exec, int runs, double *seconds);
    /* (optional, with `time`) The same in halves, so that the device never waits for us: `start`
     * comes back at once, `finish` waits for the oldest that was started and tells its seconds.
     * HWNAS_MOST_STARTED may be under way; each begins when the one before it ends. */
    hwnas_status (*start)(hwnas_exec *exec, int runs);
    hwnas_status (*finish)(hwnas_exec *exec, double *seconds);
    /* (optional, with `time`) Empties the device's caches before the next run, which follows it
     * without a pause; comes back at once. */
    hwnas_status (*evict)(hwnas_exec *exec);
    /* (optional) A device with a clock of its own: how it does. May take milliseconds. */
    void (*state)(hwnas_exec *exec, hwnas_device_state *out);
    /* (optional) Joules that the device has used, from any beginning; NaN where it does not tell.
     * The counter may move as seldom as every 100 ms; asking may take milliseconds. */
    double (*joules)(hwnas_exec *exec);

    /* (optional) A device that remembers instead of running: the recorded value of the architecture
     * spelled `code`, as hwnas_arch_code() does, of the space that `recall` was told of. `metric`
     * is set to what the record is ("latency.p50" in seconds, "macs", ...). HWNAS_E_NOT_FOUND when
     * there is no record. */
    hwnas_status (*lookup)(double *out, const char **metric, hwnas_device *device,
                           const char *code);
    /* With `lookup`, and before it: which architectures of a space it remembers, each with a
     * record; borrowed until the next recall or the end, as the space is. HWNAS_E_INPUT: none. A
     * search stays among them. */
    hwnas_status (*recall)(const hwnas_arch *const **out, size_t *n, hwnas_device *device,
                           const hwnas_space *space);
    /* With `lookup`: the metric of its records. */
    const char *(*lookup_metric)(const hwnas_device *device);
};

/* Adds a device to those that may be named; the table is borrowed and stays. To be called before
 * the library is used otherwise, in the only thread. HWNAS_E_INPUT: the name is taken, or is not
 * one, or it has lookup() without recall() or lookup_metric(); HWNAS_E_UNSUPPORTED: built for
 * another version of this header. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_register_device(const hwnas_device_ops *device);

#ifdef __cplusplus
}
#endif
#endif
