/* transfer_runs.c: each device of a table of published latencies left out in turn, and carried over
 * from the others by few measurements of its own, as `hwnas calibrate --from` does.
 *
 *     transfer_runs SPACE TABLE.csv NETWORKS DRAWS [COLUMN...]
 *
 * COLUMN: the devices to leave out; without any, all whose names end in _ms. Prints a line of CSV
 * for each device and draw: device, seed, Spearman's correlation with the latencies that were not
 * measured, and the share of these in the 90 % interval. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/elaborate.h"
#include "latency/transfer.h"
#include "space/table.h"

typedef struct runs {
    hwnas_table *table;
    size_t n_columns, columns[64];
    double *logs; /* by row, then column */
    double *facts;
    uint16_t *genes;
} runs;

static void die(const char *what)
{
    fprintf(stderr, "transfer_runs: %s\n", what ? what : hwnas_last_error()->message);
    exit(1);
}

static void need(hwnas_status status)
{
    if (status != HWNAS_OK)
        die(NULL);
}

static void read_table(runs *r, const char *space_name, const char *path)
{
    hwnas_space *space;
    need(hwnas_graph_load_space(&space, space_name));
    need(hwnas_table_load(&r->table, space, path));
    const hwnas_csv *csv = r->table->csv;
    const size_t n = r->table->n, n_genes = space->n_genes;
    for (size_t c = 0; c < csv->n_columns && r->n_columns < 64; c++)
        if (!fnmatch("*_ms", csv->names[c], 0))
            r->columns[r->n_columns++] = c;
    r->logs = hwnas_alloc(n * r->n_columns * sizeof *r->logs);
    r->facts = hwnas_alloc(n * HWNAS_TRANSFER_FACTS * sizeof *r->facts);
    r->genes = hwnas_alloc(n * n_genes * sizeof *r->genes);
    for (size_t row = 0; row < n; row++) {
        hwnas_graph *graph;
        need(hwnas_graph_build(&graph, r->table->archs[row], 1));
        hwnas_transfer_facts(r->facts + row * HWNAS_TRANSFER_FACTS, graph);
        hwnas_graph_free(graph);
        memcpy(r->genes + row * n_genes, r->table->archs[row]->genes, n_genes * sizeof *r->genes);
        for (size_t c = 0; c < r->n_columns; c++) {
            double *value = &r->logs[row * r->n_columns + c];
            need(hwnas_csv_number(value, csv, row, r->columns[c]));
            *value = log(1e-3 * *value);
        }
    }
}

/* The table without a column. */
static hwnas_transfer *leave_out(const runs *r, size_t column)
{
    const size_t n = r->table->n, n_left = r->n_columns - 1;
    double *logs = hwnas_alloc(n * n_left * sizeof *logs);
    for (size_t row = 0; row < n; row++)
        for (size_t c = 0; c < n_left; c++)
            logs[row * n_left + c] = r->logs[row * r->n_columns + c + (c >= column)];
    hwnas_transfer *t = hwnas_transfer_new(n, n_left, logs, HWNAS_TRANSFER_FACTS, r->facts,
                                           r->table->archs[0]->space->n_genes, r->genes);
    free(logs);
    return t;
}

static int by_value(const void *a, const void *b)
{
    const double *x = *(const double *const *)a, *y = *(const double *const *)b;
    return (*x > *y) - (*x < *y);
}

/* From 0; equal values share the mean of theirs. */
static void rank(double *out, const double *values, size_t n)
{
    const double **order = hwnas_alloc(n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = &values[i];
    qsort(order, n, sizeof *order, by_value);
    for (size_t first = 0, last; first < n; first = last) {
        for (last = first; last < n && *order[last] == *order[first]; last++)
            ;
        for (size_t i = first; i < last; i++)
            out[order[i] - values] = (double)(first + last - 1) / 2;
    }
    free(order);
}

/* Spearman's: Pearson's of the ranks. */
static double correlate(double *a, double *b, size_t n)
{
    double *x = hwnas_alloc(n * sizeof *x), *y = hwnas_alloc(n * sizeof *y);
    double xx = 0, yy = 0, xy = 0;
    const double mean = (double)(n - 1) / 2;
    rank(x, a, n);
    rank(y, b, n);
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mean) * (x[i] - mean);
        yy += (y[i] - mean) * (y[i] - mean);
        xy += (x[i] - mean) * (y[i] - mean);
    }
    free(x);
    free(y);
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

static void carry_over(const runs *r, hwnas_transfer *t, size_t column, size_t n_networks,
                       uint64_t seed)
{
    const size_t n = r->table->n;
    size_t rows[HWNAS_TRANSFER_MOST], left = 0, inside = 0;
    double seconds[HWNAS_TRANSFER_MOST];
    double *estimates = hwnas_alloc(n * sizeof *estimates), *truth = hwnas_alloc(n * sizeof *truth);
    hwnas_rng rng = hwnas_rng_new(seed, 0x7472616e73); /* as hwnas_transfer_table() draws */
    n_networks = hwnas_transfer_choose(rows, t, n_networks, &rng);
    for (size_t i = 0; i < n_networks; i++)
        seconds[i] = exp(r->logs[rows[i] * r->n_columns + column]);
    need(hwnas_transfer_fit(t, n_networks, rows, seconds));
    for (size_t row = 0; row < n; row++) {
        const hwnas_transferred e = hwnas_transfer_estimate(t, row);
        bool is_measured = false;
        for (size_t i = 0; i < n_networks; i++)
            is_measured |= rows[i] == row;
        if (is_measured)
            continue;
        estimates[left] = e.seconds;
        truth[left] = exp(r->logs[row * r->n_columns + column]);
        inside += e.low <= truth[left] && truth[left] <= e.high;
        left++;
    }
    printf("%s,%llu,%.5f,%.5f\n", r->table->csv->names[r->columns[column]],
           (unsigned long long)seed, correlate(estimates, truth, left),
           (double)inside / (double)left);
    fflush(stdout);
    free(estimates);
    free(truth);
}

int main(int argc, char **argv)
{
    runs r = {0};
    if (argc < 5)
        die("usage: transfer_runs SPACE TABLE.csv NETWORKS DRAWS [COLUMN...]");
    const size_t n_networks = strtoul(argv[3], NULL, 10), n_draws = strtoul(argv[4], NULL, 10);
    if (n_networks < HWNAS_TRANSFER_LEAST || n_networks > HWNAS_TRANSFER_MOST)
        die("that many networks cannot be measured");
    read_table(&r, argv[1], argv[2]);
    puts("device,seed,spearman,coverage");
    for (size_t c = 0; c < r.n_columns; c++) {
        bool is_wanted = argc == 5;
        for (int i = 5; i < argc; i++)
            is_wanted |= !strcmp(argv[i], r.table->csv->names[r.columns[c]]);
        if (!is_wanted)
            continue;
        hwnas_transfer *t = leave_out(&r, c);
        for (uint64_t seed = 0; seed < n_draws; seed++)
            carry_over(&r, t, c, n_networks, seed);
        hwnas_transfer_free(t);
    }
    return 0;
}
