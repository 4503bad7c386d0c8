/* network_training.c: hwnas_network_train(): a network is trained to the end, and judged as the
 * file that is deployed. */
#include <hwnas/data.h>
#include <hwnas/training.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "api/api.h"
#include "api/evaluation.h"
#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/file.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "export/exporter.h"
#include "predict/recipe_run.h"

enum { BATCH = 32 };

/* One file of many, PREFIX.SUFFIX. */
typedef struct kept_file {
    const char *suffix;
    bool is_end; /* it is written when the training is over */
    const char *remark;
} kept_file;

/* The ends in the order in which they are written. */
static const kept_file kept[] = {
    {".csv", true, "has loss and accuracy by epoch"},
    {".onnx", true, ""},
    {".py", true, "is the module whose weights are 'weights' of the checkpoint"},
    {".pt", false, "is the checkpoint"},
};
enum { N_KEPT = sizeof kept / sizeof *kept };

static hwnas_status check_options(const hwnas_network_training_options *o,
                                  const hwnas_network *network)
{
    if (!o->recipe || !o->out)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "a training needs a recipe, and a name for its files");
    if (!network->arch)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "'%s' is no network of a space: only these are trained",
                                     network->name),
                          "a YAML file, or a space with --arch CODE; 'hwnas optimize' writes a "
                          "program that trains its network further");
    const hwnas_place place = {.file = o->recipe};
    if (!hwnas_file_exists(o->recipe))
        return hwnas_fail(HWNAS_E_NOT_FOUND, &place, "there is no such recipe of a training");
    return HWNAS_OK;
}

/* A training that was interrupted: its checkpoint is there, and of what it ends with the first
 * ones, not all. */
static bool is_interrupted(const char *prefix)
{
    bool has_checkpoint = false, has_all_ends = true, is_in_order = true;
    for (int i = 0; i < N_KEPT; i++) {
        char *path = hwnas_printf("%s%s", prefix, kept[i].suffix);
        const bool is_there = !access(path, F_OK);
        if (kept[i].is_end) {
            is_in_order = is_in_order && (has_all_ends || !is_there);
            has_all_ends = has_all_ends && is_there;
        } else {
            has_checkpoint = is_there;
        }
        free(path);
    }
    return has_checkpoint && !has_all_ends && is_in_order;
}

/* Nothing that a training ended with is replaced unasked; one that was interrupted goes on, even
 * if that was between two of the files it ends with. */
static hwnas_status make_room(const hwnas_network_training_options *o, const char *network)
{
    hwnas_status status = HWNAS_OK;
    const bool may_replace = o->overwrite || is_interrupted(o->out);
    for (int i = 0; i < N_KEPT && status == HWNAS_OK; i++) {
        char *path = hwnas_printf("%s%s", o->out, kept[i].suffix);
        if (hwnas_file_exists(network))
            status = hwnas_file_check_output(path, network);
        if (status == HWNAS_OK && kept[i].is_end && !may_replace && !access(path, F_OK))
            status = hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "%s is there already", path),
                                "--overwrite begins anew, --out takes other names");
        if (status == HWNAS_OK && o->overwrite)
            unlink(path);
        free(path);
    }
    return status;
}

static size_t read_numbers(double **out, const json_t *list)
{
    const size_t n = json_array_size(list);
    *out = hwnas_alloc((n + 1) * sizeof **out);
    for (size_t i = 0; i < n; i++)
        (*out)[i] = json_number_value(json_array_get(list, i));
    return n;
}

/* The samples that the trainer names. */
static hwnas_status open_samples(hwnas_dataset **out, const hwnas_network *network,
                                 const json_t *told)
{
    hwnas_dataset_options options = HWNAS_DATASET_OPTIONS_INIT;
    double *mean, *std;
    const hwnas_data_file file = {.path = json_string_value(json_object_get(told, "data")),
                                  .array = json_string_value(json_object_get(told, "x"))};
    options.labels = json_string_value(json_object_get(told, "labels"));
    options.label_array = json_string_value(json_object_get(told, "y"));
    options.layout = json_string_value(json_object_get(told, "layout"));
    options.scale = json_number_value(json_object_get(told, "scale"));
    options.n_mean = read_numbers(&mean, json_object_get(told, "mean"));
    options.n_std = read_numbers(&std, json_object_get(told, "std"));
    options.mean = mean;
    options.std = std;
    const hwnas_status status = hwnas_dataset_open(out, network, 1, &file, &options);
    free(mean);
    free(std);
    return status;
}

/* By this engine, of the file: what is told is what is deployed. */
static hwnas_status evaluate(hwnas_report **out, const char *onnx, const json_t *told,
                             const volatile sig_atomic_t *cancel)
{
    hwnas_status status = HWNAS_OK;
    hwnas_network *network = NULL;
    hwnas_dataset *data = NULL;
    hwnas_device *device = NULL;
    hwnas_evaluation *evaluation = NULL;
    hwnas_network_options options = HWNAS_NETWORK_OPTIONS_INIT;
    hwnas_evaluation_options how = HWNAS_EVALUATION_OPTIONS_INIT;
    options.batch = BATCH;
    options.takes_own_batch = true;
    how.cancel = cancel;
    TRY_OUT(hwnas_network_open(&network, onnx, NULL, &options));
    TRY_OUT(open_samples(&data, network, told));
    TRY_OUT(hwnas_device_open(&device, "cpu", NULL));
    TRY_OUT(hwnas_dataset_evaluate(&evaluation, data, network, device, &how));
    *out = hwnas_api_report_of_evaluation(evaluation);
out:
    hwnas_device_close(device);
    hwnas_dataset_close(data);
    hwnas_network_close(network);
    return status;
}

static void add_words(hwnas_report *report, const char *prefix, const json_t *told)
{
    const char *part = json_string_value(json_object_get(told, "part"));
    if (part && strcmp(part, "test"))
        hwnas_report_add_note(report, "these are the samples that judged it while it was trained: "
                                      "a recipe with 'test' has others");
    for (int i = 0; i < N_KEPT; i++) {
        char *path = hwnas_printf("%s%s", prefix, kept[i].suffix);
        hwnas_report_add_file(report, path, kept[i].remark);
        free(path);
    }
}

hwnas_status hwnas_network_train(hwnas_report **out, const hwnas_network *network,
                                 const hwnas_network_training_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_network_training_options o;
    json_t *told = NULL;
    hwnas_report *report;
    TRY(TAKE_OPTIONS(&o, given));
    TRY(check_options(&o, network));
    TRY(make_room(&o, network->name));
    char *onnx = hwnas_printf("%s.onnx", o.out), *module = hwnas_printf("%s.py", o.out);
    const hwnas_recipe_call call = {.recipe = o.recipe,
                                    .options = {"--out", o.out},
                                    .arch = network->arch,
                                    .stop = o.cancel,
                                    .says = o.says,
                                    .context = o.context};
    TRY_OUT(hwnas_recipe_run(&told, &call));
    TRY_OUT(hwnas_export(module, "pytorch", network->arch, 1));
    TRY_OUT(evaluate(&report, onnx, told, o.cancel));
    add_words(report, o.out, told);
    *out = report;
out:
    json_decref(told);
    free(onnx);
    free(module);
    return status;
}
