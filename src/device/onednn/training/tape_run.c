/* tape_run.c: the memory of a tape, and its run. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/onednn/recurrent_cell.h"
#include "device/onednn/training/tape.h"
#include "device/place.h"

typedef hwnas_tape_slot slot;

static size_t bytes_of(const slot *s)
{
    return dnnl_memory_desc_get_size(s->layout);
}

static bool is_passing(const hwnas_tape *t, size_t i)
{
    const slot *s = &t->slots[i];
    return s->base == (int)i && !s->is_kept && s->input < 0 && s->first >= 0;
}

/* Values that pass share memory where they do not live at one time. */
static void place_passing(hwnas_tape *t)
{
    hwnas_block *blocks = hwnas_alloc((t->n_slots + 1) * sizeof *blocks);
    size_t n = 0;
    for (size_t i = 0; i < t->n_slots; i++)
        if (is_passing(t, i))
            blocks[n++] =
                (hwnas_block){bytes_of(&t->slots[i]), t->slots[i].first, t->slots[i].last, 0};
    t->passing_bytes = hwnas_place_blocks(blocks, n);
    n = 0;
    for (size_t i = 0; i < t->n_slots; i++)
        if (is_passing(t, i))
            t->slots[i].offset = blocks[n++].offset;
    free(blocks);
}

void hwnas_tape_measure(hwnas_tape *t)
{
    place_passing(t);
    t->kept_bytes = 0;
    for (size_t i = 0; i < t->n_slots; i++) {
        slot *s = &t->slots[i];
        if (!s->is_kept || s->base != (int)i)
            continue;
        s->offset = t->kept_bytes;
        t->kept_bytes +=
            (bytes_of(s) + HWNAS_PLACE_ALIGN - 1) / HWNAS_PLACE_ALIGN * HWNAS_PLACE_ALIGN;
    }
}

static void *place_of(const hwnas_tape *t, const slot *s)
{
    const slot *base = &t->slots[s->base];
    if (base->input >= 0)
        return NULL; /* the caller's */
    return (char *)(base->is_kept ? t->kept : t->passing) + base->offset;
}

void hwnas_tape_order_gates(hwnas_tape *t, int id, int64_t block)
{
    for (size_t i = 0; i < t->n_contents; i++)
        if (t->contents[i].slot == id)
            t->contents[i].block = block;
}

/* From ONNX's order to oneDNN's, or back. */
static hwnas_status turn_gates(float *values, const hwnas_tape_content *c, bool back)
{
    const size_t n = dnnl_memory_desc_get_size(c->plain) / sizeof *values;
    const size_t block = (size_t)c->block, group = 4 * block;
    void *room;
    TRY(hwnas_try_alloc(&room, group * sizeof *values, "gates"));
    for (size_t at = 0; at < n; at += group) {
        memcpy(room, values + at, group * sizeof *values);
        for (size_t g = 0; g < 4; g++) {
            const size_t given = (size_t)hwnas_onednn_lstm_cell.gate[g] * block, kept = g * block;
            memcpy(values + at + (back ? given : kept), (float *)room + (back ? kept : given),
                   block * sizeof *values);
        }
    }
    free(room);
    return HWNAS_OK;
}

/* One at a time: the network's weights are not to be held twice. */
static hwnas_status make_values(hwnas_tape_content *c)
{
    void *values;
    if (c->values || !c->weight)
        return HWNAS_OK;
    TRY(hwnas_try_alloc(&values, (size_t)hwnas_tensor_bytes(c->weight), c->weight->name));
    hwnas_tensor_fill(c->weight, values);
    c->values = values;
    return HWNAS_OK;
}

static hwnas_status fill(hwnas_tape *t, hwnas_tape_content *c)
{
    hwnas_status status = HWNAS_OK;
    TRY(make_values(c));
    const dnnl_engine_t engine = t->device->engine;
    const slot *s = &t->slots[c->slot];
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t plain = NULL;
    if (!c->values)
        return HWNAS_OK; /* it is zeros already */
    if (c->block)
        TRY(turn_gates(c->values, c, false));
    TRY_DNNL_OUT(
        "fill", t->name,
        dnnl_reorder_primitive_desc_create(&desc, c->plain, engine, s->layout, engine, NULL));
    TRY_DNNL_OUT("fill", t->name, dnnl_primitive_create(&reorder, desc));
    TRY_DNNL_OUT("fill", t->name, dnnl_memory_create(&plain, c->plain, engine, c->values));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, s->memory}};
    TRY_DNNL_OUT("fill", t->name, dnnl_primitive_execute(reorder, t->device->stream, 2, args));
    TRY_DNNL_OUT("fill", t->name, dnnl_stream_wait(t->device->stream));
out:
    dnnl_memory_destroy(plain);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(desc);
    return status;
}

