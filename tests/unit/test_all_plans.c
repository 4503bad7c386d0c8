/* test_all_plans.c: what the zoo and samples of every space that ships want of cuDNN is finalised
 * for described GPUs, without one.
 *
 * Networks are cut first, which is cheap and tells what plans are wanted; most networks share
 * theirs. A plan takes some milliseconds where cuDNN has its kernel ready, and some seconds where
 * one is compiled. So `make check` cuts the whole zoo and two networks of each space in one
 * precision, and finalises a few plans of them for each GPU, one of a form, no more; which, changes
 * from day to day: the seed is the day's number and is printed, HWNAS_SEED gives another.
 * `make check-long` (HWNAS_LONG=1) cuts 200 networks of each space and finalises all that is wanted
 * in each precision, one of each form first: hours, but plans are kept (HWNAS_PLANS), so it can be
 * interrupted, or told when to stop: HWNAS_SECONDS for each GPU and precision. Skipped where CUDA's
 * libraries are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/str.h"
#include "device/cudnn/cudnn_int8.h"
#include "device/cudnn/compile.h"
#include "device/cudnn/engine.h"
#include "graph/elaborate.h"
#include "space/arch.h"
#include "tests/gpu/dry.h"
#include "tests/gpu/wanted.h"

enum {
    SAMPLES = 200,
    FEW_SAMPLES = 2,
    FEW_PLANS = 4, /* for each GPU */
    FEW_REFUSED = 1, /* of which networks are cut anew */
    SECONDS_A_DAY = 86400
};

static const char *const gpus[] = {"h200", "a100", "l4"};
static const hwnas_precision precisions[] = {HWNAS_F16, HWNAS_TF32, HWNAS_F32, HWNAS_S8};
enum { N_GPUS = sizeof gpus / sizeof *gpus, N_PRECISIONS = sizeof precisions / sizeof *precisions };

static void ok(hwnas_status status, const char *what)
{
    if (status != HWNAS_OK)
        fail_msg("%s: %s", what, hwnas_last_error()->message);
}

static bool is_long(void)
{
    const char *given = getenv("HWNAS_LONG");
    return given && *given;
}

static uint64_t seed(void)
{
    const char *given = getenv("HWNAS_SEED");
    return given && *given ? strtoull(given, NULL, 10) : (uint64_t)(time(NULL) / SECONDS_A_DAY);
}

/* ---- What is wanted ---- */

/* As it is compiled: folded, and in s8 of bytes. */
static hwnas_graph *graph_of(const hwnas_arch *arch, const char *space, hwnas_precision precision)
{
    hwnas_cuda_device device = {.is_dry = true};
    hwnas_graph *raw, *graph, *bytes;
    int *origin;
    ok(hwnas_graph_build(&raw, arch, 1), space);
    ok(hwnas_graph_fold(&graph, raw), space);
    hwnas_graph_free(raw);
    if (precision != HWNAS_S8)
        return graph;
    ok(hwnas_cudnn_quantize(&bytes, &origin, &device, graph, NULL), space);
    hwnas_graph_free(graph);
    free(origin);
    return bytes;
}

static void cut_network(wanted_set *set, const hwnas_arch *arch, const char *space,
                        hwnas_precision precision)
{
    hwnas_graph *graph = graph_of(arch, space, precision);
    char *code = hwnas_arch_code(arch);
    ok(wanted_cut(set, graph, precision, space, code), space);
    hwnas_graph_free(graph);
    free(code);
}

/* `n` networks of a space, its first choices first; a fixed network is one. */
static void cut_space(wanted_set *set, const char *name, int n, hwnas_precision precision)
{
    hwnas_space *space;
    hwnas_rng rng = hwnas_rng_new(is_long() ? 7 : seed(), 1);
    ok(hwnas_graph_load_space(&space, name), name);
    for (int i = 0; i < n; i++) {
        hwnas_arch *arch = hwnas_arch_new(space);
        if (i)
            hwnas_arch_sample(arch, &rng);
        else
            hwnas_arch_settle(arch);
        cut_network(set, arch, name, precision);
        hwnas_arch_free(arch);
    }
    hwnas_space_free(space);
}

static int is_space(const struct dirent *entry)
{
    return hwnas_ends_with(entry->d_name, ".yaml");
}

/* The spaces in a folder of the source tree, in the same order everywhere, so that a seed is enough
 * to try the same again. */
static void cut_folder(wanted_set *set, const char *folder, int n, hwnas_precision precision)
{
    struct dirent **entries;
    const int n_entries = scandir(folder, &entries, is_space, alphasort);
    assert_true(n_entries > 0);
    for (int i = 0; i < n_entries; i++) {
        const int length = (int)strlen(entries[i]->d_name) - (int)strlen(".yaml");
        char *name = hwnas_printf("%.*s", length, entries[i]->d_name);
        cut_space(set, name, n, precision);
        free(name);
        free(entries[i]);
    }
    free(entries);
}

static void tell(const wanted_set *set, const char *what, hwnas_precision precision)
{
    print_message(
        "%s, %s: %zu networks; steps: %zu by plans of cuDNN's, %zu by its RNN, %zu by kernels "
        "of ours, %zu conversions; %zu plans wanted\n",
        what, hwnas_precision_name(precision), set->n_networks, set->n_engine, set->n_rnn,
        set->n_own, set->n_conversions, set->n);
}

