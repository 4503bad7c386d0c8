/* test_space_among.c: spaces of which only listed architectures count: what <hwnas/space.h> makes of
 * made-up lists, against walks of the list; and every strategy on every table that holds a part of a
 * space that ships. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graph/elaborate.h"
#include "search/neighbours.h"
#include "search/search.h"
#include "space/among.h"
#include "space/hold.h"
#include "space/repair.h"
#include "space/table.h"
#include "tests/unit/space_fixture.h"

enum { MOST = 64 };

/* ---- Made-up lists ---- */

typedef struct list {
    hwnas_space *space;
    const hwnas_space *few;
    size_t n; /* distinct */
    hwnas_arch *archs[MOST];
} list;

static size_t place_of(const list *l, const hwnas_arch *arch)
{
    size_t i = 0;
    while (i < l->n && memcmp(l->archs[i]->genes, arch->genes,
                              l->space->n_genes * sizeof *arch->genes) != 0)
        i++;
    return i;
}

/* With a condition and a constraint in every other one. */
static void open_list(list *out, hwnas_rng *rng, bool has_rules)
{
    static const char with[] =
        "hwnas: 1\nname: made\ninput: {image: [3, 8, 8]}\nchoices:\n  n: {values: [2, 3, 4]}\n"
        "  w: {each_of: 4, values: [8, 16, 24], when: i < n}\n  z: {each_of: 2, values: [0, 1, 2]}\n"
        "constraints:\n  - n + z[0] < 6\nnetwork:\n  - relu\n  - let: {used: [n, w, z]}\n";
    static const char without[] =
        "hwnas: 1\nname: made\ninput: {image: [3, 8, 8]}\nchoices:\n"
        "  w: {each_of: 6, values: [1, 2, 3, 4]}\nnetwork:\n  - relu\n  - let: {used: [w]}\n";
    const char *text = has_rules ? with : without;
    *out = (list){.space = NULL};
    assert_int_equal(hwnas_space_parse(&out->space, "made.yaml", text, strlen(text), NULL),
                     HWNAS_OK);
    const size_t n_given = 2 + hwnas_rng_below(rng, MOST - 2);
    hwnas_arch *given[MOST];
    for (size_t i = 0; i < n_given; i++) { /* repeats may be among them */
        given[i] = hwnas_arch_new(out->space);
        assert_true(hwnas_arch_sample(given[i], rng));
        if (place_of(out, given[i]) == out->n)
            out->archs[out->n++] = hwnas_arch_copy(given[i]);
    }
    assert_int_equal(hwnas_space_among(&out->few, out->space, (const hwnas_arch *const *)given,
                                       n_given),
                     HWNAS_OK);
    for (size_t i = 0; i < n_given; i++)
        hwnas_arch_free(given[i]);
}

static void close_list(list *l)
{
    for (size_t i = 0; i < l->n; i++)
        hwnas_arch_free(l->archs[i]);
    hwnas_space_free(l->space);
}

static size_t count_others(const hwnas_arch *a, const hwnas_arch *b)
{
    size_t n = 0;
    for (size_t g = 0; g < a->space->n_genes; g++)
        n += a->genes[g] != b->genes[g];
    return n;
}

static void check_walk(const list *l)
{
    bool is_seen[MOST] = {false}, is_exact = false;
    size_t n = 0;
    hwnas_arch *arch = hwnas_arch_first(l->few);
    do {
        const size_t i = place_of(l, arch);
        assert_true(i < l->n && !is_seen[i]);
        is_seen[i] = true;
        n++;
    } while (hwnas_arch_next(arch));
    assert_int_equal(n, l->n);
    hwnas_arch_free(arch);
    char *count = hwnas_space_count(l->few, &is_exact);
    assert_true(is_exact && strtoul(count, NULL, 10) == l->n);
    assert_int_equal(hwnas_space_count_up_to(l->few, 1000), l->n);
    free(count);
}

/* Each value of each gene leads to the nearest architecture that has it, and all neighbours are of
 * the list. */
