/* test_device_caches.c: `cpu` against `ref` on a machine whose CPUID tells nothing of its caches,
 * as some virtual machines do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "device/onednn/caches.h"
#include "tests/unit/device_fixture.h"

/* What hides: the sizes, or also how many cores share a cache. */
typedef enum hidden { SIZES = 1, SHARING = 2 } hidden;

static bool hide(unsigned what)
{
    hwnas_onednn_caches *caches = hwnas_onednn_find_caches();
    if (caches && what & SIZES)
        memset(caches->bytes, 0, sizeof caches->bytes);
    if (caches && what & SHARING)
        memset(caches->sharing, 0, sizeof caches->sharing);
    return caches != NULL;
}

/* oneDNN blocks them by the sizes of caches. A product whose width is no multiple of a vector is
 * wrong first. */
static hwnas_graph *some_layers(void)
{
    static const int64_t image[4] = {1, 32, 28, 28}, rows[4] = {64, 784};
    hwnas_graph *graph = hwnas_graph_new("layers", 1);
    int x = add(graph, "conv", "out=64 kernel=3 pad=1", add_input(graph, image), -1);
    x = add(graph, "conv", "out=64 kernel=3 pad=1 groups=64", x, -1);
    x = add(graph, "conv", "out=256", x, -1);
    hwnas_graph_add_output(graph, x);
    hwnas_graph_add_output(graph, add(graph, "linear", "out=100", add_input(graph, rows), -1));
    return graph;
}

static void agrees_with_ref(unsigned what)
{
    if (!hide(what))
        skip();
    hwnas_device *cpu = open_device("cpu", 1), *ref = open_device("ref", 1);
    hwnas_graph *graph = some_layers();
    compare("layers on hidden caches", cpu, graph, ref, graph, 7);
    hwnas_graph_free(graph);
    hwnas_device_close(ref);
    hwnas_device_close(cpu);
}

static void sizes_that_are_not_told_change_no_result(void **state)
{
    (void)state;
    agrees_with_ref(SIZES);
}

static void caches_that_nobody_shares_change_no_result(void **state)
{
    (void)state;
    agrees_with_ref(SIZES | SHARING);
}

/* Told sizes are oneDNN's business. */
static void sizes_that_are_told_stay(void **state)
{
    (void)state;
    hwnas_onednn_caches *caches = hwnas_onednn_find_caches();
    if (!caches)
        skip();
    const hwnas_onednn_caches told = {{48 * 1024, 2 << 20, 30 << 20}, {1, 1, 8}, 3};
    *caches = told;
    hwnas_device_close(open_device("cpu", 1));
    assert_memory_equal(caches, &told, sizeof told);
}

static void oneDNNs_record_is_found(void **state)
{
    (void)state;
#if defined __x86_64__
    const hwnas_onednn_caches *caches = hwnas_onednn_find_caches();
    assert_non_null(caches);
    assert_in_range(caches->levels, 1, 4);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oneDNNs_record_is_found),
        cmocka_unit_test(sizes_that_are_not_told_change_no_result),
        cmocka_unit_test(caches_that_nobody_shares_change_no_result),
        cmocka_unit_test(sizes_that_are_told_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
