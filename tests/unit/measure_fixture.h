/* measure_fixture.h: measurements on a scripted machine. */
#ifndef HWNAS_TESTS_MEASURE_FIXTURE_H
#define HWNAS_TESTS_MEASURE_FIXTURE_H

#include "base/rng.h"
#include "tests/unit/fake_machine.h"

static inline hwnas_measurement measure_on(fake_machine *m, hwnas_measure_options options)
{
    hwnas_measurement out;
    hwnas_graph *graph = make_graph();
    double start = m->clock;
    assert_int_equal(hwnas_measure_on(&out, &m->exec, graph, &options, &m->base), HWNAS_OK);
    hwnas_graph_free(graph);
    assert_true(out.n_samples >= (options.fewest > 0 ? (size_t)options.fewest : 6));
    assert_true(out.min <= out.p50_low && out.p50_low <= out.p50 && out.p50 <= out.p50_high);
    assert_true(out.run_seconds <= out.total_seconds);
    assert_true(out.total_seconds <= m->clock - start);
    assert_int_equal(out.is_unstable, hwnas_measurement_doubt(&out) != NULL);
    assert_int_equal(out.memory_bytes, 12345);
    assert_int_equal(m->n_watches, 1);
    return out;
}

static inline hwnas_measurement measure_script(double (*script)(fake_machine *m))
{
    fake_machine m = make_machine(script);
    return measure_on(&m, (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS);
}

static inline double constant(fake_machine *m)
{
    return m->n_runs ? 1e-3 : 0.25;
}

/* Three uniform ones: nearly normal, deviation 0.1. */
static inline double noise(fake_machine *m)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += hwnas_rng_double(&m->rng);
    return 0.2 * (sum - 1.5);
}

static inline double noisy(fake_machine *m)
{
    return 1e-3 * (1 + noise(m));
}

#endif
