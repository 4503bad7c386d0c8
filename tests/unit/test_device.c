/* test_device.c: devices by their names, replay, and where src/device/place.c puts what lives at
 * one time. test_device_operators.c and test_device_networks.c have what devices compute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/home.h"
#include "base/rng.h"
#include "base/str.h"
#include "device/devices.h"
#include "device/onednn/onednn.h"
#include "device/place.h"
#include "space/arch.h"
#include "tests/unit/device_fixture.h"

static void placed_blocks_never_overlap(void **state)
{
    (void)state;
    enum { MAX_BLOCKS = 80, STEPS = 40, ROUNDS = 400 };
    hwnas_rng rng = hwnas_rng_new(1, 2);
    double used = 0, bound = 0;
    for (int round = 0; round < ROUNDS; round++) {
        hwnas_block blocks[MAX_BLOCKS];
        size_t live[STEPS] = {0}, peak = 0;
        const size_t n = hwnas_rng_below(&rng, MAX_BLOCKS + 1);
        for (size_t i = 0; i < n; i++) {
            blocks[i].size = hwnas_rng_below(&rng, 10000);
            blocks[i].first = (int)hwnas_rng_below(&rng, STEPS);
            blocks[i].last =
                blocks[i].first + (int)hwnas_rng_below(&rng, (uint32_t)(STEPS - blocks[i].first));
            blocks[i].offset = SIZE_MAX;
            for (int s = blocks[i].first; s <= blocks[i].last; s++)
                live[s] += blocks[i].size;
        }
        const size_t total = hwnas_place_blocks(blocks, n);
        for (size_t i = 0; i < n; i++) {
            const hwnas_block *a = &blocks[i];
            assert_int_equal(a->offset % HWNAS_PLACE_ALIGN, 0);
            assert_true(a->offset + a->size <= total);
            for (size_t k = 0; k < i; k++) {
                const hwnas_block *b = &blocks[k];
                const bool together = a->first <= b->last && b->first <= a->last;
                const bool apart =
                    a->offset + a->size <= b->offset || b->offset + b->size <= a->offset;
                assert_true(apart || !together);
            }
        }
        for (int s = 0; s < STEPS; s++)
            peak = live[s] > peak ? live[s] : peak;
        assert_true(total >= peak);
        used += (double)total;
        bound += (double)peak;
    }
    print_message("# %.3f of the lower bound\n", used / bound);
    assert_true(used < 1.2 * bound);
}

static void write_at(const char *root, const char *path, const char *text, size_t n)
{
    char *file = hwnas_printf("%s/%s", root, path);
    hwnas_make_folders(file);
    assert_int_equal(hwnas_file_write(file, text, n), HWNAS_OK);
    free(file);
}

/* What the kernels of x86 and of Arm boards tell. */
static void a_processor_or_its_board_has_a_name(void **state)
{
    (void)state;
    static const char model[] =
        "Raspberry Pi 4 Model B Rev 1.4"; /* with the NUL that firmware has */
    static const char arm[] = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n";
    static const char x86[] = "processor\t: 0\nmodel name\t: AMD EPYC\n";
    char root[] = "/tmp/hwnas-test-XXXXXX", name[128];
    assert_non_null(mkdtemp(root));
    hwnas_device_cpu_name_at(name, sizeof name, root);
    assert_string_equal(name, "unknown processor");
    write_at(root, "proc/cpuinfo", arm, strlen(arm));
    hwnas_device_cpu_name_at(name, sizeof name, root);
    assert_string_equal(name, "Arm processor 0xd08 of 0x41");
    write_at(root, "sys/firmware/devicetree/base/model", model, sizeof model);
    hwnas_device_cpu_name_at(name, sizeof name, root);
    assert_string_equal(name, model);
    write_at(root, "proc/cpuinfo", x86, strlen(x86));
    hwnas_device_cpu_name_at(name, sizeof name, root);
    assert_string_equal(name, "AMD EPYC");
    char *command = hwnas_printf("rm -rf %s", root);
    assert_int_equal(system(command), 0);
    free(command);
}

