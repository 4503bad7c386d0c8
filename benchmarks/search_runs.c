/* Runs a strategy on published tables, one line a seed: its number, the seconds that the strategy
 * took in all, and the codes that it proposed, in order. benchmarks/search calls it and counts.
 *
 * usage: search_runs SPACE TABLE.csv STRATEGY FIRST_SEED N_SEEDS TRIALS OBJECTIVE... [--limit
 * COLUMN VALUE] [--noise PART] [--told]
 *
 * An objective is a column, to be minimised, or -COLUMN, to be maximised. The table has a column
 * `arch` or `ops` with the code; where it has a part of the space, that part is searched. A seed
 * ends before TRIALS when the space is exhausted or, with one objective and no noise, when its
 * optimum within the limit was found. With noise the strategy is told objectives with a normal
 * error of that part of their standard deviation. With --told a code is followed by ":VALUE", the
 * first objective as the strategy was told it. */
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/csv.h"
#include "graph/elaborate.h"
#include "search/search.h"
#include "space/among.h"
#include "space/table.h"

typedef struct goal {
    double sign, *values; /* by row */
} goal;

typedef struct bench {
    hwnas_space *space;
    const hwnas_space *walked; /* what the table has of it */
    hwnas_csv *csv;
    size_t code_column, n_goals;
    goal goals[HWNAS_MAX_OBJECTIVES];
    goal limit; /* no values: none */
    double limit_value;
    bool with_told;
    double noise; /* as a part of ... */
    double deviations[HWNAS_MAX_OBJECTIVES];
} bench;

static void check(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "search_runs: %s\n", hwnas_last_error()->message);
    exit(1);
}

static goal read_goal(const bench *b, const char *name)
{
    size_t column;
    goal out = {.sign = *name == '-' ? -1 : 1,
                .values = hwnas_alloc(b->csv->n_rows * sizeof *out.values)};
    check(hwnas_csv_require(&column, b->csv, name + (*name == '-')));
    for (size_t row = 0; row < b->csv->n_rows; row++) {
        check(hwnas_csv_number(&out.values[row], b->csv, row, column));
        out.values[row] *= out.sign;
    }
    return out;
}

static void index_rows(const bench *b)
{
    hcreate(2 * b->csv->n_rows);
    for (size_t row = 0; row < b->csv->n_rows; row++)
        hsearch((ENTRY){.key = (char *)hwnas_csv_cell(b->csv, row, b->code_column),
                        .data = (void *)row},
                ENTER);
}

static size_t row_of(const char *code)
{
    ENTRY *found = hsearch((ENTRY){.key = (char *)code}, FIND);
    if (!found) {
        fprintf(stderr, "search_runs: the table has no '%s'\n", code);
        exit(1);
    }
    return (size_t)found->data;
}

static hwnas_score score_of(const bench *b, size_t row)
{
    hwnas_score score = {0};
    for (size_t k = 0; k < b->n_goals; k++)
        score.objectives[k] = b->goals[k].values[row];
    if (b->limit.values) {
        score.n_margins = 1;
        score.margins[0] = b->limit.values[row] / b->limit_value - 1;
        score.violation = fmax(0, score.margins[0]);
    }
    return score;
}

static double deviation(const bench *b, size_t k)
{
    const double n = (double)b->csv->n_rows;
    double sum = 0, squares = 0;
    for (size_t row = 0; row < b->csv->n_rows; row++) {
        sum += b->goals[k].values[row];
        squares += b->goals[k].values[row] * b->goals[k].values[row];
    }
    return sqrt(fmax(0, squares / n - sum / n * sum / n));
}

/* Box and Muller. */
static double normal(hwnas_rng *rng)
{
    const double radius = sqrt(-2 * log(1 - hwnas_rng_double(rng)));
    return radius * cos(2 * M_PI * hwnas_rng_double(rng));
}

static void add_noise(hwnas_score *score, const bench *b, hwnas_rng *rng)
{
    for (size_t k = 0; k < b->n_goals && b->noise > 0; k++)
        score->objectives[k] += b->noise * b->deviations[k] * normal(rng);
}

