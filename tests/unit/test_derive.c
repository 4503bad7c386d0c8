/* Spaces that are derived from models: which channels go together, and networks without some of
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "derive/base_model.h"
#include "derive/derive.h"
#include "graph/elaborate.h"
#include "onnx/onnx.h"
#include "tests/unit/amount.h"
#include "tests/unit/device_fixture.h"

static char folder[] = "/tmp/hwnas-derive-XXXXXX";

static char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_model(const hwnas_graph *graph)
{
    void *bytes;
    size_t length;
    ok(hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_VALUES));
    ok(hwnas_file_write(in_folder("model.onnx"), bytes, length));
    free(bytes);
}

/* A network of the zoo as a file. */
static void write_network(const char *name)
{
    hwnas_space *space;
    hwnas_graph *graph;
    ok(hwnas_graph_load_space(&space, name));
    hwnas_arch *arch = hwnas_arch_new(space);
    ok(hwnas_graph_build(&graph, arch, 1));
    write_model(graph);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

/* ---- Groups ---- */

/* The number of widths that can be chosen by themselves, from the papers' tables:
 *   VGG-16 (configuration D): 13 convolutions and 2 hidden layers;
 *   ResNet-50: 16 bottlenecks with 2 inner widths, 4 stages whose blocks are added up, the stem;
 * ResNet-152: 50; MobileNetV2: 16 expansions, 7 stages, the stem (whose channels the first
 * depthwise convolution keeps), the last convolution; EfficientNet-B0: 15 expansions, 16 inner
 * widths of squeeze-and-excite, 7 stages, stem, head; ViT-B/16: the width that runs through all, 12
 * times heads and 12 times the inner width of an MLP; BERT-base: as ViT, and the pooler's width. */
static void independent_widths_are_those_of_the_papers(void **state)
{
    static const struct {
        const char *name;
        size_t n_groups;
    } networks[] = {{"mobilenet_v2", 25},    {"resnet50", 37},   {"vgg16", 15},
                    {"efficientnet_b0", 40}, {"resnet152", 105}, {"vit_b16", 25}};
    (void)state;
    for (size_t i = 0; i < COUNT(networks); i += EVERY(3)) {
        hwnas_base_model *model;
        const hwnas_original *original;
        write_network(networks[i].name);
        ok(hwnas_base_model_open(&model, in_folder("model.onnx")));
        ok(hwnas_base_model_original(&original, model, 1));
        if (original->coupling->n_groups != networks[i].n_groups)
            fail_msg("%s: %zu groups, not %zu", networks[i].name, original->coupling->n_groups,
                     networks[i].n_groups);
        hwnas_base_model_close(model);
    }
}

/* ---- Networks without some channels ---- */

/* Whether a group's channels are normalised together: then it matters how many there are. */
static bool is_normalised(const hwnas_original *o, const hwnas_channel_group *group)
{
    for (size_t n = 0; n < o->graph->n_nodes; n++) {
        const hwnas_node *node = &o->graph->nodes[n];
        const hwnas_tensor *y = hwnas_node_output(o->graph, node);
        const int *sets = hwnas_coupling_sets(o->coupling, node->output, y->rank - 1);
        for (int64_t k = 0; k < y->dims[y->rank - 1] && node->op->id == HWNAS_OP_LAYER_NORM; k++)
            if (sets[k] == group->sets[0])
                return true;
    }
    return false;
}

/* The original with zeros wherever a weight has a place that is not kept. */
static hwnas_graph *masked(const hwnas_derivation *d)
{
    const hwnas_graph *graph = d->original->graph;
    hwnas_graph *copy;
    ok(hwnas_graph_copy(&copy, graph));
    for (size_t t = 0; t < graph->n_tensors; t++) {
        const hwnas_tensor *from = &graph->tensors[t];
        if (from->kind != HWNAS_TENSOR_WEIGHT)
            continue;
        float *values = NULL;
        for (size_t k = 0; k < copy->n_tensors; k++)
            if (!strcmp(copy->tensors[k].name, from->name))
                values = (float *)copy->tensors[k].data;
        int64_t behind = hwnas_tensor_count(from);
        for (int dim = 0; dim < from->rank && values; dim++) {
            const int *sets = hwnas_coupling_sets(d->original->coupling, (int)t, dim);
            behind /= from->dims[dim];
            for (int64_t i = 0; i < hwnas_tensor_count(from); i++) {
                const int set = sets[i / behind % from->dims[dim]];
                if (set != HWNAS_SET_FIXED && !d->is_kept[set])
                    values[i] = 0;
            }
        }
    }
    return copy;
}

static void drop_some(hwnas_derivation *d, hwnas_rng *rng)
{
    const hwnas_original *o = d->original;
    for (size_t g = 0; g < o->coupling->n_groups; g++) {
        const hwnas_channel_group *group = &o->coupling->groups[g];
        if (is_normalised(o, group))
            continue;
        for (int i = 1; i < group->n_sets; i++)
            d->is_kept[group->sets[i]] = hwnas_rng_below(rng, 3) > 0;
    }
}

/* A channel that is taken out adds nothing, as one whose weights are all zero; which weights these
 * are is what coupling finds. Operators that give something for zeros (sigmoid) stand before a
 * product with zeros in these networks. */
static void taking_out_channels_is_like_zeros_in_their_weights(void **state)
{
    static const char *const networks[] = {"mobilenet_v3_large", "resnet50",        "vgg16",
                                           "cifar10_cnn",        "efficientnet_b0", "vit_b16"};
    hwnas_device *cpu = open_device("cpu", 1);
    hwnas_rng rng = hwnas_rng_new(7, 0);
    (void)state;
    for (size_t i = 0; i < COUNT(networks); i += EVERY(3)) {
        hwnas_base_model *model;
        const hwnas_original *original;
        hwnas_derivation d;
        hwnas_graph *small;
        hwnas_costs costs, original_costs;
        write_network(networks[i]);
        ok(hwnas_base_model_open(&model, in_folder("model.onnx")));
        ok(hwnas_base_model_original(&original, model, 1));
        hwnas_derivation_begin(&d, original);
        d.with_weights = true;
        drop_some(&d, &rng);
        ok(hwnas_derivation_build(&small, &d));
        hwnas_graph *zeros = masked(&d);
        compare(networks[i], cpu, small, cpu, zeros, i);
        hwnas_graph_costs(&costs, small);
        hwnas_graph_costs(&original_costs, original->graph);
        assert_true(costs.macs < original_costs.macs * 3 / 4);
        hwnas_graph_free(zeros);
        hwnas_graph_free(small);
        hwnas_derivation_end(&d);
        hwnas_base_model_close(model);
    }
    hwnas_device_close(cpu);
}

/* What stands between the channels and the output in ways of its own. */
static void channels_are_followed_through_shapes(void **state)
{
    const int64_t dims[] = {1, 3, 8, 8};
    hwnas_device *ref = open_device("ref", 1);
    hwnas_rng rng = hwnas_rng_new(11, 0);
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        hwnas_graph *graph = hwnas_graph_new("net", 1);
        const int x = add_input(graph, dims);
        int a = add(graph, "conv", "out=12 kernel=3 pad=1", x, -1);
        int b = add(graph, "conv", "out=12", x, -1);
        switch (kind) {
        case 0: /* both in a row, cut again elsewhere */
            a = add(graph, "concat", "", a, b);
            b = add(graph, "slice", "begin=6 end=18", a, -1);
            a = add(graph, "slice", "begin=0 end=12", a, -1);
            a = add(graph, "add", "", a, b);
            break;
        case 1: /* in groups */
            a = add(graph, "conv", "out=8 groups=4", a, -1);
            break;
        case 2: /* two outputs a channel */
            a = add(graph, "conv", "out=24 kernel=3 groups=12", a, -1);
            break;
        case 3: /* channel shuffle: 3 x 4 turned round */
            a = add(graph, "reshape", "shape=3,4,8,8", a, -1);
            a = add(graph, "transpose", "order=0,2,1,3,4", a, -1);
            a = add(graph, "reshape", "shape=12,8,8", a, -1);
            break;
        default: /* a product of two parts of one tensor, and a sum that is broadcast */
            b = add(graph, "global_avg_pool", "", b, -1);
            a = add(graph, "mul", "", a, b);
            break;
        }
        a = add(graph, "relu", "", a, -1);
        a = add(graph, "conv", "out=5 kernel=2", a, -1);
        a = add(graph, "flatten", "", a, -1);
        hwnas_graph_add_output(graph, add(graph, "linear", "out=4", a, -1));
        write_model(graph);
        hwnas_graph_free(graph);

        hwnas_base_model *model;
        const hwnas_original *original;
        ok(hwnas_base_model_open(&model, in_folder("model.onnx")));
        ok(hwnas_base_model_original(&original, model, 1));
        assert_true(original->coupling->n_groups >= 2);
        for (int round = 0; round < 8; round++) {
            hwnas_derivation d;
            hwnas_graph *small;
            hwnas_derivation_begin(&d, original);
            d.with_weights = true;
            drop_some(&d, &rng);
            ok(hwnas_derivation_build(&small, &d));
            hwnas_graph *zeros = masked(&d);
            compare("a shape", ref, small, ref, zeros, (uint64_t)round);
            hwnas_graph_free(zeros);
            hwnas_graph_free(small);
            hwnas_derivation_end(&d);
        }
        hwnas_base_model_close(model);
    }
    hwnas_device_close(ref);
}

