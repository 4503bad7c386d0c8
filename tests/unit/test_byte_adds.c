/* Sums, differences and products of two tensors of bytes of all forms, against `ref`: as one step,
 * also where the bytes have zero points, which oneDNN's primitive does not take off. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "byte_graphs.h"
#include "graph/op.h"

typedef struct sum {
    const char *op, *function; /* NULL: none */
    int forms[2], out;         /* out < 0: the result stays floats */
    int rank;
    bool of_one; /* x op x */
} sum;

static int bytes_of_input(hwnas_graph *graph, const char *name, int rank, int form)
{
    static const int64_t dims[] = {2, 19, 5, 7};
    int x;
    ok(hwnas_graph_add_input(&x, graph, name, HWNAS_FLOAT32, rank, dims + 4 - rank));
    return in_bytes(graph, x, &byte_forms[form]);
}

static hwnas_graph *graph_of(const sum *s)
{
    hwnas_graph *graph = hwnas_graph_new("sum", 1), *folded;
    const int x = bytes_of_input(graph, "x", s->rank, s->forms[0]);
    int made = pair(graph, s->op, x,
                    s->of_one ? x : bytes_of_input(graph, "y", s->rank, s->forms[1]));
    if (s->function)
        made = add(graph, s->function, "", made, -1);
    hwnas_graph_add_output(graph, s->out < 0 ? made : in_bytes(graph, made, &byte_forms[s->out]));
    ok(hwnas_graph_fold(&folded, graph));
    hwnas_graph_free(graph);
    return folded;
}

/* Bytes with zero points are read by the sum itself, not made floats by a step before it. */
static void check_steps(const sum *s, const hwnas_graph *graph)
{
    hwnas_exec *exec;
    const hwnas_exec_step *steps;
    ok(hwnas_device_compile(&exec, cpu[0], graph, NULL));
    for (size_t i = 0, n = cpu[0]->ops->steps(exec, &steps); i < n; i++)
        if (steps[i].n_nodes == 1 &&
            graph->nodes[steps[i].nodes[0]].op->id == HWNAS_OP_DEQUANTIZE_LINEAR &&
            steps[i].nodes[0] + 1 < (int)graph->n_nodes)
            fail_msg("%s of forms %d and %d: a step is nothing but '%s'", s->op, s->forms[0],
                     s->forms[1], graph->nodes[steps[i].nodes[0]].name);
    hwnas_exec_free(exec);
}

/* A value between two bytes may go either way: then it is off by one. */
static void check(const sum *s)
{
    hwnas_graph *graph = graph_of(s);
    const float step = s->out < 0 ? 1e-4F : byte_forms[s->out].scale;
    const int64_t n = count_outputs(graph);
    float *wanted = outcome(ref, graph, 5);
    for (int d = 0; d < 2; d++) {
        float *got = outcome(cpu[d], graph, 5);
        int64_t n_off = 0;
        for (int64_t i = 0; i < n; i++) {
            const float off = fabsf(got[i] - wanted[i]);
            n_off += s->out >= 0 && off > 0.01F * step;
            if (!(off <= 1.01F * step))
                fail_msg("%s of forms %d and %d, %s, to form %d, rank %d: value %d is %g, not %g",
                         s->op, s->forms[0], s->forms[1], s->function ? s->function : "plain",
                         s->out, s->rank, (int)i, got[i], wanted[i]);
        }
        if (n_off > 2 + n / 200)
            fail_msg("%s of forms %d and %d: %d of %d values are off by one", s->op, s->forms[0],
                     s->forms[1], (int)n_off, (int)n);
        free(got);
    }
    free(wanted);
    if (strcmp(s->op, "mul") != 0 && s->out >= 0)
        check_steps(s, graph);
    hwnas_graph_free(graph);
}

static void all_forms(void **state)
{
    (void)state;
    static const char *const ops[] = {"add", "sub", "mul"};
    static const char *const functions[] = {NULL, "relu", "relu6", "hard_swish"};
    for (int i = 0; i < 3; i++)
        for (int x = 0; x < N_BYTE_FORMS; x++)
            for (int y = 0; y < N_BYTE_FORMS; y++)
                for (int out = -1; out < N_BYTE_FORMS; out++)
                    for (int rank = 2; rank <= 4; rank += 2)
                        check(&(sum){ops[i], functions[(x + y + out + 1) % 4], {x, y}, out, rank,
                                     false});
}

static void of_one_tensor(void **state)
{
    (void)state;
    static const char *const ops[] = {"add", "sub", "mul"};
    for (int i = 0; i < 3; i++)
        for (int x = 0; x < N_BYTE_FORMS; x++)
            for (int out = -1; out < N_BYTE_FORMS; out++)
                check(&(sum){ops[i], NULL, {x, x}, out, 4, true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms),
        cmocka_unit_test(of_one_tensor),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
