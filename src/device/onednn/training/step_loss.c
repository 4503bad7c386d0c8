/* step_loss.c: the loss of each output, with its gradient, against targets that are made up: the
 * time of a step does not depend on what is learnt. */
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "device/onednn/simd.h"
#include "device/onednn/training/gradients.h"
#include "graph/loss.h"

typedef struct loss {
    int64_t n_rows, width;
    dnnl_data_type_t type;
    bool is_first; /* of the outputs */
} loss;

enum { OUTPUT, TARGETS, GRADIENT, ROW_LOSSES, LOSS, N_SLOTS };

static void load_row(float *out, const void *values, int64_t first, const loss *l)
{
    for (int64_t i = 0; i < l->width; i++)
        out[i] = l->type == dnnl_f32 ? ((const float *)values)[first + i]
                                     : hwnas_bfloat16_value(((const uint16_t *)values)[first + i]);
}

static void store_row(void *values, int64_t first, const float *row, const loss *l)
{
    for (int64_t i = 0; i < l->width; i++)
        if (l->type == dnnl_f32)
            ((float *)values)[first + i] = row[i];
        else
            ((uint16_t *)values)[first + i] = hwnas_bfloat16_of(row[i]);
}

static void sum_losses(const loss *l, void *const *values)
{
    const float *rows = values[ROW_LOSSES];
    double sum = l->is_first ? 0 : *(float *)values[LOSS];
    for (int64_t i = 0; i < l->n_rows; i++)
        sum += rows[i];
    *(float *)values[LOSS] = (float)sum;
}

/* The row becomes its gradient, (softmax - 1 of the class) / rows. */
HWNAS_CLONES static float entropy_of_row(float *row, int64_t n, int64_t class, float share)
{
    float greatest = row[0];
    double sum = 0;
    for (int64_t i = 1; i < n; i++)
        greatest = row[i] > greatest ? row[i] : greatest;
    const float of_class = row[class] - greatest;
    for (int64_t i = 0; i < n; i++)
        row[i] = expf(row[i] - greatest);
    for (int64_t i = 0; i < n; i++)
        sum += row[i];
    for (int64_t i = 0; i < n; i++)
        row[i] *= share / (float)sum;
    row[class] -= share;
    return share * (float)(log(sum) - of_class);
}

static float squares_of_row(float *row, const float *targets, int64_t n, float share)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const float difference = row[i] - targets[i];
        sum += (double)difference * difference;
        row[i] = 2 * share * difference;
    }
    return share * (float)sum;
}

/* `rows` has room for one row of each thread. */
static void one_row(int64_t row, float *room, const loss *l, void *const *values, bool of_classes)
{
    const float *targets = values[TARGETS];
    const float share = 1 / (float)(of_classes ? l->n_rows : l->n_rows * l->width);
    load_row(room, values[OUTPUT], row * l->width, l);
    ((float *)values[ROW_LOSSES])[row] =
        of_classes ? entropy_of_row(room, l->width, (int64_t)targets[row], share)
                   : squares_of_row(room, targets + row * l->width, l->width, share);
    store_row(values[GRADIENT], row * l->width, room, l);
}

static void all_rows(const hwnas_tape *t, const loss *l, void *const *values, bool of_classes)
{
    (void)t; /* without OpenMP */
#pragma omp parallel num_threads(t->device->threads) if (l->n_rows * l->width > 4096)
    {
        float *room = hwnas_alloc((size_t)l->width * sizeof *room);
#pragma omp for
        for (int64_t row = 0; row < l->n_rows; row++)
            one_row(row, room, l, values, of_classes);
        free(room);
    }
    sum_losses(l, values);
}

static void cross_entropy(const hwnas_tape *t, const void *settings, void *const *values)
{
    all_rows(t, settings, values, true);
}

static void squares(const hwnas_tape *t, const void *settings, void *const *values)
{
    all_rows(t, settings, values, false);
}

float hwnas_loss_target(bool of_classes, int64_t i, int64_t n_classes)
{
    return of_classes ? (float)((i * 7 + 3) % n_classes) : 0.25f * (float)(i % 7 - 3);
}

static hwnas_status make_targets(int *out, hwnas_tape *t, const loss *l, bool of_classes)
{
    const int64_t n = of_classes ? l->n_rows : l->n_rows * l->width;
    const_dnnl_memory_desc_t plain;
    void *room;
    TRY(hwnas_tape_layout(&plain, t, 1, &n, NULL, dnnl_f32));
    TRY(hwnas_try_alloc(&room, (size_t)n * sizeof(float), "targets"));
    float *values = room;
    for (int64_t i = 0; i < n; i++)
        values[i] = hwnas_loss_target(of_classes, i, l->width);
    *out = hwnas_tape_add_kept(t, plain, plain, values);
    return HWNAS_OK;
}

static hwnas_status write_one(hwnas_tape *t, size_t i)
{
    const int tensor = hwnas_graph_loss_input(t->graph, i);
    const hwnas_tensor *out = &t->graph->tensors[tensor];
    const bool of_classes = hwnas_graph_loss(t->graph, i) == HWNAS_LOSS_CROSS_ENTROPY;
    const int64_t width = out->rank > 1 ? out->dims[out->rank - 1] : 1, one = 1;
    const loss l = {hwnas_tensor_count(out) / width, width, t->type, i == 0};
    const_dnnl_memory_desc_t plain, per_row, single;
    int slots[N_SLOTS];
    if (!t->is_learnt[tensor])
        return HWNAS_OK;
    t->node = out->producer;
    TRY(hwnas_tape_plain(&plain, t, tensor, t->type));
    TRY(hwnas_tape_layout(&per_row, t, 1, &l.n_rows, NULL, dnnl_f32));
    TRY(hwnas_tape_layout(&single, t, 1, &one, NULL, dnnl_f32));
    TRY(hwnas_tape_convert(&slots[OUTPUT], t, t->value[tensor], plain));
    TRY(make_targets(&slots[TARGETS], t, &l, of_classes));
    slots[GRADIENT] = hwnas_tape_add_slot(t, plain);
    slots[ROW_LOSSES] = hwnas_tape_add_slot(t, per_row);
    if (t->loss == HWNAS_NO_SLOT)
        t->loss = hwnas_tape_add_kept(t, single, single, NULL);
    slots[LOSS] = t->loss;
    hwnas_tape_add_loop(t, of_classes ? cross_entropy : squares, &l, sizeof l, N_SLOTS, slots);
    return hwnas_tape_add_gradient(t, tensor, slots[GRADIENT]);
}

hwnas_status hwnas_loss_write(hwnas_tape *t)
{
    for (size_t i = 0; i < t->graph->n_outputs; i++)
        TRY(write_one(t, i));
    if (t->loss == HWNAS_NO_SLOT)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s' has no parameters that its outputs follow from: nothing can be "
                          "trained",
                          t->graph->name);
    return HWNAS_OK;
}

bool hwnas_loss_has_softmax(const hwnas_tape *t, const hwnas_node *node)
{
    for (size_t i = 0; i < t->graph->n_outputs; i++)
        if (t->graph->outputs[i] == node->output && t->n_readers[node->output] == 1 &&
            hwnas_graph_loss_input(t->graph, i) != node->output)
            return true;
    return false;
}
