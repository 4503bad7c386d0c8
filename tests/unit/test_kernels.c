/* test_kernels.c: the GPU's own kernels, whose text is compiled for the host here, against each
 * operator's plain loops: in every type of storage, in both layouts, and with blocks and threads of
 * odd numbers. As test_kernel_threads, BY_THREADS, a GPU's thread is one of the host's, and
 * ThreadSanitizer ends the program with another status when two of them race. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "device/cudnn/kernels.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/host_kernels.h"

/* How tensors lie: their type, and whether images have their channels last; `is_wide`: in the
 * middle of something twice as wide. */
typedef struct storage {
    const char *name;
    int type;
    bool is_nhwc, is_wide;
    double tolerance;
} storage;

/* fp16 and bf16 round the output alone, to 11 and 8 bits: the inputs of the truth are rounded as
 * well. */
static const storage storages[] = {
    {"f32", HWNAS_STORED_F32, false, false, 1e-5},
    {"f32 nhwc", HWNAS_STORED_F32, true, false, 1e-5},
    {"f32 wide", HWNAS_STORED_F32, true, true, 1e-5},
    {"f16", HWNAS_STORED_F16, true, false, 1e-3},
    {"bf16", HWNAS_STORED_BF16, false, false, 8e-3},
};

/* One tensor: the truth, and as it is stored. */
typedef struct place {
    float *truth;
    char *bytes;
} place;

static hwnas_view view_of(const hwnas_tensor *tensor, const storage *how)
{
    hwnas_view view;
    const int type = hwnas_dtype_is_whole(tensor->dtype) ? HWNAS_STORED_F32 : how->type;
    ok(how->is_nhwc ? hwnas_view_nhwc(&view, tensor, type) : hwnas_view_plain(&view, tensor, type));
    for (int i = 0; i < view.rank && how->is_wide; i++)
        view.steps[i] *= 2;
    return view;
}

static int offset_of(const hwnas_view *view, int64_t i)
{
    int64_t offset = 0;
    for (int d = view->rank - 1; d >= 0; i /= view->dims[d--])
        offset += i % view->dims[d] * view->steps[d];
    return (int)offset;
}

static void store_all(const place *p, const hwnas_view *view)
{
    for (int64_t i = 0, n = hwnas_view_count(view); i < n; i++) {
        const int at = offset_of(view, i);
        host_store(p->bytes, view->type, at, p->truth[i]);
        p->truth[i] = host_load(p->bytes, view->type, at);
    }
}

static void draw(float *values, const hwnas_tensor *tensor, const op_case *c, hwnas_rng *rng)
{
    const double range = c->range == 0 ? 1 : fabs(c->range);
    for (int64_t i = 0, n = hwnas_tensor_count(tensor); i < n; i++) {
        const double u = hwnas_rng_double(rng);
        values[i] = (float)(tensor->dtype == HWNAS_UINT8          ? floor(u * 256)
                            : hwnas_dtype_is_whole(tensor->dtype) ? floor(u * 6) - 3
                            : c->range < 0                        ? range * (u + 0.02)
                                                                  : range * (2 * u - 1));
        if (!strcmp(c->op, "is_inf") || !strcmp(c->op, "is_nan"))
            values[i] = u < 0.2 ? INFINITY : u < 0.4 ? -INFINITY : u < 0.6 ? NAN : values[i];
    }
}

static void compare(const char *what, const place *p, const hwnas_view *view, double tolerance)
{
    double worst = 0, scale = 0;
    for (int64_t i = 0, n = hwnas_view_count(view); i < n; i++) {
        const double got = host_load(p->bytes, view->type, offset_of(view, i)),
                     wanted = p->truth[i];
        if (isnan(wanted) || isinf(wanted)) {
            if (!(isnan(wanted) ? isnan(got) : got == wanted))
                fail_msg("%s: %g at %ld, not %g", what, got, (long)i, wanted);
            continue;
        }
        const double error = fabs(got - wanted);
        worst = error <= worst ? worst : error;
        scale = fmax(scale, fabs(wanted));
    }
    if (!(worst <= tolerance * (scale > 0 ? scale : 1)))
        fail_msg("%s: relative error %g", what, worst / scale);
}

static void run_launch(const hwnas_launch *launch, const place *places, int n_blocks, bool backward)
{
    hwnas_kernel_job job = launch->job;
    for (int k = 0; k < job.n_views; k++)
        if (launch->tensors[k] >= 0)
            job.views[k].at = places[launch->tensors[k]].bytes + launch->offsets[k];
    assert_true(host_kernel_run(launch->kernel->name, &job, n_blocks, 96, backward));
}