static void check_near(const list *l, hwnas_rng *rng)
{
    hwnas_arch *arch = hwnas_arch_new(l->few), *found = hwnas_arch_new(l->few);
    hwnas_neighbours neighbours;
    assert_true(hwnas_arch_sample(arch, rng));
    hwnas_repair *repair = hwnas_repair_new(arch);
    for (size_t g = 0; g < l->few->n_genes; g++)
        for (size_t v = 0; v < l->few->genes[g].n_values; v++) {
            size_t fewest = SIZE_MAX;
            for (size_t i = 0; i < l->n; i++)
                if (l->archs[i]->genes[g] == v && count_others(l->archs[i], arch) < fewest)
                    fewest = count_others(l->archs[i], arch);
            assert_int_equal(hwnas_repair_find(found, repair, g, v), fewest != SIZE_MAX);
            if (fewest == SIZE_MAX)
                continue;
            assert_true(found->genes[g] == v && place_of(l, found) < l->n);
            assert_int_equal(count_others(found, arch), fewest);
        }
    hwnas_neighbours_of(&neighbours, arch);
    for (size_t i = 0; i < neighbours.n; i++) {
        assert_true(place_of(l, neighbours.archs[i]) < l->n);
        assert_false(hwnas_arch_equal(neighbours.archs[i], arch));
    }
    assert_true(neighbours.n > 0 || l->n == 1);
    hwnas_neighbours_done(&neighbours);
    hwnas_repair_free(repair);
    hwnas_arch_free(arch);
    hwnas_arch_free(found);
}

static void check_variation(const list *l, hwnas_rng *rng)
{
    hwnas_arch *a = hwnas_arch_new(l->few), *b = hwnas_arch_new(l->few),
               *c = hwnas_arch_new(l->few);
    size_t n_drawn[MOST] = {0};
    for (size_t i = 0; i < 100 * l->n; i++) {
        assert_true(i % 2 ? hwnas_arch_sample(a, rng) : hwnas_arch_sample_evenly(a, rng));
        assert_true(place_of(l, a) < l->n);
        n_drawn[place_of(l, a)]++;
    }
    for (size_t i = 0; i < l->n; i++) /* 100 are expected, and 10 their deviation */
        assert_in_range(n_drawn[i], 40, 160);
    for (int i = 0; i < 50; i++) {
        hwnas_arch_sample(a, rng);
        hwnas_arch_sample(b, rng);
        hwnas_arch_cross(c, a, b, rng);
        assert_true(place_of(l, c) < l->n);
        hwnas_arch_assign(c, a);
        hwnas_arch_mutate(c, 0, rng);
        assert_true(place_of(l, c) < l->n);
        assert_true(!hwnas_arch_equal(c, a) || l->n == 1);
    }
    hwnas_arch_free(a);
    hwnas_arch_free(b);
    hwnas_arch_free(c);
}

static void lists_are_walked_drawn_and_varied(void **state)
{
    (void)state;
    const uint64_t seed = (uint64_t)time(NULL) / 86400;
    print_message("# seed %llu\n", (unsigned long long)seed);
    hwnas_rng rng = hwnas_rng_new(seed, 0);
    for (int i = 0; i < 40; i++) {
        list l;
        open_list(&l, &rng, i % 2);
        check_walk(&l);
        check_near(&l, &rng);
        check_variation(&l, &rng);
        close_list(&l);
    }
}

static void a_code_outside_is_refused(void **state)
{
    (void)state;
    list l;
    hwnas_rng rng = hwnas_rng_new(3, 0);
    open_list(&l, &rng, false);
    hwnas_arch *arch = hwnas_arch_first(l.space), *parsed = NULL;
    size_t n_refused = 0, n_all = 0;
    do {
        char *code = hwnas_arch_code(arch);
        const bool is_inside = place_of(&l, arch) < l.n;
        const hwnas_status status = hwnas_arch_parse(&parsed, l.few, code);
        assert_int_equal(status, is_inside ? HWNAS_OK : HWNAS_E_INPUT);
        if (status == HWNAS_OK)
            hwnas_arch_free(parsed);
        n_refused += !is_inside;
        n_all++;
        free(code);
    } while (hwnas_arch_next(arch));
    assert_int_equal(n_all - n_refused, l.n);
    assert_non_null(strstr(hwnas_last_error()->message, "none of those that are searched"));
    hwnas_arch_free(arch);
    close_list(&l);
}

