/* runner_orders.c: the measurements that a runner has been asked for, in the order in which it
 * serves them.
 *
 * On a link the next network is sent while one is measured, so that nobody waits for the way. What
 * is sent stays here until it is answered: a link that was cut is sent all of it again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "graph/loss.h"
#include "measure/runner_priv.h"

struct hwnas_order {
    hwnas_order *next;
    hwnas_digest digest;
    hwnas_precision precision;
    unsigned char *bytes; /* the frames MEASURE and GRAPH */
    size_t n, n_sent;
    bool with_steps, is_wanted;
    bool was_silent; /* the runner, while it served this one */
    bool was_ahead;  /* it was sent while another was measured */
    hwnas_measure_options options;
    /* What came before it was asked for. */
    bool is_answered;
    hwnas_status status;
    json_t *answer;
    char *message, *hint; /* of a failure */
    hwnas_streamed samples;
};

static void free_order(hwnas_order *order)
{
    hwnas_streamed_done(&order->samples);
    json_decref(order->answer);
    free(order->message);
    free(order->hint);
    free(order->bytes);
    free(order);
}

hwnas_order *hwnas_orders_find(const hwnas_runner *r, const hwnas_graph *graph,
                               hwnas_precision precision)
{
    const hwnas_digest digest = hwnas_graph_digest(graph);
    hwnas_order *order = r->orders;
    while (order && (order->precision != precision || strcmp(order->digest.hex, digest.hex) != 0))
        order = order->next;
    return order;
}

static void add_frame(hwnas_order *order, hwnas_frame_type type, const void *bytes, size_t n)
{
    order->bytes = hwnas_realloc(order->bytes, order->n + HWNAS_FRAME_HEAD + n);
    hwnas_frame_encode(order->bytes + order->n, (hwnas_wire_frame){.type = type, .length = n});
    memcpy(order->bytes + order->n + HWNAS_FRAME_HEAD, bytes, n);
    order->n += HWNAS_FRAME_HEAD + n;
}

/* What a runner that trains is to make small, by output. */
static json_t *list_losses(const hwnas_graph *graph)
{
    json_t *list = json_array();
    for (size_t i = 0; i < graph->n_outputs; i++)
        json_array_append_new(list, json_string(hwnas_loss_name(hwnas_graph_loss(graph, i))));
    return list;
}

hwnas_status hwnas_orders_add(hwnas_order **out, hwnas_runner *r, const hwnas_graph *graph,
                              bool with_steps, const hwnas_measure_options *options)
{
    void *onnx;
    size_t length;
    TRY(hwnas_runner_write(&onnx, &length, r, graph, &options->exec));
    json_t *request = hwnas_wire_options(options);
    json_object_set_new(request, "steps", json_boolean(with_steps));
    if (options->exec.training)
        json_object_set_new(request, "losses", list_losses(graph));
    char *text = json_dumps(request, JSON_COMPACT);
    hwnas_order *order = hwnas_alloc(sizeof *order);
    *order = (hwnas_order){.digest = hwnas_graph_digest(graph),
                           .precision = options->exec.precision,
                           .with_steps = with_steps,
                           .is_wanted = true,
                           .options = *options};
    order->options.exec.samples = NULL; /* borrowed by the call */
    add_frame(order, HWNAS_FRAME_MEASURE, text, strlen(text));
    add_frame(order, HWNAS_FRAME_GRAPH, onnx, length);
    hwnas_order **end = &r->orders;
    while (*end)
        end = &(*end)->next;
    *end = order;
    free(text);
    free(onnx);
    json_decref(request);
    *out = order;
    return HWNAS_OK;
}

void hwnas_orders_remove(hwnas_runner *r, const hwnas_order *order)
{
    for (hwnas_order **at = &r->orders; *at; at = &(*at)->next)
        if (*at == order) {
            hwnas_order *found = *at;
            *at = found->next;
            free_order(found);
            return;
        }
}

void hwnas_orders_rewind(hwnas_runner *r)
{
    for (hwnas_order *order = r->orders; order; order = order->next) {
        order->n_sent = 0;
        order->was_ahead = false;
    }
}

void hwnas_orders_drop(hwnas_runner *r)
{
    bool is_sent = false;
    for (hwnas_order *order; (order = hwnas_orders_next(r));) {
        is_sent |= order->n_sent > 0;
        hwnas_orders_remove(r, order);
    }
    if (is_sent) /* its answers would be taken for those of what comes next */
        hwnas_runner_end_child(r, true);
}

void hwnas_orders_done(hwnas_runner *r)
{
    hwnas_orders_drop(r);
    while (r->orders)
        hwnas_orders_remove(r, r->orders);
}

hwnas_order *hwnas_orders_next(const hwnas_runner *r)
{
    hwnas_order *order = r->orders;
    while (order && order->is_answered)
        order = order->next;
    return order;
}

void hwnas_orders_hurry(hwnas_runner *r, hwnas_order *order)
{
    hwnas_order **at = &r->orders;
    if (order->n_sent)
        return;
    while (*at != order)
        at = &(*at)->next;
    *at = order->next;
    at = &r->orders;
    while (*at && ((*at)->is_answered || (*at)->n_sent))
        at = &(*at)->next;
    order->next = *at;
    *at = order;
}