/* An Arm processor has instructions for these; it is results that are wrong or not known. */
static void a_refusal_says_what_is_true(void **state)
{
    (void)state;
    assert_int_equal(hwnas_onednn_refuse(HWNAS_F16, true), HWNAS_E_UNSUPPORTED);
    assert_string_equal(hwnas_last_error()->message, "this processor has no f16");
    assert_int_equal(hwnas_onednn_refuse(HWNAS_S8, false), HWNAS_E_UNSUPPORTED);
    assert_non_null(strstr(hwnas_last_error()->message, "results were wrong"));
    assert_int_equal(hwnas_onednn_refuse(HWNAS_BF16, false), HWNAS_E_UNSUPPORTED);
    assert_non_null(strstr(hwnas_last_error()->message, "bf16 is switched off on Arm: nobody"));
}

static void devices_are_opened_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *spelling;
        hwnas_status status;
        const char *part;
    } wrong[] = {
        {"cpv", HWNAS_E_NOT_FOUND, "cpv"},
        {"", HWNAS_E_NOT_FOUND, ""},
        {"cpu:1", HWNAS_E_INPUT, "takes no '1'"},
        {"ref:x", HWNAS_E_INPUT, "takes no 'x'"},
        {"replay", HWNAS_E_INPUT, "a table and a column"},
        {"replay:x.csv", HWNAS_E_INPUT, "a table and a column"},
        {"replay:#y", HWNAS_E_INPUT, "a table and a column"},
    };
    const hwnas_device_options options = {.threads = 1}, too_few = {.threads = -1};
    hwnas_device *device = NULL;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const hwnas_status status = hwnas_device_open(&device, wrong[i].spelling, &options);
        assert_int_equal(status, wrong[i].status);
        assert_non_null(strstr(hwnas_last_error()->message, wrong[i].part));
        assert_null(device);
    }
    assert_int_equal(hwnas_device_open(&device, "cpu", &too_few), HWNAS_E_INPUT);
    assert_true(hwnas_device_open(&device, "replay:none.csv#x_ms", &options) != HWNAS_OK);
    assert_true(hwnas_device_cores() >= 1);

    static const char *const right[] = {"cpu", "ref", "null"};
    for (size_t i = 0; i < COUNT(right); i++) {
        hwnas_device_info info = {.threads = -1};
        device = open_device(right[i], 0);
        assert_int_equal(device->ops->abi, HWNAS_DEVICE_ABI);
        device->ops->describe(device, &info);
        print_message("# %s: %s, %s, %s, %d\n", right[i], info.name, info.library, info.isa,
                      info.threads);
        assert_true(info.threads >= 1 && *info.name && *info.library && *info.isa);
        hwnas_device_close(device);
    }
}

static hwnas_space *load(const char *name)
{
    hwnas_space *space = NULL;
    ok(hwnas_space_load(&space, name));
    return space;
}

static double recall(const char *spelling, const char *space_name, const char *code,
                     const char *wanted_metric)
{
    hwnas_device *device = open_device(spelling, 1);
    hwnas_space *space = load(space_name);
    const hwnas_arch *const *archs;
    hwnas_arch *arch;
    const char *metric = NULL;
    size_t n;
    double value = NAN;
    assert_null(device->ops->compile);
    ok(device->ops->recall(&archs, &n, device, space));
    for (size_t i = 0; i < n; i++) { /* each that it remembers has a value */
        char *its = hwnas_arch_code(archs[i]);
        ok(device->ops->lookup(&value, &metric, device, its));
        free(its);
    }
    ok(hwnas_arch_parse(&arch, space, code));
    char *whole = hwnas_arch_code(arch);
    ok(device->ops->lookup(&value, &metric, device, whole));
    free(whole);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    assert_string_equal(metric, wanted_metric);
    hwnas_device_close(device);
    return value;
}