/* At most eight, down in even steps: of as many channels as vectors have, where they can be. */
static void widths_are_whole_vectors(void **state)
{
    static const struct {
        const char *attrs;
        int64_t widths[9];
    } rows[] = {{"out=8 kernel=3", {8, 7, 6, 5, 4, 3, 2, 1}},
                {"out=24 kernel=3", {24, 20, 16, 12, 8, 4}},
                {"out=48 kernel=3", {48, 40, 32, 24, 16, 8}},
                {"out=96 kernel=3", {96, 80, 64, 48, 32, 16}},
                {"out=128 kernel=3", {128, 112, 96, 80, 64, 48, 32, 16}}};
    const int64_t dims[] = {1, 3, 8, 8};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = hwnas_graph_new("net", 1);
        hwnas_space *space;
        int x = add(graph, "conv", rows[i].attrs, add_input(graph, dims), -1);
        x = add(graph, "conv", "out=4", add(graph, "relu", "", x, -1), -1);
        hwnas_graph_add_output(graph, x);
        write_model(graph);
        hwnas_graph_free(graph);
        char *path = strdup(in_folder("space.yaml"));
        ok(hwnas_derive_space(path, in_folder("model.onnx"), false));
        ok(hwnas_load_space(&space, path));
        for (size_t v = 0; v < space->genes[0].n_values; v++)
            assert_int_equal(space->genes[0].values[v].i, rows[i].widths[v]);
        assert_int_equal(rows[i].widths[space->genes[0].n_values], 0);
        hwnas_space_free(space);
        free(path);
    }
}

