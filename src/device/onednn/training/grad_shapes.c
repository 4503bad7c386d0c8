/* grad_shapes.c: what moves values: views where they may stay where they are. */
#include "base/half.h"
#include "device/onednn/simd.h"
#include "device/onednn/training/gradients.h"

/* ---- The same values in another shape ---- */

static hwnas_status reshape_forward(hwnas_tape *t, const hwnas_node *node)
{
    const_dnnl_memory_desc_t plain;
    int x;
    TRY(hwnas_gradient_plain_input(&x, t, node, 0));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    hwnas_gradient_set(t, node, NULL, hwnas_tape_add_view(t, x, plain));
    return HWNAS_OK;
}

static hwnas_status reshape_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const_dnnl_memory_desc_t plain;
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    TRY(hwnas_tape_convert(&dy, t, dy, plain));
    TRY(hwnas_tape_plain(&plain, t, node->inputs[0], t->type));
    return hwnas_tape_add_gradient(t, node->inputs[0], hwnas_tape_add_view(t, dy, plain));
}

const hwnas_gradient_rule hwnas_gradient_reshape = {reshape_forward, reshape_backward};

/* ---- Dimensions in another order ---- */

/* order[i]: where dimension i goes. */
static hwnas_status permuted_view(int *out, hwnas_tape *t, int slot, const int *order)
{
    dnnl_memory_desc_t layout;
    TRY_DNNL("describe", t->name,
             dnnl_memory_desc_permute_axes(&layout, t->slots[slot].layout, order));
    *out = hwnas_tape_add_view(t, slot, hwnas_tape_own(t, layout));
    return HWNAS_OK;
}

static hwnas_status transpose_forward(hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_attr *from = hwnas_node_attr(node, "order");
    int x, y, order[HWNAS_MAX_RANK];
    TRY(hwnas_gradient_dense_input(&x, t, node, 0));
    for (int i = 0; i < from->n; i++)
        order[from->ints[i]] = i;
    TRY(permuted_view(&y, t, x, order));
    hwnas_gradient_set(t, node, NULL, y);
    return HWNAS_OK;
}

static hwnas_status transpose_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const hwnas_attr *from = hwnas_node_attr(node, "order");
    int order[HWNAS_MAX_RANK];
    for (int i = 0; i < from->n; i++)
        order[i] = (int)from->ints[i];
    TRY(permuted_view(&dy, t, dy, order));
    return hwnas_tape_add_gradient(t, node->inputs[0], dy);
}

const hwnas_gradient_rule hwnas_gradient_transpose = {transpose_forward, transpose_backward};

/* ---- Parts ---- */

/* What is from `begin` on along `axis`, as large as the tensor `like`. */
static hwnas_status part_view(int *out, hwnas_tape *t, int slot, const hwnas_tensor *like, int axis,
                              int64_t begin)
{
    dnnl_memory_desc_t layout;
    dnnl_dims_t dims, from = {0};
    for (int i = 0; i < like->rank; i++)
        dims[i] = like->dims[i];
    from[axis] = begin;
    TRY_DNNL("describe", t->name,
             dnnl_memory_desc_create_submemory(&layout, t->slots[slot].layout, dims, from));
    *out = hwnas_tape_add_view(t, slot, hwnas_tape_own(t, layout));
    return HWNAS_OK;
}

typedef struct cut {
    int axis;
    int64_t begin;
} cut;

static hwnas_status cut_of(cut *out, const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(t->graph, node, 0);
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    int64_t begin = hwnas_node_attr(node, "begin")->ints[0];
    if (hwnas_node_attr(node, "step")->ints[0] != 1)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s': the device 'cpu' has no gradient of a 'slice' with a step",
                          node->name);
    out->axis = (int)(axis < 0 ? axis + in->rank : axis);
    begin += begin < 0 ? in->dims[out->axis] : 0;
    out->begin = begin < 0 ? 0 : begin;
    return HWNAS_OK;
}

static hwnas_status slice_forward(hwnas_tape *t, const hwnas_node *node)
{
    const_dnnl_memory_desc_t image;
    cut c = {0};
    int x, y;
    TRY(cut_of(&c, t, node));
    TRY(hwnas_tape_image(&image, t, node->inputs[0], t->type));
    TRY(hwnas_gradient_input(&x, t, node, 0, image));
    TRY(part_view(&y, t, x, hwnas_node_output(t->graph, node), c.axis, c.begin));
    hwnas_gradient_set(t, node, NULL, y);
    return HWNAS_OK;
}

static hwnas_status slice_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const_dnnl_memory_desc_t image;
    cut c = {0};
    int dx, part;
    TRY(cut_of(&c, t, node));
    TRY(hwnas_tape_image(&image, t, node->inputs[0], t->type));
    TRY(hwnas_gradient_zeros(&dx, t, image));
    TRY(part_view(&part, t, dx, hwnas_node_output(t->graph, node), c.axis, c.begin));
    TRY(hwnas_tape_reorder(t, dy, part));
    return hwnas_tape_add_gradient(t, node->inputs[0], dx);
}

