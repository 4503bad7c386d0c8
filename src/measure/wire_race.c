/* wire_race.c: a race as JSON, and the parent's side of it. */
#include <stdlib.h>

#include "base/clock.h"
#include "measure/race.h"
#include "measure/runner.h"
#include "measure/wire.h"
#include "onnx/onnx.h"

json_t *hwnas_wire_race(const hwnas_race *race)
{
    json_t *measurements = json_array(), *blocks = json_array();
    for (int i = 0; i < race->n; i++)
        json_array_append_new(measurements, hwnas_wire_measurement(&race->measurements[i]));
    for (int i = 0; i < race->n_blocks * race->n; i++)
        json_array_append_new(blocks, json_real(race->blocks[i]));
    return json_pack("{s:i, s:o, s:o}", "n_aside", race->n_aside, "measurements", measurements,
                     "blocks", blocks);
}

bool hwnas_wire_read_race(hwnas_race *out, const json_t *object)
{
    const json_t *measurements = json_object_get(object, "measurements");
    const json_t *blocks = json_object_get(object, "blocks");
    int n_aside;
    const size_t n = json_array_size(measurements), n_values = json_array_size(blocks);
    if (!n || n > HWNAS_RACE_MOST || n_values % n || n_values / n > HWNAS_RACE_BLOCKS ||
        !json_is_array(blocks) ||
        !hwnas_wire_read_int(&n_aside, json_object_get(object, "n_aside")) || n_aside < 0)
        return false;
    hwnas_race race = {.n = (int)n,
                       .n_blocks = (int)(n_values / n),
                       .n_aside = n_aside,
                       .measurements = hwnas_alloc(n * sizeof *race.measurements),
                       .blocks = hwnas_alloc((n_values + 1) * sizeof *race.blocks)};
    bool is_good = true;
    for (size_t i = 0; i < n; i++)
        is_good &=
            hwnas_wire_read_measurement(&race.measurements[i], json_array_get(measurements, i));
    for (size_t i = 0; i < n_values; i++) {
        race.blocks[i] = json_number_value(json_array_get(blocks, i));
        is_good &= race.blocks[i] > 0;
    }
    if (is_good)
        *out = race;
    else
        hwnas_race_done(&race);
    return is_good;
}

static json_t *names_of(const hwnas_precision *precisions, int n)
{
    json_t *out = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(out, json_string(hwnas_precision_name(precisions[i])));
    return out;
}

/* MEASURE and all graphs. */
static hwnas_status send_all(hwnas_runner *runner, const hwnas_graph *const *graphs,
                             const hwnas_precision *precisions, int n,
                             const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    json_t *request = hwnas_wire_options(options);
    json_object_set_new(request, "race", json_integer(n));
    if (precisions)
        json_object_set_new(request, "race_precisions", names_of(precisions, n));
    for (int i = 0; i < n && status == HWNAS_OK; i++) {
        void *onnx;
        size_t length;
        status = hwnas_onnx_write(&onnx, &length, graphs[i], HWNAS_ONNX_SEEDS);
        if (status != HWNAS_OK)
            break;
        status = i ? hwnas_runner_send_graph(runner, onnx, length, options)
                   : hwnas_runner_request(runner, graphs, n, request, onnx, length, options);
        free(onnx);
    }
    json_decref(request);
    return status;
}

static hwnas_status race_once(hwnas_race *out, hwnas_runner *runner,
                              const hwnas_graph *const *graphs, const hwnas_precision *precisions,
                              int n, const hwnas_measure_options *options)
{
    json_t *answer = NULL;
    hwnas_race race;
    const double start = hwnas_now();
    hwnas_status status = send_all(runner, graphs, precisions, n, options);
    if (status == HWNAS_OK)
        status = hwnas_runner_receive(&answer, runner, options);
    if (status == HWNAS_OK && !hwnas_wire_read_race(&race, json_object_get(answer, "race")))
        status = hwnas_runner_protocol_error(runner, "an ANSWER without a `race` of all networks");
    if (status == HWNAS_OK && race.n != n) {
        hwnas_race_done(&race);
        status = hwnas_runner_protocol_error(runner, "an ANSWER without a `race` of all networks");
    }
    json_decref(answer);
    if (status == HWNAS_OK) {
        for (int i = 0; i < n; i++)
            race.measurements[i].total_seconds = (hwnas_now() - start) / n;
        *out = race;
    }
    return hwnas_runner_end_request(runner, status);
}

hwnas_status hwnas_runner_race(hwnas_race *out, hwnas_runner *runner,
                               const hwnas_graph *const *graphs, const hwnas_precision *precisions,
                               int n, const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_losses losses = {0};
    if (n < 1 || n > HWNAS_RACE_MOST)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%d networks in a race; 1 to %d can be", n,
                          HWNAS_RACE_MOST);
    do
        status = race_once(out, runner, graphs, precisions, n, options);
    while (hwnas_runner_tries_again(&status, &losses, runner, options));
    return status;
}