/* What is whole stays as it is; what breaks the constraints is left out; nothing is refused. */
static void constraints_hold_and_nothing_is_refused(void **state)
{
    (void)state;
    list l;
    hwnas_rng rng = hwnas_rng_new(5, 0);
    const hwnas_space *held, *few;
    open_list(&l, &rng, true);
    const hwnas_arch *all[2000];
    size_t n = 0, n_two = 0;
    hwnas_arch *arch = hwnas_arch_first(l.space);
    do {
        all[n++] = hwnas_arch_copy(arch);
    } while (hwnas_arch_next(arch));
    hwnas_arch_free(arch);
    assert_int_equal(hwnas_space_among(&few, l.space, all, n), HWNAS_OK);
    assert_ptr_equal(few, l.space);
    for (size_t i = 0; i < n; i++)
        n_two += all[i]->genes[0] == 0;
    bool two[] = {true, false, false}, any[] = {true, true, true};
    const bool *kept[7] = {two, any, any, any, any, any, any};
    assert_int_equal(hwnas_space_hold(&held, l.space, kept), HWNAS_OK);
    assert_int_equal(hwnas_space_among(&few, held, all, n - 1), HWNAS_OK);
    assert_true(few->among ? few->among->n < n_two : few == held);
    const hwnas_arch *deep = NULL;
    for (size_t i = 0; i < n; i++)
        deep = all[i]->genes[0] == 1 ? all[i] : deep;
    assert_int_equal(hwnas_space_among(&few, held, &deep, 1), HWNAS_E_INPUT);
    for (size_t i = 0; i < n; i++)
        hwnas_arch_free((hwnas_arch *)all[i]);
    close_list(&l);
}

/* ---- Tables ---- */

typedef struct table_case {
    const char *space, *file, *columns[2]; /* both are to be low, or are taken as if they were */
} table_case;

static const table_case tables[] = {
    {"accel_nasbench", "accel_nasbench.csv", {"vck190_latency_ms", "params_count"}},
    {"ofa_mobilenet_v3", "ofa_mobilenet_v3.csv", {"macs_count", "params_count"}},
    {"ofa_mobilenet_v3_224", "ofa_mobilenet_v3_accuracy.csv", {"imagenet_top1_pct", NULL}},
    {"gpt_s", "gpt_s.csv", {"negative_perplexity", "a100_ms"}},
    {"gpt_m", "gpt_m.csv", {"negative_perplexity", "params_count"}},
    {"transnas_micro", "transnas_micro.csv", {"macs_count", "params_count"}},
    {"transnas_macro", "transnas_macro.csv", {"macs_count", "params_count"}},
    {"darts", "darts_nb301.csv", {"surrogate_valid_top1_pct", "params_count"}},
};

typedef struct opened {
    hwnas_space *space;
    hwnas_table *table;
    const hwnas_space *few;
    int n_objectives;
    double *values[2]; /* by row */
} opened;

static void open_table(opened *out, const table_case *c)
{
    char *path = hwnas_printf("%s/%s", HWNAS_TEST_DATA, c->file);
    *out = (opened){0};
    assert_int_equal(hwnas_graph_load_space(&out->space, c->space), HWNAS_OK);
    assert_int_equal(hwnas_table_load(&out->table, out->space, path), HWNAS_OK);
    assert_int_equal(hwnas_space_among(&out->few, out->space,
                                       (const hwnas_arch *const *)out->table->archs, out->table->n),
                     HWNAS_OK);
    for (int k = 0; k < 2 && c->columns[k]; k++) {
        size_t column;
        assert_int_equal(hwnas_csv_require(&column, out->table->csv, c->columns[k]), HWNAS_OK);
        out->n_objectives++;
        out->values[k] = hwnas_alloc(out->table->n * sizeof *out->values[k]);
        for (size_t row = 0; row < out->table->n; row++)
            out->values[k][row] = atof(hwnas_csv_cell(out->table->csv, row, column));
    }
    free(path);
}

