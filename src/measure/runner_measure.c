/* runner_measure.c: the parent's side of a measurement. */
#include <stdlib.h>
#include <string.h>

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
                          "the devices cpu, torch and torch-cuda do");
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

bool hwnas_runner_tells_realtime(bool *out, const hwnas_runner *runner)
{
    *out = runner->hello.abilities & 1 << HWNAS_CAN_REALTIME ||
           !strcmp(runner->hello.priority, "realtime");
    return *out || !strcmp(runner->hello.priority, "normal");
}

bool hwnas_runner_is_hwnas(const hwnas_runner *runner)
{
    return *runner->hello.version;
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
    return is_good ? HWNAS_OK : hwnas_runner_protocol_error(runner, "`steps` that are none");
}

/* A failure under another name. */
static hwnas_status rename_failure(hwnas_status as)
{
    char message[sizeof hwnas_last_error()->message];
    snprintf(message, sizeof message, "%s", hwnas_last_error()->message);
    return hwnas_fail(as, NULL, "%s", message);
}

/* The runner may have died of what it did for another network: it prepares the next one while it
 * measures, and may still be at that when the next one's turn comes. So the network that it was
 * asked for is measured again by itself, in another runner; a fault of its own shows there. What a
 * device does not support is no harm that was done. */
static bool is_in_doubt(hwnas_runner *r, const hwnas_order *order, hwnas_status status)
{
    if (status == HWNAS_OK || status == HWNAS_E_UNSUPPORTED || status == HWNAS_E_INTERRUPTED ||
        r->is_alone || !r->prepares || (order && hwnas_order_is_answered(order)) ||
        !(hwnas_orders_are_ahead(r) || (order && hwnas_order_was_ahead(order))))
        return false;
    return r->is_alone = r->is_in_doubt = true;
}

/* The answer of an order that comes before the one that is asked for: it is kept for its turn. Its
 * failure is not that of what comes behind it, which is sent again. */
static hwnas_status hear_earlier(hwnas_runner *r, hwnas_order *first,
                                 const hwnas_measure_options *o)
{
    json_t *answer = NULL;
    const hwnas_measure_options options = hwnas_order_options(first, o);
    if (!hwnas_order_is_wanted(first) && !hwnas_order_is_sent(first)) {
        hwnas_orders_remove(r, first);
        return HWNAS_OK;
    }
    hwnas_runner_take_up(r);
    const hwnas_status status = hwnas_runner_receive(&answer, r, &options);
    if (status == HWNAS_E_INTERRUPTED)
        return status;
    /* Whether the link is stuck or the network, the second time tells. */
    const bool was_silent = status == HWNAS_E_TIMEOUT && hwnas_order_note_silence(first);
    const bool is_its_own =
        !is_in_doubt(r, first, status) && (status == HWNAS_E_TIMEOUT ? was_silent : !r->may_return);
    if (is_its_own) /* an answer is, too */
        hwnas_order_keep(first, r, status, answer);
    if (is_its_own && !hwnas_order_is_wanted(first))
        hwnas_orders_remove(r, first);
    if (status == HWNAS_OK || status == HWNAS_E_UNSUPPORTED) {
        hwnas_error_clear();
        return HWNAS_OK;
    }
    r->may_return = true;
    return status == HWNAS_E_TIMEOUT ? rename_failure(HWNAS_E_LIBRARY) : status;
}

/* Sends what is not sent yet, and hears the answer of one. */
static hwnas_status hear(json_t **out, hwnas_runner *r, hwnas_order *order,
                         const hwnas_measure_options *o)
{
    hwnas_orders_hurry(r, order);
    for (hwnas_order *first; (first = hwnas_orders_next(r)) != order;)
        TRY(hear_earlier(r, first, o));
    /* One that was sent ahead may have died already, and have said why. */
    if (hwnas_order_is_sent(order))
        hwnas_runner_take_up(r);
    else
        hwnas_runner_begin_request(r);
    r->n_graphs = 1;
    (void)hwnas_orders_push(r);
    return hwnas_runner_receive(out, r, o);
}