static void run(const bench *b, const char *name, uint64_t seed, uint64_t n_trials)
{
    hwnas_strategy_config config = {
        .space = b->walked, .n_objectives = (int)b->n_goals, .seed = seed, .max_trials = n_trials};
    hwnas_strategy *strategy;
    hwnas_arch *arch = hwnas_arch_new(b->walked);
    double seconds = 0, optimum = INFINITY;
    bool is_found = false;
    hwnas_rng noise = hwnas_rng_new(seed, 0x6e6f697365); /* the stream "noise" */
    char **codes = hwnas_alloc(n_trials * sizeof *codes);
    double *told = hwnas_alloc(n_trials * sizeof *told);
    uint64_t trial = 0;
    for (size_t row = 0; row < b->csv->n_rows; row++) {
        hwnas_score score = score_of(b, row);
        if (score.violation <= 0)
            optimum = fmin(optimum, score.objectives[0]);
    }
    check(hwnas_strategy_new(&strategy, name, &config));
    while (trial < n_trials && !is_found) {
        double start = hwnas_now();
        hwnas_status status = strategy->ops->ask(strategy, trial, arch);
        if (status == HWNAS_E_EXHAUSTED)
            break;
        check(status);
        codes[trial] = hwnas_arch_code(arch);
        hwnas_score score = score_of(b, row_of(codes[trial]));
        is_found = b->n_goals == 1 && b->noise == 0 && score.violation <= 0 &&
                   score.objectives[0] == optimum;
        add_noise(&score, b, &noise);
        told[trial] = score.objectives[0];
        check(strategy->ops->tell(strategy, trial++, arch, &score));
        seconds += hwnas_now() - start;
    }
    printf("%llu %.3f", (unsigned long long)seed, seconds);
    for (uint64_t i = 0; i < trial; i++) {
        printf(" %s", codes[i]);
        if (b->with_told)
            printf(":%.6g", told[i]);
        free(codes[i]);
    }
    printf("\n");
    fflush(stdout);
    free(codes);
    free(told);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
}

static void find_part(bench *b, const char *path)
{
    hwnas_table *table;
    char *named = hwnas_printf("%s?code=%s", path, b->csv->names[b->code_column]);
    check(hwnas_table_load(&table, b->space, named));
    check(
        hwnas_space_among(&b->walked, b->space, (const hwnas_arch *const *)table->archs, table->n));
    hwnas_table_free(table);
    free(named);
}

int main(int argc, char **argv)
{
    bench b = {0};
    if (argc < 8) {
        fprintf(stderr, "usage: search_runs SPACE TABLE.csv STRATEGY FIRST_SEED N_SEEDS TRIALS "
                        "OBJECTIVE... [--limit COLUMN VALUE] [--noise PART] [--told]\n");
        return 2;
    }
    check(hwnas_graph_load_space(&b.space, argv[1]));
    check(hwnas_csv_load(&b.csv, argv[2]));
    long column = hwnas_csv_column(b.csv, "arch");
    b.code_column = (size_t)column;
    if (column < 0)
        check(hwnas_csv_require(&b.code_column, b.csv, "ops"));
    index_rows(&b);
    find_part(&b, argv[2]);
    for (int i = 7; i < argc; i++) {
        if (!strcmp(argv[i], "--limit") && i + 2 < argc) {
            b.limit = read_goal(&b, argv[i + 1]);
            b.limit_value = atof(argv[i + 2]);
            i += 2;
        } else if (!strcmp(argv[i], "--noise") && i + 1 < argc) {
            b.noise = atof(argv[++i]);
        } else if (!strcmp(argv[i], "--told")) {
            b.with_told = true;
        } else if (b.n_goals < HWNAS_MAX_OBJECTIVES)
            b.goals[b.n_goals++] = read_goal(&b, argv[i]);
    }
    for (size_t k = 0; k < b.n_goals; k++)
        b.deviations[k] = deviation(&b, k);
    uint64_t first = strtoull(argv[4], NULL, 10), n = strtoull(argv[5], NULL, 10);
    for (uint64_t seed = first; seed < first + n; seed++)
        run(&b, argv[3], seed, strtoull(argv[6], NULL, 10));
    for (size_t k = 0; k < b.n_goals; k++)
        free(b.goals[k].values);
    free(b.limit.values);
    hdestroy();
    hwnas_csv_free(b.csv);
    hwnas_space_free(b.space);
    return 0;
}
