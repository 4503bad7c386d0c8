/* training.c: hwnas/training.h: networks to train, and predictors from their results. */
#include <hwnas/training.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sized_options.h"
#include "derive/derive.h"
#include "predict/suggest.h"
#include "predict/suggest_files.h"
#include "predict/sample.h"
#include "report/predictor_text.h"
#include "report/training_text.h"

static const char standard_target[] = "accuracy_pct";

/* ---- Which networks to train ---- */

/* The name that `predictor import` will find the space by, from wherever it is called. */
static char *lasting_name(const char *space)
{
    char *absolute = hwnas_file_exists(space) ? hwnas_file_real(space) : NULL;
    return absolute ? absolute : hwnas_strdup(space);
}

static hwnas_status check_suggestion(const hwnas_suggestion_options *o)
{
    const hwnas_place place = {.file = o->folder};
    if (o->n > 1000 || o->pool > 5000)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "at most 1000 networks of a pool of 5000");
    if (o->folder && !access(o->folder, F_OK))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "there is such a file already"),
                          "name a directory that is not there yet; results filled in before stay "
                          "where they are");
    return HWNAS_OK;
}

/* A note for each line. */
static void add_notes(hwnas_report *report, char *lines)
{
    char *rest = lines;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line)
            hwnas_report_add_note(report, line);
}

/* By its networks; a folder has their files. */
static json_t *suggestion_json(const char *space, const hwnas_suggestion_options *o,
                               hwnas_arch *const *archs)
{
    json_t *codes = json_array();
    for (size_t i = 0; i < o->n; i++) {
        char *code = hwnas_arch_code(archs[i]);
        json_array_append_new(codes, json_string(code));
        free(code);
    }
    return json_pack("{s:s, s:i, s:s, s:s, s:s?, s:o}", "format", "hwnas.suggestion", "version", 1,
                     "space", space, "target", o->target ? o->target : standard_target, "folder",
                     o->folder, "networks", codes);
}

/* Writes the table into the directory, or gives it. */
static hwnas_status give_suggestion(hwnas_report **out, const hwnas_suggestion_options *o,
                                    hwnas_arch *const *archs, hwnas_rendering *table)
{
    hwnas_status status = HWNAS_OK;
    hwnas_str missing = {0};
    hwnas_rendering told = {0};
    const char *folder = o->folder;
    if (!folder) {
        *out = hwnas_report_of(table);
        return HWNAS_OK;
    }
    TRY_OUT(hwnas_suggest_write(&missing, folder, archs, o->n, &table->csv));
    hwnas_str_addf(&told.text,
                   "wrote %zu networks to %s\nTrain each as you would train the winner, fill their "
                   "results into %s/results.csv,\nthen: hwnas predictor import %s/results.csv\n",
                   o->n, folder, folder, folder);
    told.json = json_incref(table->json);
    *out = hwnas_report_of(&told);
    if (missing.n)
        add_notes(*out, missing.s);
out:
    hwnas_str_done(&missing);
    return status;
}

hwnas_status hwnas_space_suggest(hwnas_report **out, const char *space_name,
                                 const hwnas_suggestion_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_suggestion_options o;
    hwnas_space *space = NULL;
    hwnas_table *known = NULL;
    hwnas_rendering table = {0};
    TRY(TAKE_OPTIONS(&o, given));
    o.n = o.n ? o.n : 20;
    TRY(check_suggestion(&o));
    hwnas_suggest_options how = {.n = o.n, .pool = o.pool, .seed = o.seed, .proxy = o.proxy};
    hwnas_arch **archs = hwnas_alloc(o.n * sizeof *archs);
    char *name = lasting_name(space_name);
    TRY_OUT(hwnas_load_space(&space, space_name));
    if (o.data) {
        TRY_OUT(hwnas_table_load(&known, space, o.data));
        how.known = (const hwnas_arch *const *)known->archs;
        how.n_known = known->n;
    }
    TRY_OUT(hwnas_suggest(archs, space, &how));
    TRY_OUT(hwnas_suggest_table(&table.csv, name, archs, o.n, o.target ? o.target : standard_target,
                                o.folder != NULL));
    table.json = suggestion_json(name, &o, archs);
    TRY_OUT(give_suggestion(out, &o, archs, &table));
out:
    for (size_t i = 0; i < o.n; i++)
        hwnas_arch_free(archs[i]);
    free(archs);
    free(name);
    hwnas_rendering_done(&table);
    hwnas_table_free(known);
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_results_import(hwnas_report **out, const hwnas_results_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_results_options o;
    hwnas_space *space = NULL;
    hwnas_import_result result;
    hwnas_rendering told = {0};
    char *name = NULL, *standard = NULL;
    TRY(TAKE_OPTIONS(&o, given));
    if (!o.data)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "which table?");
    hwnas_import_options how = {.data = o.data, .target = o.target ? o.target : standard_target};
    if (o.printed && !(how.printed = hwnas_printed_of(o.printed)))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "results are printed as percent or fraction, not '%s'", o.printed);
    if (o.space)
        name = hwnas_strdup(o.space);
    else
        TRY_OUT(hwnas_import_space(&name, o.data));
    TRY_OUT(hwnas_load_space(&space, name));
    standard = hwnas_printf("%s.results.csv", space->name);
    how.into = o.into ? o.into : standard;
    TRY_OUT(hwnas_import(&result, space, &how));
    hwnas_import_tell(&told, &result, how.into, name, how.target);
    *out = hwnas_report_of(&told);