const hwnas_gradient_rule hwnas_gradient_slice = {slice_forward, slice_backward};

static int concat_axis(const hwnas_tape *t, const hwnas_node *node)
{
    const int axis = (int)hwnas_node_attr(node, "axis")->ints[0];
    return axis < 0 ? axis + hwnas_node_output(t->graph, node)->rank : axis;
}

static hwnas_status concat_forward(hwnas_tape *t, const hwnas_node *node)
{
    const int axis = concat_axis(t, node);
    const_dnnl_memory_desc_t image;
    int64_t at = 0;
    TRY(hwnas_tape_image(&image, t, node->output, t->type));
    const int y = hwnas_tape_add_slot(t, image);
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *in = hwnas_node_input(t->graph, node, i);
        int x, part;
        TRY(hwnas_gradient_input(&x, t, node, i, NULL));
        TRY(part_view(&part, t, y, in, axis, at));
        TRY(hwnas_tape_reorder(t, x, part));
        at += in->dims[axis];
    }
    hwnas_gradient_set(t, node, NULL, y);
    return HWNAS_OK;
}

static hwnas_status concat_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const int axis = concat_axis(t, node);
    const_dnnl_memory_desc_t image;
    int64_t at = 0;
    TRY(hwnas_tape_image(&image, t, node->output, t->type));
    TRY(hwnas_tape_convert(&dy, t, dy, image));
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *in = hwnas_node_input(t->graph, node, i);
        int part;
        TRY(part_view(&part, t, dy, in, axis, at));
        TRY(hwnas_tape_image(&image, t, node->inputs[i], t->type));
        TRY(hwnas_tape_convert(&part, t, part, image));
        TRY(hwnas_tape_add_gradient(t, node->inputs[i], part));
        at += in->dims[axis];
    }
    return HWNAS_OK;
}

const hwnas_gradient_rule hwnas_gradient_concat = {concat_forward, concat_backward};

/* ---- One place along an axis ---- */

/* A number that is no row counts as the nearest one: backward must not write elsewhere. */
HWNAS_INLINE int64_t row_at(const float *indices, int64_t i, int64_t n)
{
    const int64_t row = (int64_t)indices[i] + (indices[i] < 0 ? n : 0);
    return row < 0 ? 0 : row >= n ? n - 1 : row;
}

/* Whether `gather` takes what is at one constant position, as PyTorch writes x[:, -1]. */
static bool is_place(const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_tensor *indices = hwnas_node_input(t->graph, node, 1);
    return indices->kind == HWNAS_TENSOR_WEIGHT && !indices->is_parameter &&
           hwnas_tensor_count(indices) == 1 &&
           hwnas_node_input(t->graph, node, 0)->kind != HWNAS_TENSOR_WEIGHT;
}

static cut place_of(const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(t->graph, node, 0);
    const int axis = (int)hwnas_node_attr(node, "axis")->ints[0];
    cut c = {.axis = axis < 0 ? axis + in->rank : axis};
    float index;
    hwnas_tensor_fill(hwnas_node_input(t->graph, node, 1), &index);
    c.begin = row_at(&index, 0, in->dims[c.axis]);
    return c;
}

/* The input's shape with one place along the axis. */
static hwnas_tensor one_place(const hwnas_tape *t, const hwnas_node *node, int axis)
{
    hwnas_tensor one = *hwnas_node_input(t->graph, node, 0);
    one.dims[axis] = 1;
    return one;
}

static hwnas_status place_forward(hwnas_tape *t, const hwnas_node *node)
{
    const_dnnl_memory_desc_t packed, plain;
    const cut c = place_of(t, node);
    const hwnas_tensor one = one_place(t, node, c.axis);
    int x, part;
    TRY(hwnas_gradient_plain_input(&x, t, node, 0));
    TRY(part_view(&part, t, x, &one, c.axis, c.begin));
    TRY(hwnas_tape_layout(&packed, t, one.rank, one.dims, NULL, t->type));
    TRY(hwnas_tape_convert(&part, t, part, packed));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    hwnas_gradient_set(t, node, NULL, hwnas_tape_add_view(t, part, plain));
    return HWNAS_OK;
}

static hwnas_status place_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const_dnnl_memory_desc_t packed, plain;
    const cut c = place_of(t, node);
    const hwnas_tensor one = one_place(t, node, c.axis);
    int dx, part;
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    TRY(hwnas_tape_convert(&dy, t, dy, plain));
    TRY(hwnas_tape_layout(&packed, t, one.rank, one.dims, NULL, t->type));
    TRY(hwnas_tape_plain(&plain, t, node->inputs[0], t->type));
    TRY(hwnas_gradient_zeros(&dx, t, plain));
    TRY(part_view(&part, t, dx, &one, c.axis, c.begin));
    TRY(hwnas_tape_reorder(t, hwnas_tape_add_view(t, dy, packed), part));
    return hwnas_tape_add_gradient(t, node->inputs[0], dx);
}

