/* How many networks of a space can be looked at in a second, on one core: drawn at random, built as
 * a graph with all shapes and counted; and how many architectures can be encoded for a predictor.
 * usage: benchmarks/space [--quick] [SPACE] */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benchmarks/figure.h"
#include "graph/elaborate.h"
#include "predict/features.h"

enum { POOL = 1000 };

/* Seconds that this process had a core: other work on the machine does not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct encoder {
    hwnas_feature_encoding *encoding;
    hwnas_features *features;
    double *row;
    float *inputs;
    double *terms;
} encoder;

static void must(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "%s\n", hwnas_last_error()->message);
    exit(2);
}

static void sample(hwnas_arch *arch, hwnas_rng *rng)
{
    if (!hwnas_arch_sample(arch, rng))
        must(hwnas_space_none_found(arch->space));
}

static void draw(hwnas_arch *arch, hwnas_rng *rng, encoder *to)
{
    (void)to;
    sample(arch, rng);
}

/* The whole way, as a search goes it for each architecture that it looks at. */
static void build(hwnas_arch *arch, hwnas_rng *rng, encoder *to)
{
    hwnas_graph *graph;
    hwnas_costs costs;
    (void)to;
    sample(arch, rng);
    must(hwnas_graph_build(&graph, arch, 1));
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_free(graph);
}

static void digest(hwnas_arch *arch, hwnas_rng *rng, encoder *to)
{
    hwnas_graph *graph;
    (void)to;
    sample(arch, rng);
    must(hwnas_graph_build(&graph, arch, 1));
    hwnas_graph_digest(graph);
    hwnas_graph_free(graph);
}

static void encode_inputs(hwnas_arch *arch, hwnas_rng *rng, encoder *to)
{
    (void)rng;
    must(hwnas_feature_encoding_row(to->encoding, to->row, arch, false));
    hwnas_features_inputs(to->features, to->inputs, to->row);
}

static void encode_terms(hwnas_arch *arch, hwnas_rng *rng, encoder *to)
{
    (void)rng;
    must(hwnas_feature_encoding_row(to->encoding, to->row, arch, false));
    hwnas_features_terms(to->features, to->terms, to->row);
}

static const struct {
    const char *name;
    void (*work)(hwnas_arch *arch, hwnas_rng *rng, encoder *to);
    const char *unit;
    double goal; /* 0: a part of the others, shown beside them */
} figures[] = {
    {"sampling alone", draw, "architectures/s", 0},
    {"with a digest instead of costs", digest, "networks/s", 0},
    {"space_build", build, "networks/s", 20000},
    {"space_encode_trees", encode_inputs, "architectures/s", 100000},
    {"space_encode_ridge", encode_terms, "architectures/s", 100000},
};

int main(int argc, char **argv)
{
    const char *name = "ofa_mobilenet_v3";
    double seconds = 10;
    hwnas_space *space;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            seconds = 2;
        else
            name = argv[i];
    must(hwnas_graph_load_space(&space, name));
    hwnas_rng rng = hwnas_rng_new(1, 0);
    hwnas_arch *pool[POOL];
    for (int i = 0; i < POOL; i++) {
        pool[i] = hwnas_arch_new(space);
        sample(pool[i], &rng);
    }
    encoder to = {.encoding = hwnas_feature_encoding_new(space, NULL, 0)};
    to.features = hwnas_features_new(to.encoding, false);
    to.row = hwnas_alloc(to.encoding->n_columns * sizeof *to.row);
    to.inputs = hwnas_alloc(to.features->n_inputs * sizeof *to.inputs);
    to.terms = hwnas_alloc(to.features->n_terms * sizeof *to.terms);
    printf("%s: %zu genes, %zu inputs of trees, %zu terms of the ridge\n", space->name,
           space->n_genes, to.features->n_inputs, to.features->n_terms);
    for (size_t f = 0; f < sizeof figures / sizeof *figures; f++) {
        const double begin = now();
        double elapsed = 0, n = 0;
        for (; elapsed < seconds; elapsed = now() - begin, n += POOL)
            for (int i = 0; i < POOL; i++)
                figures[f].work(pool[i], &rng, &to);
        if (figures[f].goal > 0)
            print_figure(figures[f].name, n / elapsed, figures[f].unit, figures[f].goal);
        else
            printf("%s %.0f %s\n", figures[f].name, n / elapsed, figures[f].unit);
    }
    free(to.inputs);
    free(to.terms);
    free(to.row);
    hwnas_features_free(to.features);
    hwnas_feature_encoding_free(to.encoding);
    for (int i = 0; i < POOL; i++)
        hwnas_arch_free(pool[i]);
    hwnas_space_free(space);
    return 0;
}
