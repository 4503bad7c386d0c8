#include "device/onednn/training/tape.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/primitive.h"

typedef hwnas_tape_slot slot;

hwnas_status hwnas_tape_open(hwnas_tape *out, const onednn_device *device, const hwnas_graph *graph,
                             dnnl_data_type_t type)
{
    hwnas_tape *t = out;
    *t = (hwnas_tape){.with = *device, .graph = graph, .type = type, .loss = HWNAS_NO_SLOT};
    t->with.scratch = &t->scratch;
    t->device = &t->with;
    t->arena = hwnas_arena_new();
    t->name = graph->name;
    int **by_tensor[] = {&t->value, &t->gradient, &t->master, &t->momentum};
    for (size_t k = 0; k < sizeof by_tensor / sizeof *by_tensor; k++) {
        *by_tensor[k] = hwnas_arena_alloc(t->arena, graph->n_tensors * sizeof **by_tensor[k]);
        for (size_t i = 0; i < graph->n_tensors; i++)
            (*by_tensor[k])[i] = HWNAS_NO_SLOT;
    }
    t->is_learnt = hwnas_arena_alloc(t->arena, graph->n_tensors * sizeof *t->is_learnt);
    t->n_readers = hwnas_arena_alloc(t->arena, graph->n_tensors * sizeof *t->n_readers);
    t->notes = hwnas_arena_alloc(t->arena, (graph->n_nodes + 1) * sizeof *t->notes);
    t->is_done = hwnas_arena_alloc(t->arena, (graph->n_nodes + 1) * sizeof *t->is_done);
    return hwnas_onednn_attr(&t->attr, graph->name);
}

void hwnas_tape_done(hwnas_tape *t)
{
    for (size_t i = 0; i < t->n_slots; i++)
        dnnl_memory_destroy(t->slots[i].memory);
    for (size_t i = 0; i < t->n_steps; i++) {
        hwnas_tape_step *s = &t->steps[i];
        dnnl_primitive_destroy(s->primitive);
        if (s->primitive)
            dnnl_memory_destroy(s->bound[s->n].memory); /* the scratchpad */
    }
    for (size_t i = 0; i < t->n_layouts; i++)
        dnnl_memory_desc_destroy(t->layouts[i]);
    for (size_t i = 0; i < t->n_hints; i++)
        dnnl_primitive_desc_destroy(t->hints[i]);
    for (size_t i = 0; i < t->n_contents; i++)
        free(t->contents[i].values);
    dnnl_primitive_attr_destroy(t->attr);
    free(t->slots);
    free(t->steps);
    free(t->layouts);
    free(t->hints);
    free(t->contents);
    free(t->kept);
    free(t->passing);
    free(t->scratch.memory);
    hwnas_arena_free(t->arena);
}

/* ---- Layouts ---- */

const_dnnl_memory_desc_t hwnas_tape_own(hwnas_tape *t, dnnl_memory_desc_t layout)
{
    HWNAS_GROW(t->layouts, t->n_layouts, t->layout_room);
    return t->layouts[t->n_layouts++] = layout;
}

hwnas_status hwnas_tape_copy(const_dnnl_memory_desc_t *out, hwnas_tape *t,
                             const_dnnl_memory_desc_t layout)
{
    dnnl_memory_desc_t copy;
    TRY_DNNL("describe", t->name, dnnl_memory_desc_clone(&copy, layout));
    *out = hwnas_tape_own(t, copy);
    return HWNAS_OK;
}

hwnas_status hwnas_tape_layout(const_dnnl_memory_desc_t *out, hwnas_tape *t, int rank,
                               const int64_t *dims, const int64_t *strides, dnnl_data_type_t type)
{
    dnnl_memory_desc_t layout;
    dnnl_dims_t all = {1}, plain;
    for (int i = 0; i < rank; i++)
        all[i] = dims[i];
    rank = rank ? rank : 1; /* a scalar */
    plain[rank - 1] = 1;
    for (int i = rank - 1; i > 0; i--)
        plain[i - 1] = plain[i] * all[i];
    TRY_DNNL(
        "describe", t->name,
        dnnl_memory_desc_create_with_strides(&layout, rank, all, type, strides ? strides : plain));
    *out = hwnas_tape_own(t, layout);
    return HWNAS_OK;
}

hwnas_status hwnas_tape_any(const_dnnl_memory_desc_t *out, hwnas_tape *t, int rank,
                            const int64_t *dims, dnnl_data_type_t type)
{
    dnnl_memory_desc_t layout;
    TRY_DNNL("describe", t->name,
             dnnl_memory_desc_create_with_tag(&layout, rank, dims, type, dnnl_format_tag_any));
    *out = hwnas_tape_own(t, layout);
    return HWNAS_OK;
}