out:
    free(standard);
    free(name);
    hwnas_space_free(space);
    return status;
}

/* ---- Predictors ---- */

/* The command of the program that does the same, for the card. */
static char *fit_command(const hwnas_fitting_options *o)
{
    hwnas_str command = {0};
    const char *const words[] = {o->space, o->data, "--target", o->target, "--out", o->out};
    hwnas_str_add(&command, "hwnas predictor fit");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        hwnas_str_add(&command, " ");
        hwnas_str_add_word(&command, words[i]);
    }
    if (o->kind)
        hwnas_str_addf(&command, " --kind %s", o->kind);
    if (o->folds != 5)
        hwnas_str_addf(&command, " --folds %d", o->folds);
    if (o->seed)
        hwnas_str_addf(&command, " --seed %llu", (unsigned long long)o->seed);
    return command.s;
}

static hwnas_status check_fitting(const hwnas_fitting_options *o)
{
    if (!o->space || !o->data || !o->target || !o->out)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "a fit needs a space, data, a target and an output");
    if (o->folds < 3 || o->folds > 100)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "folds must be between 3 and 100");
    TRY(hwnas_file_check_output(o->out, o->space));
    return hwnas_file_check_output(o->out, o->data);
}

hwnas_status hwnas_results_fit(hwnas_report **out, const hwnas_fitting_options *given)
{
    IN_C_LOCALE;
    hwnas_fitting_options o;
    hwnas_fit_result result;
    hwnas_rendering told = {0};
    char how[48];
    TRY(TAKE_OPTIONS(&o, given));
    o.folds = o.folds ? o.folds : 5;
    TRY(check_fitting(&o));
    char *command = fit_command(&o);
    const hwnas_fit_options options = {.space = o.space,
                                       .data = o.data,
                                       .target = o.target,
                                       .out = o.out,
                                       .command = command,
                                       .kind = o.kind,
                                       .folds = o.folds,
                                       .seed = o.seed};
    const hwnas_status status = hwnas_predictor_fit(&result, &options);
    free(command);
    TRY(status);
    snprintf(how, sizeof how, "%d-fold cross-validation", o.folds);
    hwnas_scores_tell(&told, &result.scores, how, result.chosen);
    free(result.chosen);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}

hwnas_status hwnas_predictor_judge(hwnas_report **out, hwnas_predictor *predictor, const char *data,
                                   const char *target)
{
    IN_C_LOCALE;
    hwnas_predictor_scores scores;
    hwnas_rendering told = {0};
    TRY(hwnas_predictor_eval(&scores, predictor, hwnas_predictor_space(predictor), data, target));
    hwnas_scores_tell(&told, &scores, "known results", NULL);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}

hwnas_status hwnas_predictor_score_table(hwnas_report **out, hwnas_predictor *predictor,
                                         const char *data)
{
    IN_C_LOCALE;
    hwnas_table *table;
    hwnas_rendering told = {0};
    TRY(hwnas_table_load(&table, hwnas_predictor_space(predictor), data));
    hwnas_estimate *estimates = hwnas_alloc(table->n * sizeof *estimates);
    const hwnas_status status = hwnas_predictor_score(
        estimates, predictor, (const hwnas_arch *const *)table->archs, table->n);
    if (status == HWNAS_OK) {
        hwnas_estimates_csv(&told.csv, table, estimates, predictor);
        *out = hwnas_report_of(&told);
    }
    free(estimates);
    hwnas_table_free(table);
    return status;
}

/* The space that the file names; `name`: another that has its choices. NULL: fitted for any. */
static hwnas_status open_space_of(hwnas_space **out, const json_t *file, const char *name)
{
    const char *own = json_string_value(json_object_get(json_object_get(file, "space"), "name"));
    *out = NULL;
    if (!name && own && !strcmp(own, HWNAS_ANY_SPACE))
        return HWNAS_OK;
    const hwnas_status status = hwnas_load_space(out, name ? name : own ? own : "");
    return status == HWNAS_OK || name
               ? status
               : hwnas_hint(status, "name the space's file: hwnas predictor show PREDICTOR SPACE");
}

hwnas_status hwnas_predictor_show(hwnas_report **out, const char *name, const char *space_name)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_predictor *predictor = NULL;
    hwnas_rendering told = {0};
    json_t *file = NULL;
    TRY_OUT(hwnas_predictor_read(&file, name));
    TRY_OUT(open_space_of(&space, file, space_name));
    if (space) /* which finds what is damaged */
        TRY_OUT(hwnas_predictor_load(&predictor, name, space));
    hwnas_predictor_tell(&told, name, file,
                         space && hwnas_predictor_domain(predictor) ? space : NULL,
                         hwnas_predictor_sizes(predictor));
    *out = hwnas_report_of(&told);
out:
    hwnas_predictor_free(predictor);
    hwnas_space_free(space);
    json_decref(file);
    return status;
}

hwnas_status hwnas_space_encode(hwnas_report **out, const hwnas_space *space, const char *data,
                                const char *name)
{
    IN_C_LOCALE;
    const hwnas_vector_layout *layout;
    hwnas_table *table;
    hwnas_rendering told = {0};
    TRY(hwnas_vector_find(&layout, name ? name : "one-hot"));
    TRY(hwnas_table_load(&table, space, data));
    hwnas_vectors_csv(&told.csv, table, space, layout);
    hwnas_table_free(table);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}
