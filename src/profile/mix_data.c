#include "profile/mix_data.h"

#include <inttypes.h>
#include <math.h>

hwnas_status hwnas_mix_data_check(const hwnas_mix_data *data, const hwnas_graph *graph,
                                  const char *name, int batch)
{
    hwnas_dataset *dataset;
    TRY(hwnas_graph_dataset_open(&dataset, graph, data->n, data->files, &data->options));
    hwnas_status status =
        hwnas_mix_samples_check_loss(dataset, data->needs_labels ? data->max_loss : -1);
    if (status == HWNAS_OK)
        status = hwnas_mix_samples_check(graph, name, batch, dataset);
    hwnas_dataset_close(dataset);
    return status;
}

hwnas_status hwnas_mix_data_open(hwnas_mix_opened *out, hwnas_mix_options *how,
                                 const hwnas_mix_data *data, const hwnas_graph *graph,
                                 const char *name, int batch)
{
    *out = (hwnas_mix_opened){0};
    if (!data->n)
        return HWNAS_OK;
    TRY(hwnas_graph_dataset_open(&out->dataset, graph, data->n, data->files, &data->options));
    TRY(hwnas_mix_samples_read(&out->samples, graph, name, batch, out->dataset, data->calibrate));
    how->samples = &out->samples;
    how->max_loss = data->max_loss;
    return HWNAS_OK;
}

void hwnas_mix_data_close(hwnas_mix_opened *opened)
{
    hwnas_mix_samples_done(&opened->samples);
    hwnas_dataset_close(opened->dataset);
}

hwnas_status hwnas_mix_data_make(hwnas_graph **out, const hwnas_mix_data *data,
                                 const hwnas_graph *graph, const char *name, int batch,
                                 const char *word, const hwnas_mix_options *options)
{
    hwnas_mix_opened opened;
    hwnas_mix_options how = *options;
    hwnas_status status = hwnas_mix_data_open(&opened, &how, data, graph, name, batch);
    opened.samples.n_batches = opened.samples.n_calibrate;
    opened.samples.n_labels = 0; /* nothing is judged */
    if (status == HWNAS_OK)
        status = hwnas_mix_make(out, graph, word, &how);
    hwnas_mix_data_close(&opened);
    return status;
}

static void fill(hwnas_profile_row *row, const hwnas_mix *mix, const hwnas_mix_samples *samples)
{
    const hwnas_mix_way *way = &mix->ways[mix->chosen];
    row->floats = hwnas_precision_name(way->floats);
    row->layers_in_s8 = way->n_s8;
    row->layers_in_bf16 = way->n_bf16;
    row->mixed_error = way->error.largest;
    row->choice_samples = samples->n;
    row->held_out_samples = samples->n_held_out;
    row->accuracy = way->held_out;
    row->f32_accuracy = mix->ways[HWNAS_MIX_F32].held_out;
    row->s8_accuracy = mix->ways[HWNAS_MIX_S8].held_out;
}

hwnas_status hwnas_mix_data_choose(hwnas_mix *out, hwnas_profile_row *row,
                                   const hwnas_mix_data *data, const hwnas_graph *graph,
                                   const hwnas_mix_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_mix_opened opened;
    hwnas_mix_options how = *options;
    const hwnas_mix_samples *samples = &opened.samples;
    TRY_OUT(hwnas_mix_data_open(&opened, &how, data, graph, row->model, row->batch));
    row->accuracy_metric = hwnas_mix_samples_metric(samples);
    if (samples->n_labels)
        row->max_loss = data->max_loss;
    if (how.max_error < 0)
        how.max_error = samples->n_labels ? INFINITY : HWNAS_MIX_MAX_ERROR;
    row->max_error = how.max_error;
    TRY_OUT(hwnas_mix_choose(out, graph, &how));
    fill(row, out, samples);
out:
    hwnas_mix_data_close(&opened);
    return status;
}

/* ---- As a command ---- */

static void add_text(hwnas_str *out, const char *option, const char *value)
{
    if (!value)
        return;
    hwnas_str_addf(out, " --%s ", option);
    hwnas_str_add_word(out, value);
}

static void add_numbers(hwnas_str *out, const char *option, size_t n, const double *values)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            hwnas_str_addf(out, ",%.17g", values[i]);
        else
            hwnas_str_addf(out, " --%s=%.17g", option, values[i]);
    }
}

static void add_file(hwnas_str *out, const hwnas_data_file *file)
{
    hwnas_str text = {0};
    hwnas_str_addf(&text, "%s%s%s", file->input ? file->input : "", file->input ? "=" : "",
                   file->path);
    add_text(out, "data", text.s);
    hwnas_str_done(&text);
}

void hwnas_mix_data_command(hwnas_str *out, const hwnas_mix_data *data)
{
    const hwnas_dataset_options *o = &data->options;
    for (size_t i = 0; i < data->n; i++)
        add_file(out, &data->files[i]);
    if (!data->n)
        return;
    add_text(out, "labels", o->labels);
    add_text(out, "x", data->files[0].array);
    add_text(out, "y", o->label_array);
    if (o->scale != 0)
        hwnas_str_addf(out, " --scale %.17g", o->scale);
    add_numbers(out, "mean", o->n_mean, o->mean);
    add_numbers(out, "std", o->n_std, o->std);
    add_text(out, "layout", o->layout);
    if (o->limit)
        hwnas_str_addf(out, " --limit %" PRId64, o->limit);
    if (data->calibrate)
        hwnas_str_addf(out, " --calibrate %" PRId64, data->calibrate);
}
