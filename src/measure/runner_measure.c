/* runner_measure.c: the parent's side of a measurement. */
#include <stdlib.h>

#include "base/clock.h"
#include "graph/loss.h"
#include "measure/runner_priv.h"
#include "onnx/onnx.h"

hwnas_status hwnas_runner_write(void **onnx, size_t *length, const hwnas_runner *runner,
                                const hwnas_graph *graph, const hwnas_exec_options *options)
{
    hwnas_graph *form;
    if (options->training && !(runner->hello.abilities & 1 << HWNAS_CAN_TRAIN))
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "this device does not train"),
                          "the devices cpu and torch do");
    if (runner->hello.abilities & 1 << HWNAS_CAN_SEEDS)
        return hwnas_onnx_write(onnx, length, graph, HWNAS_ONNX_SEEDS);
    TRY(hwnas_exec_form(&form, graph, options));
    for (size_t i = 0; options->training && i < form->n_outputs; i++)
        form->outputs[i] = hwnas_graph_loss_input(graph, i);
    const hwnas_status status = hwnas_onnx_write(onnx, length, form, HWNAS_ONNX_VALUES);
    hwnas_graph_free(form);
    return status;
}

bool hwnas_runner_can_race(const hwnas_runner *runner)
{
    return runner->hello.abilities & 1 << HWNAS_CAN_RACE;
}

/* Times of steps; none where the runner does not tell, or was not asked. */
static hwnas_status take_steps(hwnas_step_times *out, const hwnas_runner *runner,
                               const hwnas_graph *graph, const json_t *list, bool is_asked,
                               const hwnas_exec_options *options)
{
    hwnas_graph *form;
    if (!is_asked || !(runner->hello.abilities & 1 << HWNAS_CAN_STEPS)) {
        *out = (hwnas_step_times){.arena = hwnas_arena_new()};
        return HWNAS_OK;
    }
    TRY(hwnas_exec_form(&form, graph, options));
    const bool is_good = hwnas_wire_read_steps(out, list, form);
    hwnas_graph_free(form);
    return is_good ? HWNAS_OK : hwnas_runner_protocol_error();
}

/* The answer of an order that nobody wants any more. What became of it is not the failure of what
 * comes behind it, which is sent again. */
static hwnas_status pass_over(hwnas_runner *r, hwnas_order *first, const hwnas_measure_options *o)
{
    json_t *answer = NULL;
    hwnas_status status = HWNAS_OK;
    if (hwnas_order_is_sent(first)) {
        hwnas_runner_take_up(r);
        status = hwnas_runner_receive(&answer, r, o);
    }
    json_decref(answer);
    hwnas_orders_remove(r, first);
    if (status == HWNAS_E_UNSUPPORTED) {
        hwnas_error_clear();
        return HWNAS_OK;
    }
    r->may_return = status != HWNAS_OK && status != HWNAS_E_INTERRUPTED;
    return status;
}

/* Sends what is not sent yet, and hears the answer of one. */
static hwnas_status hear(json_t **out, hwnas_runner *r, const hwnas_order *order,
                         const hwnas_measure_options *o)
{
    while (r->orders != order)
        TRY(pass_over(r, r->orders, o));
    /* One that was sent ahead may have died already, and have said why. */
    if (hwnas_order_is_sent(order))
        hwnas_runner_take_up(r);
    else
        hwnas_runner_begin_request(r);
    r->n_graphs = 1;
    (void)hwnas_orders_push(r);
    return hwnas_runner_receive(out, r, o);
}

static hwnas_status measure_once(hwnas_measurement *out, hwnas_step_times *steps,
                                 hwnas_runner *runner, const hwnas_graph *graph,
                                 const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_measurement m;
    json_t *answer = NULL;
    double start = hwnas_now();
    /* What earlier candidates left behind, in caches, must not count against this one. */
    if (options->memory_limit && runner->n_requests)
        hwnas_runner_end_child(runner, false);
    TRY_OUT(hwnas_runner_make_ready(runner, options));
    hwnas_order *order = hwnas_orders_find(runner, graph, options->exec.precision);
    if (!order)
        TRY_OUT(hwnas_orders_add(&order, runner, graph, steps != NULL, options));
    const bool with_steps = hwnas_order_has_steps(order);
    TRY_OUT(hear(&answer, runner, order, options));
    const json_t *measurement = json_object_get(answer, "measurement");
    if (!hwnas_wire_read_measurement(&m, measurement) &&
        !hwnas_streamed_conclude(&m, &runner->samples, answer, options))
        TRY_OUT(hwnas_runner_protocol_error());
    if (steps)
        TRY_OUT(take_steps(steps, runner, graph, json_object_get(measurement, "steps"), with_steps,
                           &options->exec));
    m.total_seconds = hwnas_now() - start;
    *out = m;
out:
    json_decref(answer);
    return hwnas_runner_end_request(runner, status);
}

hwnas_status hwnas_runner_measure_steps(hwnas_measurement *out, hwnas_step_times *steps,
                                        hwnas_runner *runner, const hwnas_graph *graph,
                                        const hwnas_measure_options *options)
{
    hwnas_status status;
    int n = 0;
    do
        status = measure_once(out, steps, runner, graph, options);
    while (hwnas_runner_tries_again(&status, &n, runner, options));
    hwnas_orders_remove(runner, hwnas_orders_find(runner, graph, options->exec.precision));
    return status;
}

hwnas_status hwnas_runner_measure(hwnas_measurement *out, hwnas_runner *runner,
                                  const hwnas_graph *graph, const hwnas_measure_options *options)
{
    return hwnas_runner_measure_steps(out, NULL, runner, graph, options);
}
