#define _GNU_SOURCE 1 /* gmtime_r() */
#include "profile/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "device/devices.h"

static hwnas_host describe_host(hwnas_arena *arena)
{
    char processor[128];
    struct utsname name;
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    hwnas_host host = {.system = "unknown system",
                       .cores = hwnas_device_cores(),
                       .memory_bytes = pages > 0 ? (int64_t)pages * page : 0,
                       .conditions = hwnas_conditions_read(hwnas_conditions_root())};
    hwnas_device_cpu_name(processor, sizeof processor);
    host.processor = hwnas_arena_string(arena, processor, strlen(processor));
    if (uname(&name) == 0)
        host.system =
            hwnas_arena_printf(arena, "%s %s %s", name.sysname, name.release, name.machine);
    return host;
}

hwnas_profile *hwnas_profile_new(void)
{
    hwnas_profile *profile = hwnas_alloc(sizeof *profile);
    char date[32];
    struct tm parts;
    const time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    profile->arena = hwnas_arena_new();
    profile->source = "measured";
    profile->date = hwnas_arena_string(profile->arena, date, strlen(date));
    profile->version = hwnas_version();
    profile->host = describe_host(profile->arena);
    return profile;
}

void hwnas_profile_free(hwnas_profile *profile)
{
    if (!profile)
        return;
    hwnas_arena_free(profile->arena);
    free(profile);
}

void hwnas_profile_add_device(hwnas_profile *profile, const char *spelling,
                              const hwnas_device_info *info)
{
    for (size_t i = 0; i < profile->n_devices; i++)
        if (!strcmp(profile->devices[i].spelling, spelling)) {
            if (info)
                profile->devices[i].info = *info;
            return;
        }
    HWNAS_ARENA_GROW(profile->arena, profile->devices, profile->n_devices,
                     profile->device_capacity);
    hwnas_profile_device *device = &profile->devices[profile->n_devices++];
    *device = (hwnas_profile_device){
        .spelling = hwnas_arena_string(profile->arena, spelling, strlen(spelling))};
    if (info)
        device->info = *info;
    else
        snprintf(device->info.name, sizeof device->info.name, "does not work here");
}

hwnas_profile_row *hwnas_profile_add_row(hwnas_profile *profile)
{
    HWNAS_ARENA_GROW(profile->arena, profile->rows, profile->n_rows, profile->row_capacity);
    hwnas_profile_row *row = &profile->rows[profile->n_rows++];
    *row = (hwnas_profile_row){.streams = 1,
                               .train = {.seconds = NAN, .low = NAN, .high = NAN, .money = NAN},
                               .max_error = NAN,
                               .mixed_error = NAN,
                               .max_loss = NAN,
                               .accuracy = {NAN, NAN, NAN},
                               .f32_accuracy = {NAN, NAN, NAN},
                               .s8_accuracy = {NAN, NAN, NAN},
                               .verified_error = NAN,
                               .verified_tolerance = NAN,
                               .slow = HWNAS_SLOW_CODE_INIT};
    return row;
}

const char *hwnas_profile_row_dtype(const hwnas_profile_row *row)
{
    return row->mixing ? hwnas_mixing_name(row->mixing) : hwnas_precision_name(row->precision);
}

hwnas_status hwnas_profile_check(const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++)
        if (profile->rows[i].status != HWNAS_OK) {
            const hwnas_profile_row *row = &profile->rows[i];
            const bool is_named = hwnas_starts_with(row->message, row->model);
            const hwnas_status status =
                hwnas_fail(row->status, NULL, "%s%s%s", is_named ? "" : row->model,
                           is_named ? "" : ": ", row->message);
            return row->hint ? hwnas_hint(status, "%s", row->hint) : status;
        }
    return HWNAS_OK;
}
