/* onednn.c: the CPU, through oneDNN. docs/engine.md tells what was measured and why it is so. */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#include "device/onednn/onednn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <oneapi/dnnl/dnnl.h>

#include "base/str.h"
#include "device/devices.h"
#include "device/onednn/caches.h"
#include "device/onednn/constants.h"
#include "device/onednn/onednn_lower.h"
#include "device/onednn/training/train_exec.h"

/* oneDNN brings an OpenMP library with it; asking for its function by name spares us from guessing
 * which one. Without OpenMP there is one thread, and nothing to say. */
void hwnas_onednn_use_threads(int threads)
{
    static void (*set_num_threads)(int);
    if (!set_num_threads)
        *(void **)&set_num_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set_num_threads)
        set_num_threads(threads);
}

static void onednn_close(hwnas_device *base)
{
    onednn_device *device = (onednn_device *)base;
    if (device->stream)
        dnnl_stream_destroy(device->stream);
    if (device->engine)
        dnnl_engine_destroy(device->engine);
    free(device);
}

static hwnas_status onednn_open(hwnas_device **out, const char *argument,
                                const hwnas_device_options *options)
{
    hwnas_status status = HWNAS_OK;
    TRY(hwnas_device_takes_no_argument("cpu", argument));
    hwnas_onednn_know_caches();
    onednn_device *device = hwnas_alloc(sizeof *device);
    device->threads = options->threads ? options->threads : hwnas_device_cores();
    TRY_DNNL_OUT("open", "cpu", dnnl_engine_create(&device->engine, dnnl_cpu, 0));
    TRY_DNNL_OUT("open", "cpu",
                 dnnl_stream_create(&device->stream, device->engine, dnnl_stream_default_flags));
    TRY_DNNL_OUT("open", "cpu", hwnas_onednn_forget_constants());
    *out = &device->base;
    device = NULL;
out:
    if (device)
        onednn_close(&device->base);
    return status;
}

#if defined __x86_64__
static const char *isa_name(dnnl_cpu_isa_t isa)
{
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {
        {dnnl_cpu_isa_sse41, "SSE4.1"},
        {dnnl_cpu_isa_avx, "AVX"},
        {dnnl_cpu_isa_avx2, "AVX2"},
        {dnnl_cpu_isa_avx2_vnni, "AVX2 VNNI"},
        {dnnl_cpu_isa_avx2_vnni_2, "AVX2 VNNI 2"},
        {dnnl_cpu_isa_avx512_core, "AVX-512"},
        {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 VNNI"},
        {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 BF16"},
        {dnnl_cpu_isa_avx512_core_fp16, "AVX-512 FP16"},
        {dnnl_cpu_isa_avx512_core_amx, "AVX-512 AMX"},
        {dnnl_cpu_isa_avx512_core_amx_fp16, "AVX-512 AMX FP16"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].isa == isa)
            return names[i].name;
    return "unknown";
}
#else
/* Elsewhere oneDNN's header has no names for these numbers. On Arm the first bit is that of the
 * 128-bit vectors that every 64-bit processor has, and wider ones have more. */
static const char *isa_name(dnnl_cpu_isa_t isa)
{
#if defined __aarch64__
    return (int)isa == 1 ? "ASIMD" : "SVE";
#else
    (void)isa;
    return "unknown";
#endif
}
#endif

/* Loops of ours make products with weights of few bits, on floats. */
enum { ALWAYS = 1 << HWNAS_F32 | 1 << HWNAS_W8 | 1 << HWNAS_W4 };

#if defined __x86_64__
/* Whether oneDNN has more than its reference code for a product of values of this type. */
static bool has_product(const onednn_device *device, dnnl_data_type_t type)
{
    static const dnnl_dims_t dims = {64, 64};
    dnnl_memory_desc_t factor = NULL, product = NULL;
    dnnl_primitive_desc_t desc = NULL;
    const char *how = "ref";
    bool has =
        dnnl_memory_desc_create_with_tag(&factor, 2, dims, type, dnnl_ab) == dnnl_success &&
        dnnl_memory_desc_create_with_tag(&product, 2, dims, dnnl_f32, dnnl_ab) == dnnl_success &&
        dnnl_matmul_primitive_desc_create(&desc, device->engine, factor, factor, NULL, product,
                                          NULL) == dnnl_success &&
        dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &how) == dnnl_success;
    has = has && !hwnas_starts_with(how, "ref");
    dnnl_primitive_desc_destroy(desc);
    dnnl_memory_desc_destroy(product);
    dnnl_memory_desc_destroy(factor);
    return has;
}

/* The first instruction sets in which there are products of a type. */
static const struct native_row {
    hwnas_precision precision;
    dnnl_data_type_t type;
    dnnl_cpu_isa_t isa, narrow_isa; /* with registers of 512 and 256 bits */
} native_rows[] = {
    {HWNAS_BF16, dnnl_bf16, dnnl_cpu_isa_avx512_core_bf16, dnnl_cpu_isa_avx512_core_bf16},
    {HWNAS_F16, dnnl_f16, dnnl_cpu_isa_avx512_core_fp16, dnnl_cpu_isa_avx512_core_fp16},
    {HWNAS_S8, dnnl_s8, dnnl_cpu_isa_avx512_core_vnni, dnnl_cpu_isa_avx2_vnni},
};

/* An instruction set's number has the bits of those that it includes. */
static bool is_native(const struct native_row *row)
{
    const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    return (isa & row->isa) == row->isa || (isa & row->narrow_isa) == row->narrow_isa;
}

bool hwnas_onednn_is_native(hwnas_precision precision)
{
    const struct native_row *row = native_rows;
    const struct native_row *end = row + sizeof native_rows / sizeof *native_rows;
    while (row < end && row->precision != precision)
        row++;
    return row == end || is_native(row);
}

void hwnas_onednn_find_precisions(const onednn_device *device, unsigned *native, unsigned *emulated)
{
    *native = ALWAYS;
    *emulated = 0;
    for (size_t i = 0; i < sizeof native_rows / sizeof *native_rows; i++) {
        const struct native_row *row = &native_rows[i];
        if (is_native(row))
            *native |= 1U << row->precision;
        else if (has_product(device, row->type))
            *emulated |= 1U << row->precision;
    }
}

/* oneDNN's limit of the instruction set (ONEDNN_MAX_CPU_ISA) holds for the answer, too. */
bool hwnas_device_cpu_has_s8(void)
{
    return hwnas_onednn_is_native(HWNAS_S8);
}

#else
bool hwnas_onednn_is_native(hwnas_precision precision)
{
    return ALWAYS & 1 << precision;
}

/* Arm's older processors add pairs of products in 32 bits (SADALP). */
bool hwnas_device_cpu_has_s8(void)
{
    return true;
}

void hwnas_onednn_find_precisions(const onednn_device *device, unsigned *native, unsigned *emulated)
{
    (void)device;
    *native = ALWAYS;
    *emulated = 0;
}
#endif

hwnas_status hwnas_onednn_refuse(hwnas_precision precision, bool is_x86)
{
    const char *name = hwnas_precision_name(precision);
    if (is_x86)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "this processor has no %s", name);
    if (precision == HWNAS_S8)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "s8 is switched off on Arm: oneDNN's results were wrong there, under an "
                          "emulator, for networks with residuals");
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                      "%s is switched off on Arm: nobody has seen whether oneDNN's results are "
                      "right there",
                      name);
}

