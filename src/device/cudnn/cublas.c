/* cublas.c: an operation that is one product, as cuBLAS has it.
 *
 * cuBLAS counts matrices by columns, so that what lies row by row is its own transpose there. It is
 * asked for the result's transpose: the second factor's times the first one's. */
#include "device/cudnn/cublas.h"

#include <cudnn.h>
#include <math.h>
#include <stdlib.h>

#include "device/cudnn/live.h"

enum { SECOND, FIRST, ADDED, RESULT, N_MATRICES }; /* in cuBLAS's order */

/* What NVIDIA's guide to cuBLAS recommends for Hopper; elsewhere 4 MiB, and more is not asked for.
 */
#define MOST_WORKSPACE ((size_t)32 << 20)

struct hwnas_cublas_product {
    const hwnas_cublas_api *api; /* NULL: there is no GPU, and nothing will run */
    int ports[N_MATRICES], bias; /* of the operation; -1: there is none */
    float scale;
    bool has_relu;
    cublasLtMatmulDesc_t made;
    cublasLtMatrixLayout_t layouts[N_MATRICES];
    cublasLtMatmulAlgo_t algorithm;
};
typedef struct hwnas_cublas_product product;

/* ---- The library ---- */

#define SYMBOL(function, member)                                                                   \
    {                                                                                              \
#function, offsetof(hwnas_cublas_api, member)                                              \
    }
static const hwnas_symbol symbols[] = {
    SYMBOL(cublasLtCreate, create),
    SYMBOL(cublasLtDestroy, destroy),
    SYMBOL(cublasLtGetStatusString, error_string),
    SYMBOL(cublasLtMatmulDescCreate, create_product),
    SYMBOL(cublasLtMatmulDescDestroy, destroy_product),
    SYMBOL(cublasLtMatmulDescSetAttribute, set_product),
    SYMBOL(cublasLtMatrixLayoutCreate, create_layout),
    SYMBOL(cublasLtMatrixLayoutDestroy, destroy_layout),
    SYMBOL(cublasLtMatrixLayoutSetAttribute, set_layout),
    SYMBOL(cublasLtMatmulPreferenceCreate, create_preference),
    SYMBOL(cublasLtMatmulPreferenceDestroy, destroy_preference),
    SYMBOL(cublasLtMatmulPreferenceSetAttribute, set_preference),
    SYMBOL(cublasLtMatmulAlgoGetHeuristic, rank_algorithms),
    SYMBOL(cublasLtMatmul, run),
    {NULL, 0},
};

hwnas_status hwnas_cublas_open(const hwnas_cublas_api **out)
{
    static hwnas_cublas_api api;
    static bool is_open;
    if (!is_open) {
        char file[HWNAS_LIBRARY_NAME];
        void *library;
        TRY(hwnas_cublas_library(&library, file));
        TRY(hwnas_library_symbols(&api, symbols, library, file));
        is_open = true;
    }
    *out = &api;
    return HWNAS_OK;
}

/* ---- What the operation says ---- */

bool hwnas_cublas_takes(const hwnas_cudnn_operation *o)
{
    return o->is_exact && o->n_ops > 0 && o->ops[0].kind == HWNAS_CUDNN_MATMUL;
}

static bool is_row(const hwnas_cudnn_port *port, const hwnas_cudnn_port *result)
{
    return port->dims[0] == 1 && port->dims[1] == 1 && port->dims[2] == result->dims[2];
}

static bool has_shape_of(const hwnas_cudnn_port *port, const hwnas_cudnn_port *result)
{
    for (int i = 0; i < 3; i++)
        if (port->dims[i] != result->dims[i])
            return false;
    return true;
}

/* One operator behind the product; false where cuBLAS has no such thing. */
static bool add_operator(product *p, const hwnas_cudnn_operation *o, const hwnas_cudnn_op *op)
{
    const hwnas_cudnn_port *result = &o->ports[p->ports[RESULT]];
    if (op->kind != HWNAS_CUDNN_POINTWISE || p->has_relu)
        return false;
    if (op->mode == CUDNN_POINTWISE_RELU_FWD)
        return p->has_relu = op->slope == 0;
    if (op->n_inputs != 2)
        return false;
    const bool is_first = op->inputs[0] == p->ports[RESULT];
    const int other = op->inputs[is_first];
    const hwnas_cudnn_port *by = &o->ports[other];
    const bool is_bare = p->ports[ADDED] < 0 && p->bias < 0,
               scales = by->kind == HWNAS_CUDNN_PORT_SCALAR;
    if (op->mode == CUDNN_POINTWISE_MUL && is_bare && scales)
        p->scale *= by->value;
    else if (op->mode == CUDNN_POINTWISE_DIV && is_bare && scales && is_first)
        p->scale /= by->value;
    else if (op->mode != CUDNN_POINTWISE_ADD || by->kind != HWNAS_CUDNN_PORT_MEMORY)
        return false;
    else if (p->bias < 0 && is_row(by, result))
        p->bias = other;
    else if (p->ports[ADDED] < 0 && has_shape_of(by, result))
        p->ports[ADDED] = other;
    else
        return false;
    return isnormal(p->scale); /* as one number it may be none, where each by itself is */
}