/* ---- What could not be made ---- */

/* A slice takes a part of the channels that are ranked together: with the other part alone there
 * would be nothing to take. */
static void parts_of_a_slice_keep_a_channel(void **state)
{
    const int64_t dims[] = {1, 3, 8, 8};
    (void)state;
    for (int stronger = 0; stronger < 2; stronger++) {
        hwnas_graph *graph = hwnas_graph_new("net", 1), *small;
        hwnas_base_model *model;
        const hwnas_original *original;
        hwnas_space *space;
        int x = add(graph, "conv", "out=8 kernel=3 pad=1", add_input(graph, dims), -1);
        const int kernel = graph->nodes[graph->tensors[x].producer].inputs[1];
        const int first = add(graph, "slice", "begin=0 end=4", x, -1);
        const int second = add(graph, "slice", "begin=4 end=8", x, -1);
        x = add(graph, "concat", "", second, first);
        x = add(graph, "flatten", "", add(graph, "conv", "out=4", x, -1), -1);
        hwnas_graph_add_output(graph, x);
        hwnas_tensor *w = &graph->tensors[kernel];
        float *values = hwnas_arena_alloc(graph->arena, (size_t)hwnas_tensor_bytes(w));
        hwnas_tensor_fill(w, values);
        for (int i = 0; i < 4 * 3 * 9; i++) /* of one half, which is then ranked before the other */
            values[stronger * 4 * 3 * 9 + i] *= 100;
        w->data = values;
        write_model(graph);
        hwnas_graph_free(graph);

        ok(hwnas_base_model_open(&model, in_folder("model.onnx")));
        ok(hwnas_base_model_original(&original, model, 1));
        assert_int_equal(original->n_needed[0], 2);
        hwnas_base_model_close(model);
        char *path = strdup(in_folder("space.yaml"));
        ok(hwnas_derive_space(path, in_folder("model.onnx"), true));
        ok(hwnas_load_space(&space, path)); /* builds the smallest one, too */
        hwnas_arch *arch = hwnas_arch_new(space);
        for (size_t g = 0; g < space->n_genes; g++)
            arch->genes[g] = (uint16_t)(space->genes[g].n_values - 1);
        ok(hwnas_graph_build_trained(&small, arch, 1));
        hwnas_graph_free(small);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
        free(path);
    }
}

/* Deep enough to end a small stack, were it walked by calls: 90 bytes for each. */
static void depth_is_no_matter(void **state)
{
    const int64_t dims[4] = {1, 2};
    hwnas_graph *graph = hwnas_graph_new("net", 1);
    hwnas_space *space;
    struct rlimit usual, small = {.rlim_cur = 512 << 10};
    const int begin = add(graph, "linear", "out=4", add_input(graph, dims), -1);
    int x = begin;
    (void)state;
    for (int i = 0; i < 6000; i++)
        x = add(graph, "relu", "", x, -1);
    x = add(graph, "add", "", begin, x);
    hwnas_graph_add_output(graph, add(graph, "linear", "out=2", x, -1));
    write_model(graph);
    hwnas_graph_free(graph);
    char *path = strdup(in_folder("space.yaml"));
    assert_int_equal(getrlimit(RLIMIT_STACK, &usual), 0);
    small.rlim_max = usual.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    ok(hwnas_derive_space(path, in_folder("model.onnx"), true));
    ok(hwnas_load_space(&space, path));
    assert_int_equal(setrlimit(RLIMIT_STACK, &usual), 0);
    assert_int_equal(space->n_genes, 2); /* the width, and the branch */
    hwnas_space_free(space);
    free(path);
}

