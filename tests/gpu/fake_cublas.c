/* fake_cublas.c: a stand-in for cublasLt: products of fp32 matrices by plain loops, as NVIDIA's
 * guide tells of cublasLtMatmul(): matrices by columns, a stride between those of a batch, an
 * epilogue with a bias of the result's rows. FAKE_GPU_FAULT=cublas: it has no algorithm. */
#include <cublasLt.h>

#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

enum { FAKE_ALGORITHM = 77, FAKE_CUBLAS_WORKSPACE = 256, MOST_ALIGNED = 16 };

EXPORT int fake_cublas_runs; /* for the tests */

/* Each fits in what the header calls opaque. */
typedef struct layout {
    int64_t rows, columns, ahead, next;
    int32_t batch;
} layout;

typedef struct product {
    cublasOperation_t as[2];
    cublasLtEpilogue_t epilogue;
    const float *bias;
} product;

typedef struct preference {
    size_t workspace;
    uint32_t alignment[4];
} preference;

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    *out = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status ? "the stand-in for cuBLAS refuses" : "success";
}

/* ---- Descriptors ---- */

EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t type,
                                               cudaDataType_t scale)
{
    product *p = calloc(1, sizeof *p);
    p->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    *out = (cublasLtMatmulDesc_t)p;
    return type == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS
                                                             : CUBLAS_STATUS_NOT_SUPPORTED;
}

EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made)
{
    free(made);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t copy(void *to, size_t wanted, const void *from, size_t bytes)
{
    memcpy(to, from, wanted < bytes ? wanted : bytes);
    return wanted == bytes ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made,
                                                     cublasLtMatmulDescAttributes_t name,
                                                     const void *value, size_t bytes)
{
    product *p = (product *)made;
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return copy(&p->as[0], sizeof p->as[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return copy(&p->as[1], sizeof p->as[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return copy(&p->epilogue, sizeof p->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return copy(&p->bias, sizeof p->bias, value, bytes);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t ahead)
{
    layout *l = calloc(1, sizeof *l);
    *l = (layout){(int64_t)rows, (int64_t)columns, ahead, 0, 1};
    *out = (cublasLtMatrixLayout_t)l;
    return type == CUDA_R_32F && ahead >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS
                                                        : CUBLAS_STATUS_INVALID_VALUE;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made)
{
    free(made);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t made,
                                                       cublasLtMatrixLayoutAttribute_t name,
                                                       const void *value, size_t bytes)
{
    layout *l = (layout *)made;
    switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return copy(&l->batch, sizeof l->batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return copy(&l->next, sizeof l->next, value, bytes);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

/* What is not told is aligned to 256 bytes. */
EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    preference *p = calloc(1, sizeof *p);
    for (int i = 0; i < 4; i++)
        p->alignment[i] = 256;
    *out = (cublasLtMatmulPreference_t)p;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made)
{
    free(made);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t made, cublasLtMatmulPreferenceAttributes_t name, const void *value,
    size_t bytes)
{
    preference *p = (preference *)made;
    const int i = (int)name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return copy(&p->workspace, sizeof p->workspace, value, bytes);
    return i >= 0 && i < 4 ? copy(&p->alignment[i], sizeof *p->alignment, value, bytes)
                           : CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- Products ---- */

static int64_t columns_of(const layout *l, cublasOperation_t as)
{
    return as == CUBLAS_OP_N ? l->columns : l->rows;
}

static int64_t rows_of(const layout *l, cublasOperation_t as)
{
    return as == CUBLAS_OP_N ? l->rows : l->columns;
}

static bool fits(const product *p, const layout *a, const layout *b, const layout *c,
                 const layout *d)
{
    return rows_of(a, p->as[0]) == d->rows && columns_of(b, p->as[1]) == d->columns &&
           columns_of(a, p->as[0]) == rows_of(b, p->as[1]) && c->rows == d->rows &&
           c->columns == d->columns && a->batch == d->batch && b->batch == d->batch &&
           c->batch == d->batch;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t made, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t wanted, int most, cublasLtMatmulHeuristicResult_t *out, int *n)
{
    const product *p = (const product *)made;
    const preference *w = (const preference *)wanted;
    const bool wants_bias = (p->epilogue & CUBLASLT_EPILOGUE_BIAS) == CUBLASLT_EPILOGUE_BIAS;
    *n = 0;
    if (!handle || most < 1 || fake_fault("cublas") || w->workspace < FAKE_CUBLAS_WORKSPACE ||
        (wants_bias && !p->bias) ||
        !fits(p, (const layout *)a, (const layout *)b, (const layout *)c, (const layout *)d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < 4; i++)
        if (w->alignment[i] > MOST_ALIGNED) /* nothing here is */
            return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    out->algo.data[0] = FAKE_ALGORITHM;
    out->workspaceSize = FAKE_CUBLAS_WORKSPACE;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* One product with its pointers, as they were when it was enqueued. */
typedef struct cublas_run {
    fake_call call;
    product p;
    layout a, b, c, d;
    float alpha, beta;
    const float *at_a, *at_b, *at_c;
    float *at_d;
    char *workspace;
} cublas_run;

static bool owns(const float *at, const layout *l)
{
    const int64_t last = (l->batch - 1) * l->next + (l->columns - 1) * l->ahead + l->rows;
    return fake_owns((const char *)at, (size_t)last * sizeof *at);
}

static double value(const float *at, const layout *l, cublasOperation_t as, int64_t row,
                    int64_t column)
{
    return as == CUBLAS_OP_N ? at[column * l->ahead + row] : at[row * l->ahead + column];
}

static void run_one(const cublas_run *r, int64_t item)
{
    const float *a = r->at_a + item * r->a.next, *b = r->at_b + item * r->b.next;
    const float *c = r->at_c + item * r->c.next;
    float *d = r->at_d + item * r->d.next;
    const int64_t n = columns_of(&r->a, r->p.as[0]);
    for (int64_t j = 0; j < r->d.columns; j++)
        for (int64_t i = 0; i < r->d.rows; i++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += value(a, &r->a, r->p.as[0], i, k) * value(b, &r->b, r->p.as[1], k, j);
            sum *= r->alpha;
            if (r->beta != 0)
                sum += r->beta * c[j * r->c.ahead + i];
            if ((r->p.epilogue & CUBLASLT_EPILOGUE_BIAS) == CUBLASLT_EPILOGUE_BIAS)
                sum += r->p.bias[i];
            if ((r->p.epilogue & CUBLASLT_EPILOGUE_RELU) == CUBLASLT_EPILOGUE_RELU && sum < 0)
                sum = 0;
            d[j * r->d.ahead + i] = (float)sum;
        }
}

static CUresult run_product(fake_call *call)
{
    const cublas_run *r = (const cublas_run *)call;
    const bool has_bias = (r->p.epilogue & CUBLASLT_EPILOGUE_BIAS) == CUBLASLT_EPILOGUE_BIAS;
    if (!owns(r->at_a, &r->a) || !owns(r->at_b, &r->b) || !owns(r->at_c, &r->c) ||
        !owns(r->at_d, &r->d) || !fake_owns(r->workspace, FAKE_CUBLAS_WORKSPACE) ||
        (has_bias && !fake_owns((const char *)r->p.bias, (size_t)r->d.rows * sizeof(float))))
        return CUDA_ERROR_INVALID_VALUE;
    memset(r->workspace, 0xFF, FAKE_CUBLAS_WORKSPACE);
    for (int64_t item = 0; item < r->d.batch; item++)
        run_one(r, item);
    __atomic_fetch_add(&fake_cublas_runs, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

static void free_call(fake_call *call)
{
    free(call);
}

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t made,
                                     const void *alpha, const void *at_a, cublasLtMatrixLayout_t a,
                                     const void *at_b, cublasLtMatrixLayout_t b, const void *beta,
                                     const void *at_c, cublasLtMatrixLayout_t c, void *at_d,
                                     cublasLtMatrixLayout_t d,
                                     const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                                     size_t bytes, cudaStream_t stream)
{
    if (!handle || !stream || algorithm->data[0] != FAKE_ALGORITHM || bytes < FAKE_CUBLAS_WORKSPACE)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublas_run *r = calloc(1, sizeof *r);
    *r = (cublas_run){.call = {.run = run_product, .free = free_call},
                      .p = *(const product *)made,
                      .a = *(const layout *)a,
                      .b = *(const layout *)b,
                      .c = *(const layout *)c,
                      .d = *(const layout *)d,
                      .alpha = *(const float *)alpha,
                      .beta = *(const float *)beta,
                      .at_a = at_a,
                      .at_b = at_b,
                      .at_c = at_c,
                      .at_d = at_d,
                      .workspace = workspace};
    return fake_enqueue(&r->call) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
