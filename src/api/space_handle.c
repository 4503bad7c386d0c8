/* space_handle.c: spaces in hwnas.h: networks as codes. */
#include <stdlib.h>

#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/file.h"
#include "derive/derive.h"
#include "export/supernet.h"
#include "graph/elaborate.h"
#include "graph/enumerate.h"
#include "report/space_text.h"
#include "search/strategy.h"

hwnas_status hwnas_space_open(hwnas_space **out, const char *name)
{
    IN_C_LOCALE;
    return hwnas_load_space(out, name);
}

hwnas_status hwnas_space_derive(const char *path, const char *model)
{
    IN_C_LOCALE;
    TRY(hwnas_file_check_output(path, model));
    return hwnas_derive_space(path, model, false);
}

hwnas_status hwnas_space_write_supernet(const hwnas_space *space, const char *path)
{
    IN_C_LOCALE;
    hwnas_shared *shared;
    TRY(hwnas_file_check_output(path, space->path));
    TRY(hwnas_shared_new(&shared, space));
    const hwnas_status status = hwnas_supernet_write(path, shared);
    hwnas_shared_free(shared);
    return status;
}

void hwnas_space_close(hwnas_space *space)
{
    hwnas_space_free(space);
}

const char *hwnas_space_name(const hwnas_space *space)
{
    return space->name;
}

const char *hwnas_space_about(const hwnas_space *space)
{
    return space->about ? space->about : "";
}

static hwnas_rng stream(uint64_t seed, uint64_t index)
{
    const hwnas_strategy_config config = {.seed = seed};
    return hwnas_strategy_rng(&config, index);
}

hwnas_status hwnas_space_sample(char **out, const hwnas_space *space, uint64_t seed, uint64_t index)
{
    hwnas_rng rng = stream(seed, index);
    hwnas_arch *arch = hwnas_arch_new(space);
    const hwnas_status status =
        hwnas_arch_sample(arch, &rng) ? HWNAS_OK : hwnas_space_none_found(space);
    if (status == HWNAS_OK)
        *out = hwnas_arch_code(arch);
    hwnas_arch_free(arch);
    return status;
}

/* There is no next network: it was the last, or nobody can say. */
static hwnas_status end_of(const hwnas_space *space)
{
    bool is_exact;
    free(hwnas_space_count(space, &is_exact));
    if (is_exact)
        return hwnas_fail(HWNAS_E_EXHAUSTED, NULL, "there are no more networks in %s", space->name);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the networks of %s cannot be counted", space->name),
        "hwnas_space_sample() gives random ones");
}

hwnas_status hwnas_space_next(char **out, const hwnas_space *space, const char *code)
{
    hwnas_arch *arch = NULL;
    if (code)
        TRY(hwnas_arch_parse(&arch, space, code));
    else if (!(arch = hwnas_arch_first(space)))
        return hwnas_space_none_found(space);
    const hwnas_status status = !code || hwnas_arch_next(arch) ? HWNAS_OK : end_of(space);
    if (status == HWNAS_OK)
        *out = hwnas_arch_code(arch);
    hwnas_arch_free(arch);
    return status;
}

hwnas_status hwnas_space_mutate(char **out, const hwnas_space *space, const char *code, double rate,
                                uint64_t seed, uint64_t index)
{
    hwnas_rng rng = stream(seed, index);
    hwnas_arch *arch;
    if (!(rate >= 0 && rate <= 1))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a rate of %g; 0 to 1 are possible", rate);
    TRY(hwnas_arch_parse(&arch, space, code));
    hwnas_arch_mutate(arch, rate, &rng);
    *out = hwnas_arch_code(arch);
    hwnas_arch_free(arch);
    return HWNAS_OK;
}

hwnas_status hwnas_space_check(char **out, const hwnas_space *space, const char *code)
{
    hwnas_arch *arch;
    TRY(hwnas_arch_parse(&arch, space, code));
    if (out)
        *out = hwnas_arch_code(arch);
    hwnas_arch_free(arch);
    return HWNAS_OK;
}

/* ---- Reports ---- */

/* Gives what was told, unless `status` says that it is not whole. */
static hwnas_status give(hwnas_report **out, hwnas_rendering *told, hwnas_status status)
{
    if (status == HWNAS_OK)
        *out = hwnas_report_of(told);
    hwnas_rendering_done(told);
    return status;
}

hwnas_status hwnas_space_report(hwnas_report **out, const hwnas_space *space)
{
    IN_C_LOCALE;
    hwnas_rendering told = {0};
    hwnas_space_tell_choices(&told, space);
    return give(out, &told, HWNAS_OK);
}

hwnas_status hwnas_space_validate(hwnas_report **out, const char *name)
{
    IN_C_LOCALE;
    hwnas_rendering told = {0};
    hwnas_space *space;
    TRY(hwnas_load_space(&space, name));
    const hwnas_status status = hwnas_graph_check_settings(space, name);
    if (status == HWNAS_OK)
        hwnas_space_tell_size(&told, space);
    hwnas_space_free(space);
    return give(out, &told, status);
}

hwnas_status hwnas_space_count_networks(hwnas_report **out, const hwnas_space *space)
{
    IN_C_LOCALE;
    hwnas_rendering told = {0};
    const hwnas_status status = hwnas_space_tell_count(&told, space);
    return give(out, &told, status);
}

hwnas_status hwnas_space_sample_networks(hwnas_report **out, const hwnas_space *space, size_t n,
                                         uint64_t seed)
{
    IN_C_LOCALE;
    hwnas_rendering told = {0};
    const hwnas_status status = hwnas_space_tell_sample(&told, space, n, seed);
    return give(out, &told, status);
}