static void set_kernel(hwnas_derivation *d, const char *name, int kernel)
{
    const hwnas_graph *graph = d->original->graph;
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (!strcmp(graph->nodes[n].name, name))
            d->kernel[n] = kernel;
}

/* Weights of two convolutions, one of whose windows is cut, have become two. */
static void names_of_weights_stay_unique(void **state)
{
    const int64_t dims[] = {1, 4, 8, 8};
    hwnas_graph *graph = hwnas_graph_new("net", 1), *small, *again;
    hwnas_base_model *model;
    const hwnas_original *original;
    hwnas_derivation d;
    hwnas_device *ref = open_device("ref", 1);
    int x = add(graph, "conv", "out=4 kernel=5 pad=2", add_input(graph, dims), -1);
    const hwnas_node *first = &graph->nodes[graph->tensors[x].producer];
    const int kernel = first->inputs[1];
    char *name = strdup(first->name);
    (void)state;
    x = add(graph, "conv", "out=4 kernel=5 pad=2", x, -1);
    graph->nodes[graph->tensors[x].producer].inputs[1] = kernel;
    hwnas_graph_add_output(graph, x);
    write_model(graph);
    hwnas_graph_free(graph);
    ok(hwnas_base_model_open(&model, in_folder("model.onnx")));
    ok(hwnas_base_model_original(&original, model, 1));
    hwnas_derivation_begin(&d, original);
    d.with_weights = true;
    set_kernel(&d, name, 3);
    ok(hwnas_derivation_build(&small, &d));
    write_model(small);
    ok(hwnas_onnx_load(&again, in_folder("model.onnx"), NULL));
    compare("a window of shared weights", ref, again, ref, small, 1);
    hwnas_graph_free(again);
    hwnas_graph_free(small);
    hwnas_derivation_end(&d);
    hwnas_base_model_close(model);
    hwnas_device_close(ref);
    free(name);
}

static void too_many_places_are_told(void **state)
{
    const int64_t dims[4] = {1, INT64_C(1) << 28};
    hwnas_graph *graph = hwnas_graph_new("net", 1);
    hwnas_coupling *coupling;
    hwnas_graph_add_output(graph, add(graph, "relu", "", add_input(graph, dims), -1));
    (void)state;
    assert_int_equal(hwnas_coupling_find(&coupling, graph), HWNAS_E_INPUT);
    hwnas_graph_free(graph);
}

/* ---- Spaces ---- */

static void the_first_network_is_the_model(void **state)
{
    static const char *const networks[] = {"mobilenet_v3_large", "resnet32_cifar", "deit_tiny"};
    hwnas_device *cpu = open_device("cpu", 1);
    (void)state;
    for (size_t i = 0; i < COUNT(networks); i++) {
        hwnas_space *space;
        hwnas_graph *model, *first, *last;
        write_network(networks[i]);
        ok(hwnas_onnx_load(&model, in_folder("model.onnx"), NULL));
        char *path = strdup(in_folder("space.yaml"));
        ok(hwnas_derive_space(path, in_folder("model.onnx"), true));
        ok(hwnas_load_space(&space, path));
        hwnas_arch *arch = hwnas_arch_new(space);
        ok(hwnas_graph_build_trained(&first, arch, 1));
        compare(networks[i], cpu, first, cpu, model, 3);
        for (size_t g = 0; g < space->n_genes; g++)
            arch->genes[g] = (uint16_t)(space->genes[g].n_values - 1);
        ok(hwnas_graph_build(&last, arch, 1)); /* without its weights */
        free(outcome(cpu, last, 0));
        hwnas_graph_free(last);
        assert_int_equal(hwnas_graph_build(&last, arch, 4), HWNAS_E_INPUT);
        hwnas_graph_free(first);
        hwnas_graph_free(model);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
        free(path);
    }
    hwnas_device_close(cpu);
}

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(in_folder("model.onnx"));
    unlink(in_folder("space.yaml"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(independent_widths_are_those_of_the_papers),
        cmocka_unit_test(taking_out_channels_is_like_zeros_in_their_weights),
        cmocka_unit_test(channels_are_followed_through_shapes),
        cmocka_unit_test(widths_are_whole_vectors),
        cmocka_unit_test(parts_of_a_slice_keep_a_channel),
        cmocka_unit_test(depth_is_no_matter),
        cmocka_unit_test(names_of_weights_stay_unique),
        cmocka_unit_test(too_many_places_are_told),
        cmocka_unit_test(the_first_network_is_the_model),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
