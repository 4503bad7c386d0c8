/* api.h: what the files behind hwnas.h share. */
#ifndef HWNAS_API_API_H
#define HWNAS_API_API_H

#include <jansson.h>

#include "profile/sweep.h"
#include "device/device.h"
#include "measure/measure.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "space/arch.h"
#include "study/job.h"

struct hwnas_network {
    hwnas_space *own_space; /* NULL: the space is the caller's, or there is none */
    hwnas_arch *arch;       /* NULL: of an ONNX file */
    hwnas_graph *graph;
    char *name, *code; /* code NULL: of an ONNX file */
    char *source;      /* what it was opened from: a study, or the name */
    char *judge;       /* "samples:...": by these its weights were recovered; NULL: they were not */
    int batch;
    hwnas_precision measured; /* of a trial: that it was measured in */
    char *layers; /* of one whose layers have a precision each, study/write_network.h; or NULL */
    struct hwnas_job_data *data; /* of such a one, by which it got them; or NULL */
    hwnas_costs costs;
    hwnas_digest digest;
    hwnas_array_info *inputs, *outputs;
};

/* Takes the graph. */
hwnas_network *hwnas_api_network_of(const char *name, hwnas_graph *graph, int batch);

/* What files of samples say of their shapes, one for each array, as a network's open dimensions
 * become. What cannot be read is left out. */
enum { HWNAS_MOST_SAMPLE_SHAPES = 64 };
hwnas_onnx_sample *hwnas_api_sample_shapes(size_t *n, hwnas_arena *arena, size_t n_files,
                                           const hwnas_data_file *files);

/* There is a space or network of that name, and no such file. */
bool hwnas_api_is_space(const char *name);

struct hwnas_predictor;
/* The judge of a network, whose samples have its weights; HWNAS_E_INPUT, _NOT_FOUND where they are
 * not what they were. NULL: it has none. */
HWNAS_CHECKED hwnas_status hwnas_api_open_judge(struct hwnas_predictor **out,
                                                const hwnas_network *network);

/* A network that was judged on samples, with the weights that it was judged by; NULL: it was not.
 */
HWNAS_CHECKED hwnas_status hwnas_api_recover(hwnas_graph **out, const hwnas_network *network);

/* Gives a JSON object as text and frees it. NULL is an object that could not be made. */
HWNAS_CHECKED hwnas_status hwnas_api_give_json(char **out, json_t *json);

/* Tells whoever listens when the machine is too busy for so many threads (0: all cores) on a device
 * (measure/crowd.h), before hours are spent on it. */
void hwnas_api_note_crowd(const char *device, int threads, hwnas_priority priority);
/* The same of a sweep, and where more threads than cores take turns on this machine. */
void hwnas_api_note_sweep(const hwnas_sweep *sweep);
/* The interval of a measurement, relative. */
HWNAS_CHECKED hwnas_status hwnas_api_check_interval(double interval);

/* Measuring starts the installed program, as the one that uses the library is not hwnas; or that
 * one, where it can be a runner. */
void hwnas_api_use_runner(void);

/* A job (`path` NULL: of flags alone) with what options say beside it: study (NULL) and number of
 * trials (0: as it says), and flags (NULL). */
HWNAS_CHECKED hwnas_status hwnas_api_load_job(hwnas_job **out, const char *path, const char *study,
                                              int64_t max_trials, const hwnas_job_flag *given);

#endif
