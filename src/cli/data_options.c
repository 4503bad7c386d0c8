#include "cli/data_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number, or a fraction such as 1/255, up to `end`. */
static hwnas_status read_number(double *out, const char **at, const char *option)
{
    char *end;
    double value = strtod(*at, &end);
    bool is_good = end != *at;
    if (is_good && *end == '/') {
        const char *below = end + 1;
        value /= strtod(below, &end);
        is_good = end != below;
    }
    if (!is_good || !isfinite(value) || (*end && *end != ','))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_USAGE, NULL, "--%s: '%.60s' is no number", option, *at),
            "0.5, 1/255, or 0.485,0.456,0.406 for three channels");
    *out = value;
    *at = *end ? end + 1 : end;
    return HWNAS_OK;
}

static hwnas_status read_numbers(double **out, size_t *n, const char *text, const char *option)
{
    size_t n_commas = 0;
    for (const char *at = text; at && *at; at++)
        n_commas += *at == ',';
    *out = hwnas_need(n_commas + 1, sizeof **out);
    for (const char *at = text; at && (*at || at == text || at[-1] == ',');)
        TRY(read_number(&(*out)[(*n)++], &at, option));
    return HWNAS_OK;
}

static hwnas_status read_scale(double *out, const char *text)
{
    if (!text)
        return HWNAS_OK;
    TRY(read_number(out, &text, "scale"));
    if (!*text && *out != 0)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_USAGE, NULL, "--scale is one number, and not 0");
}

/* NAME=FILE; what is a file as it stands is none. */
static hwnas_data_file split(char **name, const char *text, const char *array)
{
    const char *equals = strchr(text, '=');
    *name = NULL;
    if (!equals || equals == text || !access(text, F_OK))
        return (hwnas_data_file){NULL, text, array};
    *name = hwnas_need((size_t)(equals - text) + 1, 1);
    memcpy(*name, text, (size_t)(equals - text));
    return (hwnas_data_file){*name, equals + 1, array};
}

hwnas_status hwnas_data_arguments_read(hwnas_data_read *out, const hwnas_data_arguments *arguments,
                                       bool ignores_labels)
{
    hwnas_dataset_options *options = &out->options;
    *out = (hwnas_data_read){.options = HWNAS_DATASET_OPTIONS_INIT};
    for (out->n = 0; out->n < (size_t)arguments->files.n; out->n++)
        out->files[out->n] =
            split(&out->names[out->n], arguments->files.texts[out->n], arguments->x);
    TRY(read_scale(&options->scale, arguments->scale));
    TRY(read_numbers(&out->mean, &options->n_mean, arguments->mean, "mean"));
    TRY(read_numbers(&out->std, &options->n_std, arguments->std, "std"));
    options->mean = out->mean;
    options->std = out->std;
    options->layout = arguments->layout;
    options->labels = arguments->labels;
    options->label_array = arguments->y;
    options->ignores_labels = ignores_labels;
    options->limit = arguments->limit;
    return HWNAS_OK;
}

void hwnas_data_read_done(hwnas_data_read *read)
{
    free(read->mean);
    free(read->std);
    for (size_t i = 0; i < read->n; i++)
        free(read->names[i]);
    read->n = 0;
}

hwnas_status hwnas_data_arguments_open(hwnas_dataset **out, const hwnas_network *network,
                                       const hwnas_data_arguments *arguments, bool ignores_labels)
{
    hwnas_data_read read;
    hwnas_status status = hwnas_data_arguments_read(&read, arguments, ignores_labels);
    if (status == HWNAS_OK)
        status = hwnas_dataset_open(out, network, read.n, read.files, &read.options);
    hwnas_data_read_done(&read);
    return status;
}

hwnas_status hwnas_choice_read(double *max_loss, double points, const hwnas_data_arguments *data,
                               bool is_mixed)
{
    const char *lone = data->labels                  ? "labels"
                       : data->y                     ? "y"
                       : points != HWNAS_NO_MAX_LOSS ? "max-loss"
                                                     : NULL;
    *max_loss = -1;
    if (lone && !is_mixed)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s goes with --dtype mixed", lone);
    if (lone && !data->files.n)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--%s needs --data", lone),
                          "--data FILE has the samples: .npz, .npy or IDX");
    if (data->limit && !data->files.n)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--limit needs --data");
    if (points != HWNAS_NO_MAX_LOSS)
        *max_loss = points;
    return HWNAS_OK;
}

void hwnas_show_samples(void *context, int64_t n_done, int64_t n_samples)
{
    char words[64];
    snprintf(words, sizeof words, "%" PRId64 " of %" PRId64 " samples", n_done, n_samples);
    hwnas_show_progress(context, words);
}