hwnas_status hwnas_onednn_check_precision(bool *is_emulated, const onednn_device *device,
                                          hwnas_precision precision)
{
    unsigned native, emulated;
    hwnas_onednn_find_precisions(device, &native, &emulated);
    *is_emulated = emulated & (1U << precision);
    if ((native | emulated) & (1U << precision))
        return HWNAS_OK;
    char *names = hwnas_precision_names(native | emulated);
#if defined __x86_64__
    hwnas_status status = hwnas_onednn_refuse(precision, true);
#else
    hwnas_status status = hwnas_onednn_refuse(precision, false);
#endif
    status = hwnas_hint(status, "it computes in %s", names);
    free(names);
    return status;
}

static void onednn_describe(const hwnas_device *base, hwnas_device_info *out)
{
    const onednn_device *device = (const onednn_device *)base;
    const dnnl_version_t *version = dnnl_version();
    *out = (hwnas_device_info){.threads = device->threads, .computes = true};
    hwnas_onednn_find_precisions(device, &out->native, &out->emulated);
    hwnas_device_cpu_name(out->name, sizeof out->name);
    snprintf(out->library, sizeof out->library, "oneDNN %d.%d.%d", version->major, version->minor,
             version->patch);
    snprintf(out->isa, sizeof out->isa, "%s", isa_name(dnnl_get_effective_cpu_isa()));
}

static hwnas_status compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                            const hwnas_exec_options *options)
{
    return options->training ? hwnas_onednn_compile_training(out, device, graph, options)
                             : hwnas_onednn_compile(out, device, graph, options);
}

const hwnas_device_ops hwnas_cpu_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "cpu",
    .help = "this machine's processor, through oneDNN",
    .open = onednn_open,
    .describe = onednn_describe,
    .close = onednn_close,
    .precisions = ALWAYS | 1U << HWNAS_BF16 | 1U << HWNAS_F16 | 1U << HWNAS_S8,
    .trains = 1U << HWNAS_F32 | 1U << HWNAS_BF16,
    .is_deployed = true,
    .compile = compile,
    .run = hwnas_onednn_run,
    .free_exec = hwnas_onednn_free_exec,
    .memory = hwnas_onednn_memory,
    .steps = hwnas_onednn_steps,
    .run_steps = hwnas_onednn_run_steps,
};
