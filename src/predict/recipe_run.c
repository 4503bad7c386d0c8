#include "predict/recipe_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/home.h"
#include "base/str.h"
#include "export/supernet.h"
#include "predict/handed.h"
#include "predict/program.h"

#define A_MONTH (31 * 86400.0)

typedef struct session {
    const hwnas_recipe_call *run;
    const char *name; /* what messages call it */
    json_t *told;
} session;

static hwnas_status read_told(void *context, const char *line)
{
    session *s = context;
    hwnas_status status = HWNAS_OK;
    const char *wrong = NULL, *file = NULL, *hint = NULL;
    int row = 0, column = 0;
    json_decref(s->told);
    s->told = json_loads(line, 0, NULL);
    if (!json_is_object(s->told))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' did not say what came of it: '%.200s'",
                          s->name, line);
    json_unpack(s->told, "{s?s, s?s, s?i, s?i, s?s}", "wrong", &wrong, "file", &file, "line", &row,
                "column", &column, "hint", &hint);
    if (!wrong)
        return HWNAS_OK;
    const hwnas_place place = {.file = file, .line = row, .column = column};
    status = hwnas_fail(HWNAS_E_INPUT, file ? &place : NULL, "%s", wrong);
    return hint ? hwnas_hint(status, "%s", hint) : status;
}

static hwnas_status is_ready(void *context, hwnas_run *run)
{
    (void)context;
    run->state = HWNAS_RUN_READY;
    return HWNAS_OK;
}

static hwnas_status is_done(void *context, hwnas_run *run)
{
    (void)context;
    (void)run;
    return HWNAS_OK;
}

static void say(void *context, hwnas_run *run, const char *line)
{
    const session *s = context;
    (void)run;
    if (s->run->says)
        s->run->says(s->run->context, line);
}

/* PYTHON train.py --recipe FILE OPTION... net.onnx net.py; all are yours to free(). */
static void make_arguments(char **out, const hwnas_recipe_call *run, const hwnas_handed *handed)
{
    *out++ = hwnas_strdup(hwnas_torch_python());
    *out++ = hwnas_printf("%s/training/train.py", hwnas_data_root());
    *out++ = hwnas_strdup("--recipe");
    *out++ = hwnas_strdup(run->recipe);
    for (size_t i = 0; run->options[i]; i++)
        *out++ = hwnas_strdup(run->options[i]);
    *out++ = hwnas_strdup(handed->paths[HWNAS_HANDED_ONNX]);
    *out++ = hwnas_strdup(handed->paths[HWNAS_HANDED_PYTORCH]);
    *out = NULL;
}

hwnas_status hwnas_recipe_run(json_t **out, const hwnas_recipe_call *run)
{
    hwnas_status status = HWNAS_OK;
    hwnas_handed handed = {0};
    char *arguments[HWNAS_RECIPE_OPTIONS + 8] = {NULL};
    const char *slash = strrchr(run->recipe, '/');
    char *name =
        hwnas_printf("%s:%s", run->shared ? "supernet" : "train", slash ? slash + 1 : run->recipe);
    session s = {.run = run, .name = name};
    TRY_OUT(hwnas_handed_make(&handed, run->arch, 0));
    if (run->server)
        hwnas_fork_server_offer(run->server, &handed);
    if (run->shared)
        TRY_OUT(hwnas_supernet_write(handed.paths[HWNAS_HANDED_PYTORCH], run->shared));
    make_arguments(arguments, run, &handed);
    hwnas_run program = {.arguments = arguments, .name = name, .environment = handed.environment};
    const hwnas_programs programs = {.jobs = 1,
                                     .timeout = A_MONTH,
                                     .stop = run->stop,
                                     .begin = is_ready,
                                     .done = is_done,
                                     .read = read_told,
                                     .says = run->says ? say : NULL,
                                     .context = &s};
    TRY_OUT(hwnas_programs_run(&programs, &program, 1));
    *out = s.told;
    s.told = NULL;
out:
    json_decref(s.told);
    for (size_t i = 0; arguments[i]; i++)
        free(arguments[i]);
    hwnas_handed_done(&handed);
    free(name);
    return status;
}
