#include "export/finetune.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "base/home.h"
#include "data/score.h"
#include "export/exporter.h"

#define PLACE "\nSETTINGS = {}\n"
/* What the programs that train share, which is put in the place of its import. */
#define IMPORT_BEGINS "\n# hwnas optimize writes loop.py in the place of this statement.\n"
#define IMPORT_ENDS "\n)\n"
#define LOOP_BEGINS "\nimport "
enum { MAX_BYTES = 1 << 20 };

const char *const hwnas_finetune_suffixes[] = {"-finetune.py", "-teacher.py",
                                               "-teacher.safetensors", NULL};

/* Values for each position: the one dimension of a sample's outputs that is not 1, else the last.
 */
static int64_t count_classes(const hwnas_tensor *y)
{
    int64_t last = 1, n = 0;
    for (int d = 1; d < y->rank; d++) {
        n += y->dims[d] != 1;
        if (y->dims[d] != 1)
            last = y->dims[d];
    }
    return n == 1 || !y->rank ? last : y->dims[y->rank - 1];
}

/* As JSON, which is Python as well where there are only texts and numbers. */
static char *settings_of(const char *prefix, const char *samples, const hwnas_graph *graph)
{
    const hwnas_tensor *x = &graph->tensors[graph->inputs[0]];
    const hwnas_tensor *y = &graph->tensors[graph->outputs[0]];
    const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
    char *teacher = hwnas_printf("%s-teacher", name), *folder = hwnas_file_real(".");
    json_t *shape = json_array();
    for (int d = 1; d < x->rank; d++)
        json_array_append_new(shape, json_integer(x->dims[d]));
    json_t *settings = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:i, s:I, s:i}", "module", name, "teacher", teacher,
        "samples", samples, "folder", folder ? folder : "", "input", x->name, "output", y->name,
        "shape", shape, "is_whole", hwnas_dtype_is_whole(x->dtype), "classes",
        (json_int_t)count_classes(y), "gives_shares", hwnas_gives_probabilities(graph));
    char *text = settings ? json_dumps(settings, 0) : NULL;
    json_decref(settings);
    free(folder);
    free(teacher);
    return text;
}

/* The program with the text of loop.py in it; *out is yours to free(). */
static hwnas_status read_program(char **out)
{
    hwnas_status status = HWNAS_OK;
    char *files[] = {hwnas_printf("%s/training/finetune.py", hwnas_data_root()),
                     hwnas_printf("%s/training/loop.py", hwnas_data_root())};
    char *texts[2] = {NULL};
    hwnas_str program = {0};
    size_t length;
    for (int i = 0; i < 2; i++)
        TRY_OUT(hwnas_file_read(&texts[i], &length, files[i], MAX_BYTES));
    const char *from = strstr(texts[0], IMPORT_BEGINS);
    const char *to = from ? strstr(from, IMPORT_ENDS) : NULL, *loop = strstr(texts[1], LOOP_BEGINS);
    if (!to || !loop) {
        const hwnas_place place = {.file = files[0]};
        status = hwnas_fail(HWNAS_E_INPUT, &place, "loop.py is not imported here as it was");
        goto out;
    }
    hwnas_str_addn(&program, texts[0], (size_t)(from + 1 - texts[0]));
    hwnas_str_addf(&program, "%s%s", loop + 1, to + strlen(IMPORT_ENDS));
    *out = program.s;
    program = (hwnas_str){0};
out:
    for (int i = 0; i < 2; i++) {
        free(files[i]);
        free(texts[i]);
    }
    hwnas_str_done(&program);
    return status;
}

static hwnas_status write_program(const char *path, const char *prefix, const char *samples,
                                  const hwnas_graph *graph)
{
    hwnas_status status = HWNAS_OK;
    char *text = NULL, *settings = settings_of(prefix, samples, graph);
    const hwnas_place place = {.file = samples};
    hwnas_str program = {0};
    if (!settings) {
        status = hwnas_fail(HWNAS_E_INPUT, &place, "the name is not in UTF-8");
        goto out;
    }
    TRY_OUT(read_program(&text));
    const char *at = strstr(text, PLACE);
    if (!at) {
        const hwnas_place where = {.file = "finetune.py"};
        status = hwnas_fail(HWNAS_E_INPUT, &where, "there is no line 'SETTINGS = {}'");
        goto out;
    }
    hwnas_str_addn(&program, text, (size_t)(at - text));
    hwnas_str_addf(&program, "\nSETTINGS = %s\n%s", settings, at + strlen(PLACE));
    TRY_OUT(hwnas_file_write(path, program.s, program.n));
out:
    hwnas_str_done(&program);
    free(settings);
    free(text);
    return status;
}

hwnas_status hwnas_export_finetune(const char *prefix, const char *samples,
                                   const hwnas_graph *original)
{
    char *teacher = hwnas_printf("%s%s", prefix, hwnas_finetune_suffixes[1]);
    char *program = hwnas_printf("%s%s", prefix, hwnas_finetune_suffixes[0]);
    hwnas_status status = hwnas_export_graph(teacher, NULL, original);
    if (status == HWNAS_OK)
        status = write_program(program, prefix, samples, original);
    free(teacher);
    free(program);
    return status;
}