/* Those that are kept, or the others. */
static hwnas_status bind_slots(hwnas_tape *t, bool are_kept)
{
    for (size_t i = 0; i < t->n_slots; i++) {
        slot *s = &t->slots[i];
        if (s->is_kept != are_kept)
            continue;
        void *place = place_of(t, s);
        TRY_DNNL("bind", t->name,
                 dnnl_memory_create(&s->memory, s->layout, t->device->engine,
                                    place ? place : DNNL_MEMORY_NONE));
    }
    return HWNAS_OK;
}

static void find_values(const hwnas_tape *t, hwnas_tape_step *s)
{
    for (int i = 0; i < s->n; i++)
        dnnl_memory_get_data_handle(t->slots[s->args[i].slot].memory, &s->values[i]);
}

static hwnas_status bind_steps(hwnas_tape *t)
{
    for (size_t i = 0; i < t->n_steps; i++) {
        hwnas_tape_step *s = &t->steps[i];
        if (s->loop) {
            find_values(t, s);
            continue;
        }
        for (int k = 0; k < s->n; k++)
            s->bound[k] = (dnnl_exec_arg_t){s->args[k].arg, t->slots[s->args[k].slot].memory};
        TRY_DNNL("bind", t->name,
                 dnnl_memory_set_data_handle(s->bound[s->n].memory, t->scratch.memory));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_tape_bind(hwnas_tape *t)
{
    TRY(hwnas_try_alloc(&t->kept, t->kept_bytes + 1, "weights and what the optimizer keeps"));
    TRY(bind_slots(t, true));
    for (size_t i = 0; i < t->n_contents; i++) {
        TRY(fill(t, &t->contents[i]));
        free(t->contents[i].values);
        t->contents[i].values = NULL;
    }
    /* What is held twice while it is filled is gone by now, so that the peak is that of a step. */
    TRY(hwnas_try_alloc(&t->passing, t->passing_bytes + 1, "activations and gradients"));
    TRY(hwnas_try_alloc(&t->scratch.memory, t->scratch.bytes + 1, "scratch"));
    TRY(bind_slots(t, false));
    return bind_steps(t);
}

static hwnas_status take_inputs(hwnas_tape *t, const float *const *inputs)
{
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].input >= 0)
            TRY_DNNL(
                "take", "an input",
                dnnl_memory_set_data_handle(t->slots[i].memory, (void *)inputs[t->slots[i].input]));
    for (size_t i = 0; i < t->n_steps; i++)
        if (t->steps[i].reads_inputs)
            find_values(t, &t->steps[i]);
    return HWNAS_OK;
}

hwnas_status hwnas_tape_run(hwnas_tape *t, const float *const *inputs, double *seconds)
{
    const dnnl_stream_t stream = t->device->stream;
    hwnas_onednn_use_threads(t->device->threads);
    TRY(take_inputs(t, inputs));
    t->n_runs++;
    for (size_t i = 0; i < t->n_steps; i++) {
        const hwnas_tape_step *s = &t->steps[i];
        const double start = seconds ? hwnas_now() : 0;
        if (s->loop)
            s->loop(t, s->settings, s->values);
        else
            TRY_DNNL("train", t->graph->nodes[s->node].name,
                     dnnl_primitive_execute(s->primitive, stream, s->n + 1, s->bound));
        if (seconds) {
            TRY_DNNL("finish", t->name, dnnl_stream_wait(stream));
            seconds[i] = hwnas_now() - start;
        }
    }
    TRY_DNNL("finish", t->name, dnnl_stream_wait(stream));
    return HWNAS_OK;
}

const hwnas_tape_content *hwnas_tape_find_content(const hwnas_tape *t, int id)
{
    for (size_t i = 0; i < t->n_contents; i++)
        if (t->contents[i].slot == id)
            return &t->contents[i];
    return NULL;
}

hwnas_status hwnas_tape_read(float *out, const hwnas_tape *t, int id)
{
    hwnas_status status = HWNAS_OK;
    const dnnl_engine_t engine = t->device->engine;
    const hwnas_tape_content *content = hwnas_tape_find_content(t, id);
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t plain = NULL;
    if (!content)
        return hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "slot %d keeps nothing", id);
    TRY_DNNL_OUT("read", t->name,
                 dnnl_reorder_primitive_desc_create(&desc, t->slots[id].layout, engine,
                                                    content->plain, engine, NULL));
    TRY_DNNL_OUT("read", t->name, dnnl_primitive_create(&reorder, desc));
    TRY_DNNL_OUT("read", t->name, dnnl_memory_create(&plain, content->plain, engine, out));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, t->slots[id].memory}, {DNNL_ARG_TO, plain}};
    TRY_DNNL_OUT("read", t->name, dnnl_primitive_execute(reorder, t->device->stream, 2, args));
    TRY_DNNL_OUT("read", t->name, dnnl_stream_wait(t->device->stream));
    if (content->block)
        TRY_OUT(turn_gates(out, content, true));
out:
    dnnl_memory_destroy(plain);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(desc);
    return status;
}