/* False where it is more than a product. */
static bool read_operation(product *p, const hwnas_cudnn_operation *o)
{
    const hwnas_cudnn_op *first = &o->ops[0];
    *p = (product){
        .ports = {first->inputs[1], first->inputs[0], -1, first->output}, .bias = -1, .scale = 1};
    for (int i = 1; i < o->n_ops; i++) {
        if (!add_operator(p, o, &o->ops[i]))
            return false;
        p->ports[RESULT] = o->ops[i].output;
    }
    for (int i = 0; i < o->n_ports; i++)
        if (o->ports[i].type != HWNAS_CUDNN_F32)
            return false;
    return true;
}

/* ---- The same in cuBLAS's words ---- */

/* A matrix as it lies, by columns. */
typedef struct matrix {
    bool is_turned; /* it is the port's, not its transpose */
    uint64_t rows, columns;
    int64_t ahead, next; /* values to the next column, to the next matrix */
} matrix;

/* False where neither rows nor columns lie close, or too close. */
static bool see(matrix *out, const hwnas_cudnn_port *port)
{
    const int64_t *d = port->dims, *s = port->strides;
    out->is_turned = s[2] != 1 && d[2] != 1;
    const int inner = out->is_turned ? 1 : 2, outer = 3 - inner;
    *out = (matrix){.is_turned = out->is_turned,
                    .rows = (uint64_t)d[inner],
                    .columns = (uint64_t)d[outer],
                    .ahead = d[outer] == 1 && s[outer] < d[inner] ? d[inner] : s[outer],
                    .next = d[0] == 1 ? 0 : s[0]};
    return (s[inner] == 1 || d[inner] == 1) && out->ahead >= d[inner];
}

/* Matrix number i; what is not there has the result's layout. */
static bool see_matrix(matrix *out, const product *p, const hwnas_cudnn_operation *o, int i)
{
    const int port = p->ports[p->ports[i] < 0 ? RESULT : i];
    return see(out, &o->ports[port]) && !(out->is_turned && i >= ADDED);
}

bool hwnas_cublas_can(const hwnas_cudnn_operation *o)
{
    product p;
    matrix m;
    if (o->is_full || !read_operation(&p, o))
        return false;
    for (int i = 0; i < N_MATRICES; i++)
        if (!see_matrix(&m, &p, o, i))
            return false;
    return true;
}

static cublasStatus_t make_layouts(product *p, bool *is_turned, const hwnas_cudnn_operation *o)
{
    const int32_t batch = (int32_t)o->ports[p->ports[RESULT]].dims[0];
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < N_MATRICES && !status; i++) {
        matrix m;
        if (!see_matrix(&m, p, o, i))
            return CUBLAS_STATUS_NOT_SUPPORTED;
        is_turned[i] = m.is_turned;
        status = p->api->create_layout(&p->layouts[i], CUDA_R_32F, m.rows, m.columns, m.ahead);
        if (!status)
            status = p->api->set_layout(p->layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                        sizeof batch);
        if (!status)
            status = p->api->set_layout(p->layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                        &m.next, sizeof m.next);
    }
    return status;
}

/* Of the bias: an algorithm is chosen by how its address is aligned. */
static cublasStatus_t set_bias(const product *p, const void *bias)
{
    return p->bias < 0 ? CUBLAS_STATUS_SUCCESS
                       : p->api->set_product(p->made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                             sizeof bias);
}