static void run_case(const op_case *c, const storage *how, size_t number)
{
    char what[160];
    hwnas_graph *graph = graph_of(c);
    hwnas_rng rng = hwnas_rng_new(7, number);
    place *places = hwnas_alloc(graph->n_tensors * sizeof *places);
    hwnas_view *views = hwnas_alloc(graph->n_tensors * sizeof *views);
    snprintf(what, sizeof what, "%s %s of %s, %s", c->op, c->attrs, c->inputs, how->name);
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const hwnas_tensor *t = &graph->tensors[i];
        const size_t n = (size_t)hwnas_tensor_count(t);
        places[i] = (place){hwnas_alloc(n * sizeof(float)), hwnas_alloc(2 * n * sizeof(float))};
        views[i] = view_of(t, how);
        if (t->kind == HWNAS_TENSOR_WEIGHT)
            hwnas_tensor_fill(t, places[i].truth);
        else if (t->kind == HWNAS_TENSOR_INPUT)
            draw(places[i].truth, t, c, &rng);
        store_all(&places[i], &views[i]);
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        const place *out = &places[node->output];
        const float *operands[HWNAS_MAX_NODE_INPUTS];
        hwnas_launches launches = {0};
        for (int k = 0; k < node->n_inputs; k++)
            operands[k] = places[node->inputs[k]].truth;
        node->op->compute(graph, node, operands, out->truth);
        ok(hwnas_kernels_lower(&launches, graph, node, views));
        for (size_t k = 0; k < launches.n; k++)
            run_launch(&launches.all[k], places, 1 + (int)(number % 3), number % 2);
        compare(what, out, &views[node->output], how->tolerance);
        store_all(out, &views[node->output]); /* the next node's truth begins with what is stored */
        hwnas_launches_done(&launches);
    }
    for (size_t i = 0; i < graph->n_tensors; i++) {
        free(places[i].truth);
        free(places[i].bytes);
    }
    free(places);
    free(views);
    hwnas_graph_free(graph);
}

/* Hundreds of threads for each launch take a while. */
static bool takes_all(void)
{
#ifdef BY_THREADS
    return getenv("HWNAS_LONG") != NULL;
#else
    return true;
#endif
}

static void every_case_in_every_storage(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t s = 0; s < COUNT(storages); s++)
            if (s == i % COUNT(storages) || takes_all())
                run_case(&cases[i], &storages[s], i);
}

/* An operator without a case here would be without a proof. */
static void every_operator_has_a_case(void **state)
{
    (void)state;
    for (int i = 0; hwnas_ops[i]; i++) {
        const hwnas_op *op = hwnas_ops[i];
        bool found = !op->compute;
        for (size_t k = 0; k < COUNT(cases) && !found; k++) {
            hwnas_graph *graph = graph_of(&cases[k]);
            for (size_t n = 0; n < graph->n_nodes; n++)
                found |= graph->nodes[n].op == op;
            hwnas_graph_free(graph);
        }
        if (!found)
            fail_msg("'%s' has no case", op->name);
    }
}

/* Beyond what counts in 32 bits, and beyond the memory that a block shares. */
static void what_is_too_much_is_refused(void **state)
{
    (void)state;
    static const op_case most = {"lstm", "out=4096", "1x1x2", 0};
    static const op_case more = {"lstm", "out=4097", "1x1x2", 0};
    const struct {
        const op_case *c;
        hwnas_status status;
    } rows[] = {{&most, HWNAS_OK}, {&more, HWNAS_E_UNSUPPORTED}};
    const storage how = {.type = HWNAS_STORED_F32};
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = graph_of(rows[i].c);
        hwnas_view *views = hwnas_alloc(graph->n_tensors * sizeof *views);
        hwnas_launches launches = {0};
        for (size_t k = 0; k < graph->n_tensors; k++)
            views[k] = view_of(&graph->tensors[k], &how);
        for (size_t k = 0; k < graph->n_nodes; k++)
            if (!strcmp(graph->nodes[k].op->name, "lstm_core"))
                assert_int_equal(
                    hwnas_kernels_lower(&launches, graph, &graph->nodes[k], views), rows[i].status);
        hwnas_launches_done(&launches);
        free(views);
        hwnas_graph_free(graph);
    }
    hwnas_tensor large = {.name = "large", .rank = 2, .dims = {(1 << 30) - (1 << 23), 2}};
    hwnas_view view;
    assert_int_equal(hwnas_view_plain(&view, &large, HWNAS_STORED_F16), HWNAS_E_UNSUPPORTED);
    large.dims[0]--;
    assert_int_equal(hwnas_view_plain(&view, &large, HWNAS_STORED_F16), HWNAS_OK);
    const hwnas_launch launch = {.kernel = hwnas_kernels,
                                 .job = {.n = (int)hwnas_view_count(&view)}};
    int n_blocks, n_threads;
    hwnas_launch_shape(&n_blocks, &n_threads, &launch);
    assert_true(n_blocks > 0 && (int64_t)launch.job.n + n_blocks * n_threads <= INT32_MAX);
}

#ifdef BY_THREADS
/* ThreadSanitizer's own status, in a process of its own. */
static void a_missing_barrier_is_seen(void **state)
{
    (void)state;
    int status = 0;
    const pid_t child = fork();
    if (!child) {
        float sum = 0;
        const hwnas_kernel_job job = {.n = 1, .n_views = 1, .views = {{.at = &sum}}};
        exit(!freopen("/dev/null", "w", stderr) ||
             !host_kernel_run("test_race", &job, 1, 0, false));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 66);
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#ifdef BY_THREADS
        cmocka_unit_test(a_missing_barrier_is_seen),
#endif
        cmocka_unit_test(every_operator_has_a_case),
        cmocka_unit_test(every_case_in_every_storage),
        cmocka_unit_test(what_is_too_much_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