static void close_table(opened *o)
{
    free(o->values[0]);
    free(o->values[1]);
    hwnas_table_free(o->table);
    hwnas_space_free(o->space);
}

/* The row, of which there must be one. */
static size_t row_of(const opened *o, const hwnas_arch *walked)
{
    hwnas_arch *arch = hwnas_arch_new(o->space);
    memcpy(arch->genes, walked->genes, o->space->n_genes * sizeof *arch->genes);
    const long row = hwnas_table_find(o->table, arch);
    hwnas_arch_free(arch);
    assert_true(row >= 0);
    return (size_t)row;
}

/* Each trial is a row, and none comes twice; how many there were before there was no other. */
static size_t search(const opened *o, const char *name, size_t n_trials)
{
    hwnas_strategy_config config = {
        .space = o->few, .n_objectives = o->n_objectives, .seed = 7, .max_trials = n_trials};
    hwnas_strategy *strategy = NULL;
    if (!strcmp(name, "regularized-evolution"))
        config.n_objectives = 1;
    if (!strcmp(name, "successive-halving"))
        config.n_rungs = 2;
    if (hwnas_strategy_new(&strategy, name, &config) != HWNAS_OK)
        fail_msg("%s: %s", name, describe());
    bool *is_seen = hwnas_alloc(2 * o->table->n);
    hwnas_arch *arch = hwnas_arch_new(o->few);
    size_t trial = 0;
    for (; trial < n_trials; trial++) {
        const hwnas_status status = strategy->ops->ask(strategy, trial, arch);
        if (status == HWNAS_E_EXHAUSTED)
            break;
        assert_int_equal(status, HWNAS_OK);
        const int rung = strategy->ops->rung ? strategy->ops->rung(strategy, trial) : 0;
        const size_t row = row_of(o, arch);
        assert_false(is_seen[2 * row + (size_t)rung]);
        is_seen[2 * row + (size_t)rung] = true;
        hwnas_score score = {.rung = rung};
        for (int k = 0; k < config.n_objectives; k++)
            score.objectives[k] = o->values[k][row];
        assert_int_equal(strategy->ops->tell(strategy, trial, arch, &score), HWNAS_OK);
    }
    free(is_seen);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
    return trial;
}

static void every_strategy_stays_in_every_table(void **state)
{
    (void)state;
    enum { N_TRIALS = 60 };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        opened o;
        open_table(&o, &tables[t]);
        assert_non_null(o.few->among);
        print_message("# %s: %zu networks of %zu rows\n", tables[t].file, o.few->among->n,
                      o.table->n);
        for (size_t s = 0; hwnas_strategies[s]; s++) {
            const char *name = hwnas_strategies[s]->name;
            const size_t n = strcmp(name, "exhaustive") ? N_TRIALS : o.few->among->n;
            assert_int_equal(search(&o, name, n), n);
        }
        close_table(&o);
    }
}

/* A search that goes on finds all that there is, and says that there is no more. */
static void a_table_is_searched_to_its_end(void **state)
{
    (void)state;
    static const char *const names[] = {"exhaustive", "random", "nsga2", "local-search"};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        if (!strstr(tables[t].space, "transnas"))
            continue;
        opened o;
        open_table(&o, &tables[t]);
        for (size_t s = 0; s < sizeof names / sizeof *names; s++)
            assert_int_equal(search(&o, names[s], 10000), o.few->among->n);
        close_table(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_walked_drawn_and_varied),
        cmocka_unit_test(a_code_outside_is_refused),
        cmocka_unit_test(constraints_hold_and_nothing_is_refused),
        cmocka_unit_test(every_strategy_stays_in_every_table),
        cmocka_unit_test(a_table_is_searched_to_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