static cublasStatus_t describe(product *p, const hwnas_cudnn_operation *o)
{
    static const cublasLtEpilogue_t epilogues[2][2] = {
        {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU},
        {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS}};
    const cublasLtEpilogue_t epilogue = epilogues[p->bias >= 0][p->has_relu];
    bool is_turned[N_MATRICES];
    cublasStatus_t status = make_layouts(p, is_turned, o);
    if (!status)
        status = p->api->create_product(&p->made, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    for (int i = SECOND; i <= FIRST && !status; i++) {
        const cublasOperation_t as = is_turned[i] ? CUBLAS_OP_T : CUBLAS_OP_N;
        status = p->api->set_product(
            p->made, i == SECOND ? CUBLASLT_MATMUL_DESC_TRANSA : CUBLASLT_MATMUL_DESC_TRANSB, &as,
            sizeof as);
    }
    if (!status)
        status =
            p->api->set_product(p->made, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (!status && p->bias >= 0)
        status = set_bias(p, (const void *)(size_t)o->ports[p->bias].alignment);
    return status;
}

static cublasStatus_t set_preferences(cublasLtMatmulPreference_t preference, const product *p,
                                      const hwnas_cudnn_operation *o)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[N_MATRICES] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const size_t most = MOST_WORKSPACE;
    cublasStatus_t status = p->api->set_preference(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    for (int i = 0; i < N_MATRICES && !status; i++) {
        const int port = p->ports[i] < 0 ? p->ports[RESULT] : p->ports[i];
        const uint32_t alignment = (uint32_t)o->ports[port].alignment;
        status = p->api->set_preference(preference, alignments[i], &alignment, sizeof alignment);
    }
    return status;
}

/* The algorithm that cuBLAS ranks first. */
static cublasStatus_t choose(product *p, size_t *workspace, const hwnas_cudnn_operation *o,
                             cublasLtHandle_t handle)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t best;
    int n = 0;
    cublasStatus_t status = p->api->create_preference(&preference);
    if (!status)
        status = set_preferences(preference, p, o);
    if (!status)
        status = p->api->rank_algorithms(handle, p->made, p->layouts[SECOND], p->layouts[FIRST],
                                         p->layouts[ADDED], p->layouts[RESULT], preference, 1,
                                         &best, &n);
    if (preference)
        p->api->destroy_preference(preference);
    if (status || n < 1 || best.state)
        return status ? status : n < 1 ? CUBLAS_STATUS_NOT_SUPPORTED : best.state;
    p->algorithm = best.algo;
    *workspace = best.workspaceSize;
    return status;
}

/* ---- The kind ---- */

static hwnas_status cublas_compile(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    hwnas_cudnn_operation *o = step->state;
    hwnas_live *live = net->device->live;
    if (!net->device->cudnn)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s': cuBLAS is not to be used", step->name);
    product *p = o->product = hwnas_alloc(sizeof *p);
    read_operation(p, o); /* hwnas_cublas_can() */
    if (!live || net->is_ahead)
        return HWNAS_OK;
    p->api = hwnas_live_cublas(live);
    cublasStatus_t status = describe(p, o);
    if (!status)
        status = choose(p, &step->workspace, o, hwnas_live_cublas_handle(live));
    return status ? hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "cuBLAS has no algorithm for '%s': %s",
                               step->name, p->api->error_string(status))
                  : HWNAS_OK;
}

static hwnas_status cublas_run(const hwnas_cudnn_step *step, const hwnas_cudnn_net *net,
                               const hwnas_cudnn_launch *launch)
{
    const hwnas_cudnn_operation *o = step->state;
    const product *p = o->product;
    const float none = 0, once = 1;
    char *at[N_MATRICES];
    for (int i = 0; i < N_MATRICES; i++)
        at[i] = hwnas_cudnn_address(net, launch,
                                    o->ports[p->ports[p->ports[i] < 0 ? RESULT : i]].tensor);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (p->bias >= 0)
        status = set_bias(p, hwnas_cudnn_address(net, launch, o->ports[p->bias].tensor));
    if (!status)
        status = p->api->run(hwnas_live_cublas_handle(net->device->live), p->made, &p->scale,
                             at[SECOND], p->layouts[SECOND], at[FIRST], p->layouts[FIRST],
                             p->ports[ADDED] < 0 ? &none : &once, at[ADDED], p->layouts[ADDED],
                             at[RESULT], p->layouts[RESULT], &p->algorithm, launch->workspace,
                             step->workspace, launch->stream);
    return hwnas_cublas_run_status(net->device->live, status, "run", step->name);
}

static void cublas_free(hwnas_cudnn_step *step)
{
    hwnas_cudnn_operation *o = step->state;
    product *p = o ? o->product : NULL;
    for (int i = 0; p && i < N_MATRICES; i++)
        if (p->layouts[i])
            p->api->destroy_layout(p->layouts[i]);
    if (p && p->made)
        p->api->destroy_product(p->made);
    free(p);
    free(o);
}

const hwnas_cudnn_kind hwnas_cublas = {
    .name = "cuBLAS", .compile = cublas_compile, .run = cublas_run, .free = cublas_free};
