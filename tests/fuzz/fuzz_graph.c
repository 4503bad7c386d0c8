/* Any bytes as the choices of random_graph.c: the graph that they make is the same on `cpu`, in
 * each precision that it has, and on `ref`. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fuzz.h"
#include "tests/fuzz/random_graph.h"

/* Prints the graph as small as it could be made. */
static void show(random_recipe *recipe, hwnas_device *cpu, hwnas_device *ref,
                 hwnas_precision precision)
{
    random_recipe_shrink(recipe, cpu, ref, precision);
    fprintf(stderr, "# in %s:\n", hwnas_precision_name(precision));
    random_recipe_print(stderr, recipe);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { SEED = 1 };
    static const hwnas_device_options options = {.threads = 1};
    static hwnas_device *cpu, *ref; /* open as long as the program runs */
    hwnas_device_info info;
    random_source source = {.bytes = data, .n_bytes = size};
    if (!cpu) {
        FUZZ_CHECK(hwnas_device_open(&cpu, "cpu", &options) == HWNAS_OK);
        FUZZ_CHECK(hwnas_device_open(&ref, "ref", &options) == HWNAS_OK);
    }
    if (!size)
        return 0;
    cpu->ops->describe(cpu, &info);
    random_recipe *recipe = hwnas_alloc(sizeof *recipe);
    random_recipe_make(recipe, &source, SEED);
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++) {
        if (!((info.native | info.emulated) & 1U << p))
            continue;
        const random_verdict verdict = random_recipe_judge(recipe, cpu, ref, (hwnas_precision)p);
        if (random_verdict_is_bad(&verdict))
            show(recipe, cpu, ref, (hwnas_precision)p);
        FUZZ_CHECK(!random_verdict_is_bad(&verdict));
    }
    free(recipe);
    return 0;
}