hwnas_status hwnas_tape_plain(const_dnnl_memory_desc_t *out, hwnas_tape *t, int tensor,
                              dnnl_data_type_t type)
{
    const hwnas_tensor *of = &t->graph->tensors[tensor];
    return hwnas_tape_layout(out, t, of->rank, of->dims, NULL, type);
}

hwnas_status hwnas_tape_image(const_dnnl_memory_desc_t *out, hwnas_tape *t, int tensor,
                              dnnl_data_type_t type)
{
    const hwnas_tensor *of = &t->graph->tensors[tensor];
    if (of->rank != 4)
        return hwnas_tape_plain(out, t, tensor, type);
    const int64_t *d = of->dims;
    const int64_t strides[] = {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]};
    return hwnas_tape_layout(out, t, 4, d, strides, type);
}

bool hwnas_tape_is_dense(const_dnnl_memory_desc_t layout)
{
    dnnl_dim_t offset = 0;
    const dnnl_dims_t *dims = NULL;
    dnnl_data_type_t type = dnnl_f32;
    int rank = 0;
    size_t count = 1;
    dnnl_memory_desc_query(layout, dnnl_query_submemory_offset_s64, &offset);
    dnnl_memory_desc_query(layout, dnnl_query_data_type, &type);
    dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, &rank);
    dnnl_memory_desc_query(layout, dnnl_query_dims, &dims);
    for (int i = 0; i < rank; i++)
        count *= (size_t)(*dims)[i];
    return !offset && dnnl_memory_desc_get_size(layout) == count * dnnl_data_type_size(type);
}

hwnas_status hwnas_tape_wanted(const_dnnl_memory_desc_t *out, hwnas_tape *t,
                               const_dnnl_primitive_desc_t desc, int arg)
{
    return hwnas_tape_copy(out, t, dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arg));
}

/* ---- Slots ---- */

int hwnas_tape_add_slot(hwnas_tape *t, const_dnnl_memory_desc_t layout)
{
    HWNAS_GROW(t->slots, t->n_slots, t->slot_room);
    const int id = (int)t->n_slots++;
    t->slots[id] = (slot){.layout = layout, .base = id, .input = -1, .first = -1, .last = -1};
    return id;
}

int hwnas_tape_add_kept(hwnas_tape *t, const_dnnl_memory_desc_t layout,
                        const_dnnl_memory_desc_t plain, float *values)
{
    const int id = hwnas_tape_add_slot(t, layout);
    t->slots[id].is_kept = true;
    HWNAS_GROW(t->contents, t->n_contents, t->content_room);
    t->contents[t->n_contents++] = (hwnas_tape_content){id, plain, values, NULL, 0};
    return id;
}

int hwnas_tape_add_view(hwnas_tape *t, int of, const_dnnl_memory_desc_t layout)
{
    const int id = hwnas_tape_add_slot(t, layout);
    t->slots[id].base = t->slots[of].base;
    t->slots[id].input = t->slots[of].input;
    t->slots[id].is_kept = t->slots[of].is_kept;
    return id;
}

/* ---- Steps ---- */

static hwnas_tape_step *add_step(hwnas_tape *t)
{
    HWNAS_GROW(t->steps, t->n_steps, t->step_room);
    hwnas_tape_step *s = &t->steps[t->n_steps++];
    *s = (hwnas_tape_step){.node = t->node, .phase = t->phase};
    return s;
}

/* The slot is used by the last step. */
static void use(hwnas_tape *t, int id)
{
    slot *base = &t->slots[t->slots[id].base];
    const int now = (int)t->n_steps - 1;
    base->first = base->first < 0 ? now : base->first;
    base->last = now;
}

static hwnas_status bind_scratch(hwnas_tape *t, hwnas_tape_step *s, dnnl_primitive_desc_t desc)
{
    const const_dnnl_memory_desc_t layout =
        dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    const size_t bytes = dnnl_memory_desc_get_size(layout);
    if (bytes > t->scratch.bytes)
        t->scratch.bytes = bytes;
    s->bound[s->n].arg = DNNL_ARG_SCRATCHPAD;
    TRY_DNNL(
        "bind", t->name,
        dnnl_memory_create(&s->bound[s->n].memory, layout, t->device->engine, DNNL_MEMORY_NONE));
    return HWNAS_OK;
}