bool hwnas_orders_are_ahead(const hwnas_runner *r)
{
    int n = 0;
    for (const hwnas_order *o = hwnas_orders_next(r); o; o = o->next)
        n += !o->is_answered && o->n_sent > 0;
    return n > 1;
}

bool hwnas_order_is_sent(const hwnas_order *order)
{
    return order->n_sent > 0;
}

bool hwnas_order_was_ahead(const hwnas_order *order)
{
    return order->was_ahead;
}

bool hwnas_order_is_wanted(const hwnas_order *order)
{
    return order->is_wanted;
}

bool hwnas_order_has_steps(const hwnas_order *order)
{
    return order->with_steps;
}

hwnas_measure_options hwnas_order_options(const hwnas_order *order, const hwnas_measure_options *o)
{
    hwnas_measure_options options = order->options;
    options.stop = o->stop;
    options.progress = o->progress;
    options.context = o->context;
    return options;
}

bool hwnas_order_note_silence(hwnas_order *order)
{
    const bool was_silent = order->was_silent;
    order->was_silent = true;
    return was_silent;
}

/* ---- Answers that come before they are asked for ---- */

void hwnas_order_keep(hwnas_order *order, hwnas_runner *r, hwnas_status status, json_t *answer)
{
    order->is_answered = true;
    order->status = status;
    order->answer = answer;
    order->samples = r->samples;
    r->samples = (hwnas_streamed){0};
    if (status != HWNAS_OK) {
        order->message = hwnas_strdup(hwnas_last_error()->message);
        order->hint = hwnas_strdup(hwnas_last_error()->hint);
    }
}

bool hwnas_order_is_answered(const hwnas_order *order)
{
    return order->is_answered;
}

hwnas_status hwnas_order_recall(json_t **out, hwnas_runner *r, hwnas_order *order)
{
    hwnas_streamed_done(&r->samples);
    r->samples = order->samples;
    order->samples = (hwnas_streamed){0};
    if (order->status == HWNAS_OK) {
        *out = json_incref(order->answer);
        return HWNAS_OK;
    }
    hwnas_fail(order->status, NULL, "%s", order->message);
    return *order->hint ? hwnas_hint(order->status, "%s", order->hint) : order->status;
}

/* ---- The way there ---- */

bool hwnas_orders_push(hwnas_runner *r)
{
    const bool takes_several = r->hello.abilities & 1 << HWNAS_CAN_AHEAD && !r->is_alone;
    if (!r->pid || r->fd < 0 || r->is_starting)
        return false;
    hwnas_order *first = hwnas_orders_next(r);
    for (hwnas_order *o = first; o && (takes_several || o == first); o = o->next)
        while (!o->is_answered && o->n_sent < o->n) {
            const ssize_t put = send(r->fd, o->bytes + o->n_sent, o->n - o->n_sent, MSG_NOSIGNAL);
            if (put < 0 && errno != EINTR)
                return errno == EAGAIN; /* whoever reads learns of another failure */
            o->n_sent += put > 0 ? (size_t)put : 0;
            o->was_ahead |= o != first;
        }
    return false;
}

int hwnas_runner_n_ahead(const hwnas_runner *runner)
{
    int n = 0;
    for (const hwnas_order *order = runner->orders; order; order = order->next)
        n += order->is_wanted && !order->is_answered;
    return n;
}

bool hwnas_runner_has_ahead(const hwnas_runner *runner, const hwnas_graph *graph,
                            hwnas_precision precision)
{
    return hwnas_orders_find(runner, graph, precision) != NULL;
}

bool hwnas_runner_has_answer(const hwnas_runner *runner, const hwnas_graph *graph,
                             hwnas_precision precision)
{
    const hwnas_order *order = hwnas_orders_find(runner, graph, precision);
    return order && order->is_answered;
}

bool hwnas_runner_takes_ahead(const hwnas_runner *runner)
{
    return (!hwnas_link_is_own(runner->link) || runner->prepares) &&
           runner->hello.abilities & 1 << HWNAS_CAN_AHEAD;
}

void hwnas_runner_forget_ahead(hwnas_runner *runner)
{
    for (hwnas_order *order = runner->orders, *next; order; order = next) {
        next = order->next;
        order->is_wanted = false;
        if (!order->n_sent || order->is_answered)
            hwnas_orders_remove(runner, order);
    }
}

hwnas_status hwnas_runner_send_ahead(hwnas_runner *runner, const hwnas_graph *graph,
                                     bool with_steps, const hwnas_measure_options *options)
{
    /* With a limit each network has a process of its own. */
    if (!hwnas_runner_takes_ahead(runner) || options->memory_limit)
        return HWNAS_OK;
    if (hwnas_runner_make_ready(runner, options) != HWNAS_OK) {
        hwnas_error_clear(); /* it is tried again when the network is measured */
        runner->may_return = false;
        return HWNAS_OK;
    }
    if (!hwnas_runner_takes_batch(runner, graph))
        return HWNAS_OK; /* it is refused when its turn comes */
    hwnas_order *order = hwnas_orders_find(runner, graph, options->exec.precision);
    if (!order)
        TRY(hwnas_orders_add(&order, runner, graph, with_steps, options));
    order->is_wanted = true;
    (void)hwnas_orders_push(runner);
    return HWNAS_OK;
}
