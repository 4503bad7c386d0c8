#include "profile/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hwnas_profile *hwnas_profile_new(void)
{
    hwnas_profile *profile = hwnas_alloc(sizeof *profile);
    profile->arena = hwnas_arena_new();
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
    *row = (hwnas_profile_row){.streams = 1};
    return row;
}
