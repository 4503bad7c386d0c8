/* module.c: finds a module, believes it only if its ABI is ours, and hands its devices over. */
#define _GNU_SOURCE 1 /* strsep() */
#include "device/module.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/home.h"
#include "base/str.h"
#include "device/devices.h"

/* The module's file, yours to free(), or NULL with the directories that lack it: the user's, ours,
 * and the one for modules. */
static char *find(hwnas_str *looked, const char *name)
{
    const char *given = getenv("HWNAS_MODULES");
    char *own = hwnas_own_file(), *found = NULL;
    char *slash = own ? strrchr(own, '/') : NULL;
    char *places = hwnas_printf("%s:%.*s:%s", given ? given : "", slash ? (int)(slash - own) : 0,
                                own ? own : "", hwnas_module_folder());
    char *rest = places, *place;
    while (!found && (place = strsep(&rest, ":"))) {
        if (!*place)
            continue;
        found = hwnas_printf("%s/%s.so", place, name);
        if (hwnas_file_exists(found))
            break;
        free(found);
        found = NULL;
        hwnas_str_addf(looked, "%s%s", looked->n ? ", " : "", place);
    }
    free(places);
    free(own);
    return found;
}

/* A library that was opened without RTLD_GLOBAL, as Python's ctypes does, shows its functions to
 * nobody; modules use them. */
static void show_ourselves(void)
{
    char *own = hwnas_own_file();
    void *opened = own ? dlopen(own, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL) : NULL;
    if (opened)
        dlclose(opened); /* it stays as it is */
    free(own);
}

static hwnas_status load(const hwnas_module **out, const char *file)
{
    const hwnas_place place = {.file = file};
    show_ourselves();
    void *opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!opened)
        return hwnas_fail(HWNAS_E_LIBRARY, &place, "cannot load the module: %.300s", dlerror());
    const hwnas_module *module = dlsym(opened, HWNAS_MODULE_SYMBOL);
    hwnas_status status = HWNAS_OK;
    if (!module)
        status = hwnas_fail(HWNAS_E_LIBRARY, &place, "this is not a module of hwnas");
    else if (module->abi != HWNAS_DEVICE_ABI)
        status = hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, &place,
                                       "the module speaks version %u of the interface, this "
                                       "program %u",
                                       module->abi, HWNAS_DEVICE_ABI),
                            "install module and program from one build");
    if (status != HWNAS_OK)
        dlclose(opened);
    else
        *out = module;
    return status;
}

hwnas_status hwnas_module_open(const hwnas_module **out, const char *name)
{
    hwnas_str looked = {0};
    char *file = find(&looked, name);
    hwnas_status status =
        file ? load(out, file)
             : hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "there is no module %s.so", name),
                          "looked in %.300s; it is built where CUDA 12 and cuDNN 9.8 are installed",
                          looked.s);
    hwnas_str_done(&looked);
    free(file);
    return status;
}

/* The row of a module's device. */
static hwnas_status find_row(const hwnas_device_ops **out, const char *module_name,
                             const char *name)
{
    const hwnas_module *module = NULL;
    TRY(hwnas_module_open(&module, module_name));
    for (const hwnas_device_ops *const *row = module->devices; *row; row++) {
        if (strcmp((*row)->name, name))
            continue;
        *out = *row;
        return HWNAS_OK;
    }
    return hwnas_fail(HWNAS_E_LIBRARY, NULL, "the module %s has no device '%s'", module->name,
                      name);
}

/* Opens the device `name` of a module, whose row is the device's from then on. */
static hwnas_status open_by_module(hwnas_device **out, const char *module_name, const char *name,
                                   const char *argument, const hwnas_device_options *options)
{
    const hwnas_device_ops *row = NULL;
    hwnas_device *device = NULL;
    TRY(find_row(&row, module_name, name));
    TRY(row->open(&device, argument, options));
    device->ops = row;
    *out = device;
    return HWNAS_OK;
}

static int count_cuda(void)
{
    const hwnas_device_ops *row = NULL;
    if (find_row(&row, "hwnas-cuda", "cuda") == HWNAS_OK)
        return row->count();
    hwnas_error_clear();
    return 0;
}

static hwnas_status open_cuda(hwnas_device **out, const char *argument,
                              const hwnas_device_options *options)
{
    return open_by_module(out, "hwnas-cuda", "cuda", argument, options);
}

static hwnas_status open_cuda_dry(hwnas_device **out, const char *argument,
                                  const hwnas_device_options *options)
{
    return open_by_module(out, "hwnas-cuda", "cuda-dry", argument, options);
}

const hwnas_device_ops hwnas_cuda_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "cuda",
    .help = "an NVIDIA GPU, through cuDNN: cuda:0, cuda:1, ...; cuda:0:quick",
    .caveat = HWNAS_CUDA_CAVEAT,
    .is_deployed = true,
    .quick = HWNAS_CUDA_QUICK,
    .count = count_cuda,
    .open = open_cuda,
    .precisions = HWNAS_CUDA_PRECISIONS,
};

const hwnas_device_ops hwnas_cuda_dry_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "cuda-dry",
    .help = "compiles for an NVIDIA GPU that is not here, runs nothing: cuda-dry:h200",
    .caveat = HWNAS_CUDA_DRY_CAVEAT,
    .open = open_cuda_dry,
    .precisions = HWNAS_CUDA_PRECISIONS,
};
