#include "study/job_source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "study/study_facts.h"

#define FACT "source"

/* ---- Writing ---- */

static char *current_directory(void)
{
    return getcwd(NULL, 0);
}

/* By name; where the study is kept, everybody says for himself. */
static json_t *flags_json(const hwnas_job *job)
{
    json_t *flags = json_object();
    for (const hwnas_job_flag *f = job->flags; f->name; f++)
        if (strcmp(f->name, "study") != 0)
            json_object_set_new(flags, f->name, json_string(f->value));
    return flags;
}

static bool is_utf8(const char *text)
{
    json_t *json = json_string(text);
    json_decref(json);
    return json != NULL;
}

/* What is not UTF-8 cannot be kept: workers need the file then. */
static bool can_be_kept(const hwnas_job *job, const char *path, const char *directory)
{
    bool is_good = (!job->text || (is_utf8(job->text) && path && is_utf8(path))) && directory &&
                   is_utf8(directory);
    for (const hwnas_job_flag *f = job->flags; f->name; f++)
        is_good &= is_utf8(f->value);
    return is_good;
}

hwnas_status hwnas_job_keep(hwnas_store *store, const hwnas_job *job)
{
    if (job->directory)
        return HWNAS_OK;
    char *path = job->path ? hwnas_file_real(job->path) : NULL, *directory = current_directory();
    json_t *source = json_null();
    if (can_be_kept(job, path, directory))
        source = json_pack("{s:s?, s:s?, s:s, s:o}", "path", path, "text", job->text, "directory",
                           directory, "flags", flags_json(job));
    const hwnas_status status = hwnas_facts_set_json(store, FACT, source);
    json_decref(source);
    free(path);
    free(directory);
    return status;
}

/* ---- Reading ---- */

static hwnas_status load(hwnas_job **out, const json_t *source, const char *study)
{
    const char *name;
    json_t *value, *kept = json_object_get(source, "flags");
    hwnas_job_flag *flags = hwnas_alloc((json_object_size(kept) + 2) * sizeof *flags), *f = flags;
    *f++ = (hwnas_job_flag){"study", study};
    json_object_foreach(kept, name, value) *f++ = (hwnas_job_flag){name, json_string_value(value)};
    const hwnas_status status =
        hwnas_job_load_text(out, json_string_value(json_object_get(source, "path")),
                            json_string_value(json_object_get(source, "text")),
                            json_string_value(json_object_get(source, "directory")), flags);
    free(flags);
    return status;
}

static hwnas_status read_fact(json_t **out, const char *study)
{
    hwnas_store *store;
    TRY(hwnas_store_open(&store, study, HWNAS_STORE_READ));
    const hwnas_status status = hwnas_facts_json(out, store, FACT);
    hwnas_store_close(store);
    return status;
}

hwnas_status hwnas_job_load_kept(hwnas_job **out, const char *study)
{
    const hwnas_place place = {.file = study};
    json_t *source = NULL;
    TRY(read_fact(&source, study));
    const bool is_there = json_is_string(json_object_get(source, "directory")) &&
                          json_is_null(json_object_get(source, "path")) ==
                              json_is_null(json_object_get(source, "text"));
    const hwnas_status status =
        is_there ? load(out, source, study)
                 : hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the study does not keep its job"),
                              "'hwnas search JOB.yaml --study %s --workers 1' works on it with the "
                              "job's file",
                              study);
    json_decref(source);
    return status;
}
