/* evaluate_mix.c: networks in which each layer has a precision of its own: which, and the graph
 * that runs then. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "derive/derive.h"
#include "graph/elaborate.h"
#include "precision/mix.h"
#include "study/evaluator.h"

/* Layers and ways are timed with this part of the time of a measurement each: there are up to
 * eight. */
#define SHARE 0.125
/* Of the time that is left, where that is less than a measurement and a choice take. */
#define SHARE_OF_REST 0.5

/* Of a network that is one of many; those that choose are as many at most. */
enum { MOST_HELD_OUT = 1000 };

static hwnas_row_name name_of(const hwnas_evaluator *e, int device)
{
    return hwnas_job_row_name(&e->job->goals.devices, device);
}

static int batch_of(const hwnas_evaluator *e, const hwnas_candidate *c, int device)
{
    return batch_at(&e->sites[device], c->settings.batch);
}

static hwnas_mix_options options_of(const hwnas_evaluator *e, const hwnas_candidate *c, int device,
                                    const hwnas_measure_options *as)
{
    const hwnas_site *s = &e->sites[device];
    const int threads = threads_at(s, c->settings.threads);
    /* What is left is for the measurement, too. */
    const double now = hwnas_now(), left = fmax(0, c->deadline - now);
    const double share = fmax(left - e->job->max_seconds, SHARE_OF_REST * left);
    return (hwnas_mix_options){.max_error = hwnas_settings_max_error(e->job),
                               .takes_bf16 = mixing_at(s, c->settings.dtype) == HWNAS_MIXED_BF16,
                               .threads = threads ? threads : 1,
                               .seconds = SHARE * e->job->max_seconds,
                               .is_quick = true,
                               .deadline = c->deadline > 0 ? now + share : 0,
                               .as = as,
                               .stop = e->options.stop};
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* What labels said. */
static void add_accuracy(json_t *to, const hwnas_mix *mix, const hwnas_mix_options *how)
{
    const hwnas_estimate_95 e = mix->ways[mix->chosen].held_out,
                            f32 = mix->ways[HWNAS_MIX_F32].held_out;
    json_t *more = json_pack("{s:I, s:s, s:f, s:o, s:o, s:o, s:o}", "held_out_samples",
                             (json_int_t)how->samples->n_held_out, "accuracy_metric",
                             hwnas_mix_samples_metric(how->samples), "max_loss", how->max_loss,
                             "accuracy", number(e.value), "accuracy_low", number(e.low),
                             "accuracy_high", number(e.high), "f32_accuracy", number(f32.value));
    json_object_update(to, more);
    json_decref(more);
}

/* What a mix is, as the trial keeps it. */
static json_t *describe(const hwnas_mix *mix, const hwnas_mix_options *how)
{
    const hwnas_mix_way *way = &mix->ways[mix->chosen];
    char *word = hwnas_mix_word(mix);
    json_t *json =
        json_pack("{s:I, s:i, s:i, s:s, s:s, s:f, s:o, s:I}", "n_layers", (json_int_t)mix->n_layers,
                  "layers_in_s8", way->n_s8, "layers_in_bf16", way->n_bf16, "floats",
                  hwnas_precision_name(way->floats), "layers", word, "mixed_error",
                  way->error.largest, "max_error", number(how->max_error), "choice_samples",
                  (json_int_t)(how->samples ? how->samples->n : 0));
    free(word);
    if (mix->is_cut_short)
        json_object_set_new(json, "cut_short", json_true());
    if (how->samples && how->samples->n_labels)
        add_accuracy(json, mix, how);
    return json;
}

static hwnas_status choose(hwnas_graph **out, hwnas_precision *floats, hwnas_evaluator *e,
                           const hwnas_candidate *c, int device, const hwnas_graph *graph)
{
    hwnas_mix mix = {0};
    hwnas_mix_opened opened;
    hwnas_measure_options as = e->options;
    as.energy = false;
    hwnas_mix_options how = options_of(e, c, device, &as);
    hwnas_evaluator_put_away(e); /* a runner's threads would spin beside those that compute here */
    hwnas_status status = hwnas_mix_data_open(&opened, &how, &e->data.mix, graph, e->job->space,
                                              batch_of(e, c, device));
    if (opened.samples.n_held_out > MOST_HELD_OUT)
        opened.samples.n_held_out = MOST_HELD_OUT;
    if (status == HWNAS_OK)
        status = hwnas_mix_choose(&mix, graph, &how);
    if (status == HWNAS_OK) {
        *floats = mix.ways[mix.chosen].floats;
        *out = mix.graph;
        mix.graph = NULL;
        if (c->mixes)
            json_object_set_new(c->mixes, name_of(e, device).text, describe(&mix, &how));
    }
    hwnas_mix_done(&mix);
    hwnas_mix_data_close(&opened);
    return status;
}

static const json_t *known(const hwnas_evaluator *e, const hwnas_candidate *c, int device)
{
    return json_object_get(c->mixes, name_of(e, device).text);
}

hwnas_precision hwnas_evaluate_floats(const hwnas_evaluator *e, const hwnas_candidate *c,
                                      int device)
{
    const hwnas_site *s = &e->sites[device];
    hwnas_precision floats = precision_at(s, c->settings.dtype);
    const char *word = json_string_value(json_object_get(known(e, c, device), "floats"));
    if (mixing_at(s, c->settings.dtype) && word && hwnas_precision_find(&floats, word) != HWNAS_OK)
        hwnas_error_clear();
    return floats;
}

/* With the weights of a model that was trained, where there is one: errors are those of weights. */
static hwnas_status build_trained(hwnas_graph **out, const hwnas_evaluator *e,
                                  const hwnas_candidate *c, int device)
{
    const hwnas_site *s = &e->sites[device];
    const int batch = batch_of(e, c, device);
    return s->phase ? hwnas_phase_build(out, s->phase, c->arch, batch)
                    : hwnas_graph_build_trained(out, c->arch, batch);
}

hwnas_status hwnas_evaluate_mix(hwnas_graph **out, hwnas_precision *floats, hwnas_evaluator *e,
                                const hwnas_candidate *c, int device)
{
    hwnas_graph *graph = NULL;
    hwnas_status status = build_trained(&graph, e, c, device);
    const char *word = json_string_value(json_object_get(known(e, c, device), "layers"));
    if (status == HWNAS_OK && word) {
        const hwnas_mix_options how = options_of(e, c, device, NULL);
        *floats = hwnas_evaluate_floats(e, c, device);
        status = hwnas_mix_data_make(out, &e->data.mix, graph, e->job->space,
                                     batch_of(e, c, device), word, &how);
    } else if (status == HWNAS_OK) {
        status = choose(out, floats, e, c, device, graph);
    }
    hwnas_graph_free(graph);
    return status;
}

json_t *hwnas_mixes_of(const hwnas_trial *trial)
{
    json_t *detail = trial->detail ? json_loads(trial->detail, 0, NULL) : NULL;
    json_t *mixes = json_incref(json_object_get(detail, HWNAS_MIX_DETAIL));
    json_decref(detail);
    return mixes ? mixes : json_object();
}

/* ---- Whether it can be ---- */

/* Networks at both ends of the space; one that cannot be built is a trial that fails. */
static hwnas_status check_ends(const hwnas_evaluator *e, const hwnas_space *space, int device)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_settings settings = hwnas_settings_first(e->job);
    for (int is_last = 0; is_last < 2 && status == HWNAS_OK; is_last++) {
        hwnas_graph *graph = NULL;
        hwnas_arch *arch = hwnas_arch_new(space);
        const hwnas_candidate c = {.arch = arch, .settings = settings};
        for (size_t i = 0; i < space->n_genes && is_last; i++)
            arch->genes[i] = (uint16_t)(space->genes[i].n_values - 1);
        hwnas_arch_settle(arch);
        if (build_trained(&graph, e, &c, device) == HWNAS_OK)
            status = hwnas_job_data_check(&e->data, e->job, graph, batch_of(e, &c, device));
        else
            hwnas_error_clear();
        hwnas_graph_free(graph);
        hwnas_arch_free(arch);
    }
    return status;
}