bool hwnas_runner_takes_batch(const hwnas_runner *r, const hwnas_graph *graph)
{
    const hwnas_tensor *input = graph->n_inputs ? &graph->tensors[graph->inputs[0]] : NULL;
    return r->hello.batch <= 0 || !input || !input->rank || input->dims[0] <= r->hello.batch;
}

static hwnas_status check_batch(const hwnas_runner *r, const hwnas_graph *graph)
{
    if (hwnas_runner_takes_batch(r, graph))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "'%s' takes batches of at most %d, and this one is of %lld",
                                 r->device, r->hello.batch,
                                 (long long)graph->tensors[graph->inputs[0]].dims[0]),
                      "ask for a smaller batch");
}

hwnas_status hwnas_runner_make_ready_for(hwnas_runner *r, const hwnas_graph *const *graphs, int n,
                                         const hwnas_measure_options *options)
{
    TRY(hwnas_runner_make_ready(r, options));
    for (int i = 0; i < n; i++)
        TRY(check_batch(r, graphs[i]));
    return HWNAS_OK;
}

/* `order`: NULL, or the one that was sent ahead. */
static hwnas_status ask(json_t **out, hwnas_order **order, hwnas_runner *runner,
                        const hwnas_graph *graph, bool with_steps,
                        const hwnas_measure_options *options)
{
    /* What earlier candidates left behind, in caches, must not count against this one. */
    if (options->memory_limit && runner->n_requests)
        hwnas_runner_end_child(runner, false);
    TRY(hwnas_runner_make_ready_for(runner, &graph, 1, options));
    if (!*order)
        TRY(hwnas_orders_add(order, runner, graph, with_steps, options));
    return hear(out, runner, *order, options);
}

static hwnas_status measure_once(hwnas_measurement *out, hwnas_step_times *steps,
                                 hwnas_runner *runner, const hwnas_graph *graph,
                                 const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_measurement m;
    json_t *answer = NULL;
    double start = hwnas_now();
    hwnas_order *order = hwnas_orders_find(runner, graph, options->exec.precision);
    const bool is_answered = order && hwnas_order_is_answered(order);
    if (is_answered)
        TRY_OUT(hwnas_order_recall(&answer, runner, order));
    else
        TRY_OUT(ask(&answer, &order, runner, graph, steps != NULL, options));
    const bool with_steps = hwnas_order_has_steps(order);
    const json_t *measurement = json_object_get(answer, "measurement");
    if (!hwnas_wire_read_measurement(&m, measurement) &&
        !hwnas_streamed_conclude(&m, &runner->samples, answer, options))
        TRY_OUT(hwnas_runner_protocol_error(
            runner, "an ANSWER with neither SAMPLES before it nor a whole `measurement`"));
    if (steps)
        TRY_OUT(take_steps(steps, runner, graph, json_object_get(measurement, "steps"), with_steps,
                           &options->exec));
    m.total_seconds = hwnas_now() - start;
    *out = m;
out:
    json_decref(answer);
    /* A child that is at work on something else is none the worse for what was kept. */
    return is_answered ? status : hwnas_runner_end_request(runner, status);
}

hwnas_status hwnas_runner_measure_steps(hwnas_measurement *out, hwnas_step_times *steps,
                                        hwnas_runner *runner, const hwnas_graph *graph,
                                        const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_losses losses = {0};
    do {
        status = measure_once(out, steps, runner, graph, options);
        const hwnas_order *order = hwnas_orders_find(runner, graph, options->exec.precision);
        (void)is_in_doubt(runner, order, status);
    } while (hwnas_runner_tries_again(&status, &losses, runner, options));
    runner->is_alone = false;
    hwnas_orders_remove(runner, hwnas_orders_find(runner, graph, options->exec.precision));
    return status;
}

hwnas_status hwnas_runner_measure(hwnas_measurement *out, hwnas_runner *runner,
                                  const hwnas_graph *graph, const hwnas_measure_options *options)
{
    return hwnas_runner_measure_steps(out, NULL, runner, graph, options);
}