#define ACCEL "replay:" HWNAS_TEST_DATA "/accel_nasbench.csv"
#define GPT "replay:" HWNAS_TEST_DATA "/gpt_s.csv"
#define MACRO "replay:" HWNAS_TEST_DATA "/nas_bench_macro.csv"

/* A search asks such a device which networks it knows. */
static void what_looks_up_recalls(void **state)
{
    (void)state;
    const hwnas_device_ops *replay;
    const char *argument;
    ok(hwnas_device_find(&replay, &argument, "replay:x"));
    hwnas_device_ops lacking = *replay;
    lacking.name = "lacking";
    lacking.recall = NULL;
    assert_int_equal(hwnas_register_device(&lacking), HWNAS_E_INPUT);
    lacking = *replay;
    lacking.name = "lacking";
    lacking.lookup_metric = NULL;
    assert_int_equal(hwnas_register_device(&lacking), HWNAS_E_INPUT);
}

static void replay_lookup_metric(void **state)
{
    (void)state;
    static const char first[] = "e=6466611,k=3535533,l=1233222,se=0000000",
                      accel[] = "accel_nasbench", macro[] = "nas_bench_macro";
    /* Both networks have two rows. */
    assert_true(fabs(recall(ACCEL "#zcu102_latency_ms", accel, first, "latency.p50") -
                     (5.02342e-3 + 5.02239e-3) / 2) < 1e-12);
    assert_true(fabs(recall(ACCEL "#vck190_latency_ms", accel,
                            "se=0000000,l=2213233,k=5355355,e=1611141", "latency.p50") -
                     (2.28215e-3 + 2.26785e-3) / 2) < 1e-12);
    assert_true(recall(ACCEL "#macs_count_conv_fc", accel, first, "macs") == 375723888);
    assert_true(recall(MACRO "#macs_count", macro, "00000001", "macs") == 14115328);
    assert_true(recall(MACRO "#params_count", macro, "op=00000000", "params") == 387882);
    assert_true(recall(MACRO "?code=arch#params_count", macro, "00000000", "params") == 387882);
    assert_true(fabs(recall(GPT "#a100_ms", "gpt_s",
                            "embed=192,layers=10,heads=4.4.4.4.4.4.4.12.12.8,ratio=2344233432,"
                            "bias=1",
                            "latency.p50") -
                     10.52e-3) < 1e-12);

    hwnas_device *device = open_device(MACRO "#macs_count", 1);
    hwnas_space *space = load(macro), *other = load(accel);
    const hwnas_arch *const *archs;
    const char *metric = NULL;
    size_t n;
    double value = 0;
    ok(device->ops->recall(&archs, &n, device, space));
    assert_int_equal(n, 6561);
    assert_int_equal(device->ops->lookup(&value, &metric, device, "33333333"), HWNAS_E_NOT_FOUND);
    assert_null(metric);
    assert_int_equal(device->ops->recall(&archs, &n, device, other), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "none of the table's 6561 rows is of the "
                                                        "space 'accel_nasbench'"));
    hwnas_device_close(device);
    hwnas_space_free(space);
    hwnas_space_free(other);

    device = NULL;
    const hwnas_device_options options = {.threads = 1};
    assert_int_equal(hwnas_device_open(&device, ACCEL "#train_time_s", &options), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->hint, "zcu102_latency_ms"));
    assert_int_equal(hwnas_device_open(&device, ACCEL "#zcu102_latency", &options), HWNAS_E_INPUT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placed_blocks_never_overlap),
        cmocka_unit_test(a_processor_or_its_board_has_a_name),
        cmocka_unit_test(a_refusal_says_what_is_true),
        cmocka_unit_test(devices_are_opened_by_name),
        cmocka_unit_test(what_looks_up_recalls),
        cmocka_unit_test(replay_lookup_metric),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
