/* sample_shapes.c: what samples in files say of a network's open dimensions. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/str.h"
#include "data/array_file.h"

/* Adds what an array's header says; one that cannot be read says nothing, and whoever reads its
 * values says why. `input` NULL: it is for the only input. */
static void add(hwnas_onnx_sample *list, size_t *n, hwnas_arena *arena, const char *path,
                const char *array, const char *input)
{
    hwnas_array_file *file = NULL;
    if (*n == HWNAS_MOST_SAMPLE_SHAPES)
        return;
    if (hwnas_array_open(&file, path, array) != HWNAS_OK) {
        hwnas_error_clear();
        return;
    }
    hwnas_onnx_sample *made = &list[(*n)++];
    *made =
        (hwnas_onnx_sample){.input = input ? hwnas_arena_string(arena, input, strlen(input)) : NULL,
                            .rank = file->rank};
    memcpy(made->dims, file->dims, sizeof made->dims);
    hwnas_array_close(file);
}

static void add_archive(hwnas_onnx_sample *list, size_t *n, hwnas_arena *arena,
                        const hwnas_data_file *from)
{
    char **names;
    if (from->array || from->input) {
        const char *array = from->array ? from->array : from->input;
        add(list, n, arena, from->path, array, from->input);
        return;
    }
    if (hwnas_zip_list(&names, from->path) != HWNAS_OK) {
        hwnas_error_clear();
        return;
    }
    for (size_t i = 0; names[i]; i++) {
        const size_t length = strlen(names[i]);
        char *name = hwnas_strdup(names[i]);
        if (hwnas_ends_with(name, ".npy"))
            name[length - 4] = '\0';
        add(list, n, arena, from->path, name, name);
        if (!strcmp(name, "x"))
            add(list, n, arena, from->path, name, NULL);
        free(name);
    }
    hwnas_zip_list_free(names);
}

hwnas_onnx_sample *hwnas_api_sample_shapes(size_t *n, hwnas_arena *arena, size_t n_files,
                                           const hwnas_data_file *files)
{
    hwnas_onnx_sample *list = hwnas_arena_alloc(arena, HWNAS_MOST_SAMPLE_SHAPES * sizeof *list);
    *n = 0;
    for (size_t i = 0; i < n_files; i++) {
        bool is_zip = false;
        if (hwnas_is_zip(&is_zip, files[i].path) != HWNAS_OK)
            hwnas_error_clear();
        else if (is_zip)
            add_archive(list, n, arena, &files[i]);
        else
            add(list, n, arena, files[i].path, NULL, files[i].input);
    }
    return list;
}