static hwnas_status check_unmixed(const hwnas_job *job)
{
    const char *key = !isnan(job->max_error)  ? "max-error"
                      : job->data             ? "data"
                      : !isnan(job->max_loss) ? "max-loss"
                                              : NULL;
    const hwnas_place *place = !isnan(job->max_error) ? &job->max_error_place
                               : job->data            ? &job->data_place
                                                      : &job->max_loss_place;
    if (!key)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place, "%s goes with dtype: mixed", key),
                      "leave it out, or write dtype: {per: layer, values: [f32, s8]}");
}

static hwnas_status check_judge(const hwnas_job *job, const hwnas_space *space)
{
    if (job->predictor && hwnas_starts_with(job->predictor, "samples:"))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &job->dtype.place,
                                     "samples judge a network in one precision, not in one for "
                                     "each layer"),
                          "search with dtype: {values: [f32, s8]}, then 'hwnas export STUDY "
                          "--format onnx --dtype mixed --data FILE'");
    if (!isnan(job->max_loss) && !job->data)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &job->max_loss_place, "max-loss needs data"),
                          "data: FILE has the samples and their labels: .npz, .npy or IDX");
    if (!isnan(job->max_loss) && !space->builder)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &job->max_loss_place,
                                     "max-loss needs trained weights, and those of %s are random: "
                                     "its networks have no accuracy to lose",
                                     space->name),
                          "leave it out: max-error needs none; 'hwnas space derive MODEL.onnx "
                          "--out SPACE.yaml' makes a space that has the weights of a model");
    return HWNAS_OK;
}

hwnas_status hwnas_evaluator_check_mixed(const hwnas_evaluator *e, const hwnas_space *space)
{
    const hwnas_job *job = e->job;
    const hwnas_setting_values *given = &job->dtype;
    if (!hwnas_settings_may_be_mixed(job))
        return check_unmixed(job);
    TRY(check_judge(job, space));
    for (int i = 0; i < e->n; i++) {
        const hwnas_site *s = &e->sites[i];
        bool is_mixed = false;
        for (int k = 0; k < given->n; k++)
            is_mixed |= mixing_at(s, given->values[k]) != HWNAS_UNMIXED;
        if (is_mixed && !s->memory && strcmp(s->row->spelling, "cpu") != 0)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                                         "layers get a precision each on the device cpu alone, not "
                                         "on '%s'",
                                         s->row->spelling),
                              "give the device a dtype of its own: {device: %s, dtype: f32}",
                              s->row->spelling);
        if (is_mixed && job->data && is_ours(e, i))
            TRY(check_ends(e, space, i));
    }
    if (job->data && !space->builder)
        hwnas_log(HWNAS_LOG_NOTE,
                  "the weights of %s are random: layers are chosen by what these make of the "
                  "samples, not by what trained ones would",
                  space->name);
    return HWNAS_OK;
}
