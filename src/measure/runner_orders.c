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
};

static void free_order(hwnas_order *order)
{
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
                           .is_wanted = true};
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
    for (hwnas_order *order = r->orders; order; order = order->next)
        order->n_sent = 0;
}

void hwnas_orders_drop(hwnas_runner *r)
{
    bool is_sent = false;
    while (r->orders) {
        is_sent |= r->orders->n_sent > 0;
        hwnas_orders_remove(r, r->orders);
    }
    if (is_sent) /* its answers would be taken for those of what comes next */
        hwnas_runner_end_child(r, true);
}

bool hwnas_order_is_sent(const hwnas_order *order)
{
    return order->n_sent > 0;
}

bool hwnas_order_has_steps(const hwnas_order *order)
{
    return order->with_steps;
}

bool hwnas_orders_push(hwnas_runner *r)
{
    const bool takes_several = r->hello.abilities & 1 << HWNAS_CAN_AHEAD;
    if (!r->pid || r->fd < 0 || r->is_starting)
        return false;
    for (hwnas_order *o = r->orders; o && (takes_several || o == r->orders); o = o->next)
        while (o->n_sent < o->n) {
            const ssize_t put = send(r->fd, o->bytes + o->n_sent, o->n - o->n_sent, MSG_NOSIGNAL);
            if (put < 0 && errno != EINTR)
                return errno == EAGAIN; /* whoever reads learns of another failure */
            o->n_sent += put > 0 ? (size_t)put : 0;
        }
    return false;
}

int hwnas_runner_n_ahead(const hwnas_runner *runner)
{
    int n = 0;
    for (const hwnas_order *order = runner->orders; order; order = order->next)
        n += order->is_wanted;
    return n;
}

bool hwnas_runner_has_ahead(const hwnas_runner *runner, const hwnas_graph *graph,
                            hwnas_precision precision)
{
    return hwnas_orders_find(runner, graph, precision) != NULL;
}

bool hwnas_runner_takes_ahead(const hwnas_runner *runner)
{
    return !hwnas_link_is_own(runner->link) && runner->hello.abilities & 1 << HWNAS_CAN_AHEAD;
}

void hwnas_runner_forget_ahead(hwnas_runner *runner)
{
    for (hwnas_order *order = runner->orders, *next; order; order = next) {
        next = order->next;
        order->is_wanted = false;
        if (!order->n_sent)
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
    hwnas_order *order = hwnas_orders_find(runner, graph, options->exec.precision);
    if (!order)
        TRY(hwnas_orders_add(&order, runner, graph, with_steps, options));
    order->is_wanted = true;
    (void)hwnas_orders_push(runner);
    return HWNAS_OK;
}
