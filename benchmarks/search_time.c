/* The processor time that a strategy takes for a trial, its ask and its tell, when it has been told
 * a number of trials before: mean of N_TIMED trials in a row.
 *
 * usage: search_time SPACE STRATEGY PAST... */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graph/elaborate.h"
#include "search/search.h"

enum { N_TIMED = 100, N_WARM = 100 };

static void check(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "search_time: %s\n", hwnas_last_error()->message);
    exit(1);
}

/* Made up, and cheap: it falls with the MACs, and each gene has a part in it. */
static hwnas_score score_of(const hwnas_arch *arch)
{
    hwnas_graph *graph;
    hwnas_costs costs;
    check(hwnas_graph_build(&graph, arch, 1));
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_free(graph);
    double error = 60 - 2 * log((double)costs.macs);
    for (size_t g = 0; g < arch->space->n_genes; g++)
        error += 0.1 * sin((double)(arch->genes[g] + g * g));
    return (hwnas_score){.objectives = {-100 + error, (double)costs.macs}};
}

/* Of a strategy whose trials are evaluated in several ways, how this one was. */
static int rung_of(const hwnas_strategy *strategy, uint64_t trial)
{
    return strategy->ops->rung ? strategy->ops->rung(strategy, trial) : 0;
}

static double seconds_for(const hwnas_space *space, const char *name, uint64_t past)
{
    hwnas_strategy_config config = {.space = space, .n_objectives = 2, .seed = 1, .n_rungs = 3};
    hwnas_strategy *strategy;
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(1, 1);
    for (int i = 0; hwnas_strategies[i]; i++) /* those that have one only do it for the first */
        if (!strcmp(hwnas_strategies[i]->name, name) && hwnas_strategies[i]->max_objectives)
            config.n_objectives = 1;
    check(hwnas_strategy_new(&strategy, name, &config));
    for (uint64_t trial = 0; trial < past; trial++) {
        if (strategy->ops->rung)
            check(strategy->ops->ask(strategy, trial, arch));
        else
            hwnas_arch_sample(arch, &rng);
        hwnas_score score = score_of(arch);
        score.rung = rung_of(strategy, trial);
        check(strategy->ops->tell(strategy, trial, arch, &score));
    }
    clock_t taken = 0;
    for (uint64_t i = 0; i < N_WARM + N_TIMED; i++) {
        uint64_t trial = past + i;
        if (i == N_WARM)
            taken = 0;
        clock_t start = clock();
        check(strategy->ops->ask(strategy, trial, arch));
        taken += clock() - start;
        hwnas_score score = score_of(arch);
        score.rung = rung_of(strategy, trial);
        start = clock();
        check(strategy->ops->tell(strategy, trial, arch, &score));
        taken += clock() - start;
    }
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
    return (double)taken / CLOCKS_PER_SEC / N_TIMED;
}

int main(int argc, char **argv)
{
    hwnas_space *space;
    if (argc < 4) {
        fprintf(stderr, "usage: search_time SPACE STRATEGY PAST...\n");
        return 2;
    }
    check(hwnas_graph_load_space(&space, argv[1]));
    for (int i = 3; i < argc; i++) {
        double seconds = seconds_for(space, argv[2], strtoull(argv[i], NULL, 10));
        printf("%s %.3f\n", argv[i], 1e3 * seconds);
        fflush(stdout);
    }
    hwnas_space_free(space);
    return 0;
}