/* ---- Rows of a table ---- */

typedef struct rows {
    int64_t n_indices, n_rows, width;
    dnnl_data_type_t type; /* of activations; the table and its gradient are floats */
} rows;

static hwnas_status rows_of(rows *out, const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_tensor *table = hwnas_node_input(t->graph, node, 0);
    const hwnas_tensor *indices = hwnas_node_input(t->graph, node, 1);
    if (hwnas_node_attr(node, "axis")->ints[0] != 0 || table->kind != HWNAS_TENSOR_WEIGHT ||
        indices->kind == HWNAS_TENSOR_ACTIVATION)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                       "'%s': the device 'cpu' has no gradient of a 'gather' but of one place, and "
                       "of the rows of a table of weights by numbers that are an input",
                       node->name),
            "--device torch trains it as PyTorch does");
    *out = (rows){hwnas_tensor_count(indices), table->dims[0],
                  hwnas_tensor_count(table) / table->dims[0], t->type};
    return HWNAS_OK;
}

static void gather(const hwnas_tape *t, const void *settings, void *const *values)
{
    const rows *r = settings;
    (void)t; /* without OpenMP */
    const float *table = values[0], *indices = values[1];
#pragma omp parallel for num_threads(t->device->threads) if (r->n_indices * r->width > 32768)
    for (int64_t i = 0; i < r->n_indices; i++) {
        const float *row = table + row_at(indices, i, r->n_rows) * r->width;
        if (r->type == dnnl_f32)
            memcpy((float *)values[2] + i * r->width, row, (size_t)r->width * sizeof *row);
        else
            for (int64_t k = 0; k < r->width; k++)
                ((uint16_t *)values[2])[i * r->width + k] = hwnas_bfloat16_of(row[k]);
    }
}

/* Each thread has rows of its own, so none waits for another, and sums have one order. */
static void scatter(const hwnas_tape *t, const void *settings, void *const *values)
{
    const rows *r = settings;
    const float *indices = values[1];
    const int n_threads = t->device->threads;
#pragma omp parallel for num_threads(n_threads)
    for (int thread = 0; thread < n_threads; thread++)
        for (int64_t i = 0; i < r->n_indices; i++) {
            const int64_t row = row_at(indices, i, r->n_rows);
            float *sum = (float *)values[2] + row * r->width;
            if (row % n_threads != thread)
                continue;
            for (int64_t k = 0; k < r->width; k++)
                sum[k] +=
                    r->type == dnnl_f32
                        ? ((const float *)values[0])[i * r->width + k]
                        : hwnas_bfloat16_value(((const uint16_t *)values[0])[i * r->width + k]);
        }
}

/* Numbers stay floats, whatever activations are. */
static hwnas_status take_indices(int *out, hwnas_tape *t, const hwnas_node *node)
{
    const int tensor = node->inputs[1];
    *out = t->value[tensor];
    return t->graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT
               ? hwnas_gradient_weight(out, t, tensor, NULL, NULL)
               : HWNAS_OK;
}

static hwnas_status gather_forward(hwnas_tape *t, const hwnas_node *node)
{
    const_dnnl_memory_desc_t plain;
    rows r;
    int slots[3];
    if (is_place(t, node))
        return place_forward(t, node);
    TRY(rows_of(&r, t, node));
    TRY(hwnas_gradient_weight(&slots[0], t, node->inputs[0], NULL, NULL));
    TRY(take_indices(&slots[1], t, node));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    slots[2] = hwnas_tape_add_slot(t, plain);
    hwnas_tape_add_loop(t, gather, &r, sizeof r, 3, slots);
    hwnas_gradient_set(t, node, NULL, slots[2]);
    return HWNAS_OK;
}

static hwnas_status gather_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const_dnnl_memory_desc_t plain;
    rows r;
    int slots[3];
    if (is_place(t, node))
        return place_backward(t, node, dy);
    TRY(rows_of(&r, t, node));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    TRY(hwnas_tape_convert(&slots[0], t, dy, plain));
    TRY(take_indices(&slots[1], t, node));
    TRY(hwnas_tape_plain(&plain, t, node->inputs[0], dnnl_f32));
    TRY(hwnas_gradient_zeros(&slots[2], t, plain));
    hwnas_tape_add_loop(t, scatter, &r, sizeof r, 3, slots);
    return hwnas_tape_add_gradient(t, node->inputs[0], slots[2]);
}

const hwnas_gradient_rule hwnas_gradient_gather = {gather_forward, gather_backward};

/* ---- Zeros ---- */

static hwnas_status zero_forward(hwnas_tape *t, const hwnas_node *node)
{
    const_dnnl_memory_desc_t image;
    TRY(hwnas_tape_image(&image, t, node->output, t->type));
    hwnas_gradient_set(t, node, NULL, hwnas_tape_add_kept(t, image, image, NULL));
    return HWNAS_OK;
}

const hwnas_gradient_rule hwnas_gradient_zero = {.forward = zero_forward};