static void cut_all(wanted_set *set, hwnas_precision precision)
{
    cut_folder(set, HWNAS_SOURCE_DIR "/search_spaces/zoo", 1, precision);
    tell(set, "the zoo", precision);
    cut_folder(set, HWNAS_SOURCE_DIR "/search_spaces", is_long() ? SAMPLES : FEW_SAMPLES,
               precision);
    tell(set, "and samples of each space", precision);
    assert_true(set->n_engine > set->n_networks && set->n > 0);
}

/* ---- Finalising ---- */

typedef struct outcome {
    size_t n_made, n_compiled, n_left;
    size_t n_refused;
    bool *is_refused; /* by number */
} outcome;

static outcome finalise(hwnas_cuda_device *device, const wanted_set *set, const int *order)
{
    const char *limit = getenv("HWNAS_SECONDS");
    const double end = hwnas_now() + (is_long() && limit ? atof(limit) : INFINITY);
    const size_t most = is_long() ? set->n : FEW_PLANS;
    outcome out = {.is_refused = hwnas_alloc(set->n * sizeof *out.is_refused)};
    size_t i = 0;
    for (; i < set->n && i < most && hwnas_now() < end; i++) {
        const hwnas_cudnn_plan *plan;
        const wanted *w = &set->all[order[i]];
        ok(hwnas_cudnn_plan_get(&plan, device, &w->o, false), w->signature);
        out.n_made += !plan->is_refused;
        out.n_compiled += !plan->is_refused &&
                          plan->behavior >> CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION & 1;
        out.n_refused += out.is_refused[order[i]] = plan->is_refused;
        if (plan->is_refused)
            print_message("refused by %s: %s: %s\n", device->gpu.name, w->signature, plan->why);
    }
    out.n_left = set->n - i;
    return out;
}

/* ---- Networks that want what was refused ---- */

static const wanted_set *cut_before;

/* What is known counts; what other networks want as well is taken to be there; what is new, because
 * something was refused, is finalised. */
static hwnas_status as_known(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    if (step->kind != &hwnas_cudnn_engine)
        return HWNAS_OK;
    char *signature = hwnas_cudnn_signature(step->state);
    const bool is_assumed = !hwnas_cudnn_plans_find(net->device->plans, signature) &&
                            wanted_has(cut_before, signature);
    free(signature);
    return is_assumed ? HWNAS_OK : step->kind->compile(step, net);
}

/* It is cut in another way, in which nothing is refused. */
static void cut_anew(hwnas_cuda_device *device, const wanter *w, hwnas_precision precision)
{
    hwnas_space *space;
    hwnas_arch *arch;
    hwnas_cudnn_net *net;
    ok(hwnas_graph_load_space(&space, w->space), w->space);
    ok(hwnas_arch_parse(&arch, space, w->code), w->space);
    hwnas_graph *graph = graph_of(arch, w->space, precision);
    ok(hwnas_cudnn_net_new(&net, device, graph, precision, as_known), w->code);
    assert_true(net->n_steps > 0);
    hwnas_cudnn_net_free(net);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

static size_t cut_all_anew(hwnas_cuda_device *device, const wanted_set *set, const outcome *o,
                           hwnas_precision precision)
{
    size_t n = 0;
    cut_before = set;
    for (size_t i = 0; i < set->n_networks && (is_long() || n < FEW_REFUSED); i++) {
        const wanter *w = &set->networks[i];
        bool is_refused = false;
        for (size_t k = 0; k < w->n; k++)
            is_refused |= o->is_refused[w->wants[k]];
        if (!is_refused)
            continue;
        cut_anew(device, w, precision);
        n++;
    }
    return n;
}

static void check_gpu(const char *gpu, const wanted_set *set, const int *order, size_t n_forms,
                      hwnas_precision precision)
{
    const double begin = hwnas_now();
    hwnas_cuda_device *device = dry_open(gpu);
    if (!device)
        return;
    outcome o = finalise(device, set, order);
    const size_t n_anew = o.n_refused ? cut_all_anew(device, set, &o, precision) : 0;
    print_message(
        "%s, %s: %zu plans of %zu forms wanted, %zu made (%zu with a kernel compiled), %zu "
        "refused, %zu not tried; %zu networks cut anew; %.1f s\n",
        device->gpu.name, hwnas_precision_name(precision), set->n, n_forms, o.n_made, o.n_compiled,
        o.n_refused, o.n_left, n_anew, hwnas_now() - begin);
    assert_true(o.n_made > 0);
    free(o.is_refused);
    hwnas_cuda_dry_ops.close(&device->base);
}

static void check_precision(hwnas_precision precision)
{
    wanted_set set = {0};
    cut_all(&set, precision);
    int *order = hwnas_alloc(set.n * sizeof *order);
    const size_t n_forms = wanted_order(order, &set, seed());
    for (int i = 0; i < N_GPUS; i++)
        check_gpu(gpus[i], &set, order, n_forms, precision);
    free(order);
    wanted_done(&set);
}

static void plans_of_networks(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed());
    if (!is_long())
        check_precision(precisions[seed() % N_PRECISIONS]);
    for (int i = 0; is_long() && i < N_PRECISIONS; i++)
        check_precision(precisions[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_of_networks)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
