#include "tests/gpu/wanted.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/rng.h"
#include "base/str.h"

/* ---- Forms ---- */

/* '1', 'e': a multiple of 8, 'u': another even number, 'o'. Engines ask for no more of a size. */
static char sort_of_size(int64_t n)
{
    return n == 1 ? '1' : n % 8 == 0 ? 'e' : n % 2 == 0 ? 'u' : 'o';
}

/* The order in which dimensions lie, and '+' behind one that has a gap before the next. */
static void add_layout(hwnas_str *out, const hwnas_cudnn_port *port)
{
    int order[HWNAS_CUDNN_PORT_RANK], n = 0;
    for (int i = 0; i < port->rank; i++) {
        int at = n;
        if (port->dims[i] == 1)
            continue;
        for (; at > 0 && port->strides[order[at - 1]] > port->strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        n++;
    }
    int64_t packed = 1;
    for (int i = 0; i < n; packed *= port->dims[order[i++]]) {
        const bool has_gap = port->strides[order[i]] > packed;
        hwnas_str_addf(out, "%d%s", order[i], has_gap ? "+" : "");
        packed = has_gap ? port->strides[order[i]] : packed;
    }
}

static void add_op_form(hwnas_str *out, const hwnas_cudnn_op *op)
{
    hwnas_str_addf(out, " %d:%d%s w%d%d s%d%d d%d p%d%d", op->kind, op->mode,
                   op->slope != 0 ? "a" : "", op->window[0] > 1, op->window[1] > 1,
                   op->stride[0] > 1, op->stride[1] > 1, op->dilation[0] > 1,
                   op->pad[0] + op->pad[2] > 0, op->pad[0] != op->pad[2]);
    for (int i = 0; i < op->n_inputs; i++)
        hwnas_str_addf(out, ",%d", op->inputs[i]);
    hwnas_str_addf(out, ">%d;", op->output);
}

static char *form_of(const hwnas_cudnn_operation *o)
{
    hwnas_str text = {0};
    for (int i = 0; i < o->n_ports; i++) {
        const hwnas_cudnn_port *port = &o->ports[i];
        hwnas_str_addf(&text, " %d%s:", port->kind, hwnas_cudnn_type_name(port->type));
        for (int k = 0; k < port->rank; k++)
            hwnas_str_addf(&text, "%c", sort_of_size(port->dims[k]));
        add_layout(&text, port);
        if (port->kind == HWNAS_CUDNN_PORT_MEMORY)
            hwnas_str_addf(&text, "@%d", port->alignment);
    }
    for (int i = 0; i < o->n_ops; i++)
        add_op_form(&text, &o->ops[i]);
    return text.s;
}

/* ---- The set ---- */

static size_t slot_of(const wanted_set *set, const char *signature)
{
    size_t at = (size_t)XXH64(signature, strlen(signature), 0) & (set->n_slots - 1);
    while (set->slots[at] && strcmp(set->all[set->slots[at] - 1].signature, signature))
        at = (at + 1) & (set->n_slots - 1);
    return at;
}

bool wanted_has(const wanted_set *set, const char *signature)
{
    return set->n && set->slots[slot_of(set, signature)];
}

static void make_room(wanted_set *set)
{
    if (2 * (set->n + 1) < set->n_slots)
        return;
    free(set->slots);
    set->n_slots = set->n_slots ? 2 * set->n_slots : 1024;
    set->slots = hwnas_alloc(set->n_slots * sizeof *set->slots);
    for (size_t i = 0; i < set->n; i++)
        set->slots[slot_of(set, set->all[i].signature)] = (int)i + 1;
}

static int add(wanted_set *set, const hwnas_cudnn_operation *o)
{
    char *signature = hwnas_cudnn_signature(o);
    make_room(set);
    const size_t slot = slot_of(set, signature);
    if (set->slots[slot]) {
        free(signature);
        return set->slots[slot] - 1;
    }
    HWNAS_GROW(set->all, set->n, set->capacity);
    set->all[set->n] = (wanted){.o = *o, .signature = signature, .form = form_of(o)};
    set->all[set->n].o.plan = NULL;
    set->slots[slot] = (int)++set->n;
    return (int)set->n - 1;
}

/* ---- Cutting ---- */

static hwnas_status take_all(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    (void)step;
    (void)net;
    return HWNAS_OK;
}

hwnas_status wanted_cut(wanted_set *set, const hwnas_graph *graph, hwnas_precision precision,
                        const char *space, const char *code)
{
    hwnas_cuda_device device = {.is_dry = true};
    hwnas_cudnn_net *net;
    TRY(hwnas_cudnn_net_new(&net, &device, graph, precision, take_all));
    HWNAS_GROW(set->networks, set->n_networks, set->network_capacity);
    wanter *w = &set->networks[set->n_networks++];
    *w = (wanter){.space = hwnas_strdup(space), .code = hwnas_strdup(code)};
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_step *step = &net->steps[i];
        const bool is_ours = step->kind == &hwnas_cudnn_kernel;
        set->n_own += is_ours && step->about.n_nodes;
        set->n_conversions += is_ours && !step->about.n_nodes;
        set->n_rnn += step->kind == &hwnas_cudnn_rnn;
        if (step->kind != &hwnas_cudnn_engine)
            continue;
        set->n_engine++;
        HWNAS_GROW(w->wants, w->n, w->capacity);
        w->wants[w->n++] = add(set, step->state);
    }
    hwnas_cudnn_net_free(net);
    return HWNAS_OK;
}

/* ---- In which order they are tried ---- */

typedef struct place {
    int number;
    uint32_t dice, turn; /* turn: the how manieth of its form */
    const char *form;
} place;

static int by_form(const void *a, const void *b)
{
    const place *x = a, *y = b;
    const int forms = strcmp(x->form, y->form);
    return forms ? forms : x->dice < y->dice ? -1 : x->dice > y->dice;
}

static int by_turn(const void *a, const void *b)
{
    const place *x = a, *y = b;
    const uint32_t p = x->turn != y->turn ? x->turn : x->dice;
    const uint32_t q = x->turn != y->turn ? y->turn : y->dice;
    return p < q ? -1 : p > q;
}

size_t wanted_order(int *order, const wanted_set *set, uint64_t seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, 2);
    place *places = hwnas_alloc((set->n + 1) * sizeof *places);
    size_t n_forms = 0;
    for (size_t i = 0; i < set->n; i++)
        places[i] =
            (place){.number = (int)i, .dice = hwnas_rng_u32(&rng), .form = set->all[i].form};
    qsort(places, set->n, sizeof *places, by_form);
    for (size_t i = 0; i < set->n; i++) {
        const bool is_first = !i || strcmp(places[i].form, places[i - 1].form);
        n_forms += is_first;
        places[i].turn = is_first ? 0 : places[i - 1].turn + 1;
    }
    qsort(places, set->n, sizeof *places, by_turn);
    for (size_t i = 0; i < set->n; i++)
        order[i] = places[i].number;
    free(places);
    return n_forms;
}

void wanted_done(wanted_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->all[i].signature);
        free(set->all[i].form);
    }
    for (size_t i = 0; i < set->n_networks; i++) {
        free(set->networks[i].space);
        free(set->networks[i].code);
        free(set->networks[i].wants);
    }
    free(set->all);
    free(set->slots);
    free(set->networks);
    *set = (wanted_set){0};
}