hwnas_status hwnas_tape_add_primitive(hwnas_tape *t, dnnl_status_t made, dnnl_primitive_desc_t desc,
                                      int n, const hwnas_tape_arg *args)
{
    TRY_DNNL("compile the training of", t->name, made);
    HWNAS_GROW(t->hints, t->n_hints, t->hint_room);
    t->hints[t->n_hints++] = desc;
    hwnas_tape_step *s = add_step(t);
    TRY_DNNL("compile the training of", t->name, dnnl_primitive_create(&s->primitive, desc));
    s->n = n;
    memcpy(s->args, args, (size_t)n * sizeof *args);
    for (int i = 0; i < n; i++)
        use(t, args[i].slot);
    return bind_scratch(t, s, desc);
}

void hwnas_tape_add_loop(hwnas_tape *t, hwnas_tape_loop *loop, const void *settings, size_t size,
                         int n, const int *slots)
{
    hwnas_tape_step *s = add_step(t);
    s->loop = loop;
    s->settings = hwnas_arena_copy(t->arena, settings, size);
    s->n = n;
    for (int i = 0; i < n; i++) {
        s->args[i].slot = slots[i];
        s->reads_inputs |= t->slots[slots[i]].input >= 0;
        use(t, slots[i]);
    }
}

static hwnas_status reorder(hwnas_tape *t, int from, int to)
{
    const dnnl_engine_t engine = t->device->engine;
    dnnl_primitive_desc_t desc = NULL;
    const dnnl_status_t made = dnnl_reorder_primitive_desc_create(
        &desc, t->slots[from].layout, engine, t->slots[to].layout, engine, t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return hwnas_tape_add_primitive(t, made, desc, 2, args);
}

/* Where both have the same gaps oneDNN 3.7.2 (jit_direct_copy) copies as many values as there are
 * from the first on, gaps and all: then they are packed in between. */
hwnas_status hwnas_tape_reorder(hwnas_tape *t, int from, int to)
{
    if (!hwnas_tape_is_dense(t->slots[from].layout) && !hwnas_tape_is_dense(t->slots[to].layout)) {
        const_dnnl_memory_desc_t layout = t->slots[from].layout, plain;
        const dnnl_dims_t *dims = NULL;
        dnnl_data_type_t type = dnnl_f32;
        int rank = 0;
        dnnl_memory_desc_query(layout, dnnl_query_data_type, &type);
        dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, &rank);
        dnnl_memory_desc_query(layout, dnnl_query_dims, &dims);
        TRY(hwnas_tape_layout(&plain, t, rank, *dims, NULL, type));
        const int packed = hwnas_tape_add_slot(t, plain);
        TRY(reorder(t, from, packed));
        from = packed;
    }
    return reorder(t, from, to);
}

/* A conversion of the slot that was made before. */
static int find_conversion(const hwnas_tape *t, int from, const_dnnl_memory_desc_t layout)
{
    for (size_t i = 0; i < t->n_steps; i++) {
        const hwnas_tape_step *s = &t->steps[i];
        if (s->primitive && s->n == 2 && s->args[0].arg == DNNL_ARG_FROM &&
            s->args[0].slot == from && s->args[1].arg == DNNL_ARG_TO &&
            t->slots[s->args[1].slot].base == s->args[1].slot &&
            dnnl_memory_desc_equal(t->slots[s->args[1].slot].layout, layout))
            return s->args[1].slot;
    }
    return HWNAS_NO_SLOT;
}

hwnas_status hwnas_tape_convert(int *out, hwnas_tape *t, int from, const_dnnl_memory_desc_t layout)
{
    if (dnnl_memory_desc_equal(t->slots[from].layout, layout)) {
        *out = from;
        return HWNAS_OK;
    }
    int to = find_conversion(t, from, layout);
    if (to == HWNAS_NO_SLOT) {
        to = hwnas_tape_add_slot(t, layout);
        TRY(hwnas_tape_reorder(t, from, to));
    }
    *out = to;
    return HWNAS_OK;
}

hwnas_status hwnas_tape_add_gradient(hwnas_tape *t, int tensor, int from)
{
    const int so_far = t->gradient[tensor];
    if (!t->is_learnt[tensor])
        return HWNAS_OK;
    if (so_far == HWNAS_NO_SLOT) {
        t->gradient[tensor] = from;
        return HWNAS_OK;
    }
    const const_dnnl_memory_desc_t layout = t->slots[so_far].layout;
    TRY(hwnas_tape_convert(&from, t, from, layout));
    const int sum = hwnas_tape_add_slot(t, layout);
    dnnl_primitive_desc_t desc = NULL;
    const dnnl_status_t made = dnnl_binary_primitive_desc_create(
        &desc, t->device->engine, dnnl_binary_add, layout, layout, layout, t->attr);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_SRC_0, so_far}, {DNNL_ARG_SRC_1, from}, {DNNL_ARG_DST, sum}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 3, args));
    t->gradient[tensor] = sum;
    return HWNAS_OK;
}
