/* test_random_graphs.c: random graphs on `cpu`, in each precision that it has, against `ref`.
 *
 * The day decides which; HWNAS_SEED=N takes others, and HWNAS_GRAPHS=N as many. What is found is
 * printed as small as it could be made, with its seed. HWNAS_SHOW=1 prints each before it is run.
 * With HWNAS_LONG (`make check-long`) there are more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "tests/fuzz/random_graph.h"
#include "tests/unit/amount.h"

enum { N_GRAPHS = 300 / EVERY(5), N_LONG = 5000, N_SHOWN = 5 };

static const hwnas_precision precisions[] = {HWNAS_F32, HWNAS_BF16, HWNAS_F16,
                                            HWNAS_S8,  HWNAS_W8,   HWNAS_W4};

/* How far the process that runs the graphs is: it may end with any of them. */
typedef struct progress {
    uint64_t graph;
    hwnas_precision precision;
    bool is_done;
    int n_judged, n_silent;
    double worst[HWNAS_N_PRECISIONS];
    char found[1200]; /* what was wrong, among all the graphs before it */
} progress;

typedef struct devices {
    hwnas_device *cpu, *ref;
    unsigned precisions;
} devices;

static uint64_t number_in(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void make(random_recipe *out, uint64_t seed)
{
    random_source source = {.rng = hwnas_rng_new(seed, 0)};
    random_recipe_make(out, &source, seed);
}

/* A process may end as it likes: cmocka and the library have nothing to say about it. */
static pid_t fork_quietly(void)
{
    static const int signals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    fflush(stdout);
    const pid_t child = fork();
    assert_true(child >= 0);
    for (size_t i = 0; child == 0 && i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    if (child == 0 && !getenv("HWNAS_SHOW"))
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    return child;
}

static void note(progress *p, const random_verdict *v)
{
    if (v->status != HWNAS_OK)
        snprintf(p->found, sizeof p->found, "%s", hwnas_last_error()->message);
    else
        snprintf(p->found, sizeof p->found, "off by %.3g times what rounding explains", v->ratio);
}

/* From the place where `p` stands to the first that is wrong. */
static void run_graphs(progress *p, const devices *on, uint64_t end)
{
    random_recipe *recipe = hwnas_alloc(sizeof *recipe);
    for (; p->graph < end; p->graph++, p->precision = 0) {
        make(recipe, p->graph);
        if (getenv("HWNAS_SHOW"))
            random_recipe_print(stderr, recipe);
        for (; p->precision < HWNAS_N_PRECISIONS; p->precision++) {
            if (!(on->precisions & 1U << p->precision))
                continue;
            const random_verdict v = random_recipe_judge(recipe, on->cpu, on->ref, p->precision);
            p->n_judged++;
            p->n_silent += v.says_nothing;
            if (random_verdict_is_bad(&v)) {
                note(p, &v);
                goto out;
            }
            if (v.ratio > p->worst[p->precision])
                p->worst[p->precision] = v.ratio;
        }
    }
    p->is_done = true;
out:
    free(recipe);
}

/* As small as it can be made, in a process of its own. */
static void show(const progress *p, const devices *on)
{
    const pid_t child = fork_quietly();
    if (child) {
        waitpid(child, NULL, 0);
        return;
    }
    random_recipe *recipe = hwnas_alloc(sizeof *recipe);
    make(recipe, p->graph);
    random_recipe_shrink(recipe, on->cpu, on->ref, p->precision);
    printf("# HWNAS_SEED=%llu HWNAS_GRAPHS=1, %s:\n", (unsigned long long)p->graph,
           hwnas_precision_name(p->precision));
    random_recipe_print(stdout, recipe);
    printf("# %s; alone:\n", p->found);
    fflush(stdout);
    const random_verdict v = random_recipe_judge(recipe, on->cpu, on->ref, p->precision);
    if (v.status != HWNAS_OK)
        printf("# %s\n", hwnas_last_error()->message);
    else
        printf("# off by %.3g times what rounding explains\n", v.ratio);
    fflush(stdout);
    _exit(0);
}

static void check(uint64_t first, uint64_t n)
{
    const hwnas_device_options options = {.threads = 1};
    devices on;
    hwnas_device_info info;
    int n_bad = 0;
    progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    *p = (progress){.graph = first};
    assert_int_equal(hwnas_device_open(&on.cpu, "cpu", &options), HWNAS_OK);
    assert_int_equal(hwnas_device_open(&on.ref, "ref", &options), HWNAS_OK);
    on.cpu->ops->describe(on.cpu, &info);
    on.precisions = info.native | info.emulated;
    printf("# HWNAS_SEED=%llu\n", (unsigned long long)first);
    fflush(stdout);
    while (!p->is_done && n_bad < (int)number_in("HWNAS_SHOWN", N_SHOWN)) {
        const pid_t child = fork_quietly();
        if (child == 0) {
            run_graphs(p, &on, first + n);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        if (p->is_done)
            break;
        n_bad++;
        show(p, &on);
        p->precision++;
    }
    for (size_t k = 0; k < sizeof precisions / sizeof *precisions; k++)
        printf("# %s: at most %.2f of what rounding explains\n",
               hwnas_precision_name(precisions[k]), p->worst[precisions[k]]);
    printf("# %d runs, %d of them say nothing\n", p->n_judged, p->n_silent);
    hwnas_device_close(on.ref);
    hwnas_device_close(on.cpu);
    assert_int_equal(n_bad, 0);
    assert_true(p->n_silent <= p->n_judged / 5);
    munmap(p, sizeof *p);
}

static void cpu_agrees_with_ref(void **state)
{
    (void)state;
    check(number_in("HWNAS_SEED", (uint64_t)time(NULL) / 86400 * 1000000),
          number_in("HWNAS_GRAPHS", getenv("HWNAS_LONG") ? N_LONG : N_GRAPHS));
}

/* Found on other days. */
static void what_once_was_wrong_is_right(void **state)
{
    (void)state;
    static const uint64_t found[] = {
        20781000030, /* an image read as rows */
        20781000231, /* a convolution that makes one column */
        20781000266, /* strides of dimensions of 1 */
        20790002651, /* dequantized bytes times zeros */
        20790003923, /* a product of one column and one row with a value for each row */
    };
    for (size_t i = 0; i < sizeof found / sizeof *found && !getenv("HWNAS_SEED"); i++)
        check(found[i], 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_agrees_with_ref),
                                       cmocka_unit_test(what_once_was_wrong_is_right)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
