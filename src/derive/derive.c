#include "derive/derive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "derive/change.h"
#include "graph/elaborate.h"
#include "space/arch.h"

/* ---- Networks ---- */

static hwnas_status apply_changes(hwnas_derivation *d, const hwnas_arch *arch, hwnas_arena *scratch)
{
    const hwnas_space *space = arch->space;
    const hwnas_scope_frame frame = {.scope = space->network,
                                     .choices = hwnas_arch_values(arch, scratch)};
    for (size_t i = 0; i < space->n_changes; i++) {
        const hwnas_model_change *change = &space->changes[i];
        const hwnas_change_kind *kind;
        hwnas_value value;
        TRY(hwnas_change_kind_find(&kind, change));
        TRY(hwnas_expr_eval(&value, change->to, &frame, scratch));
        TRY(kind->apply(d, change, &value));
    }
    /* A branch that is left out may lie inside of another one. */
    const hwnas_graph *graph = d->original->graph;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const int output = graph->nodes[n].output;
        while (d->replaced_by[d->replaced_by[output]] != d->replaced_by[output])
            d->replaced_by[output] = d->replaced_by[d->replaced_by[output]];
    }
    return HWNAS_OK;
}

hwnas_status hwnas_derivation_of(hwnas_derivation *out, const hwnas_arch *arch, int batch,
                                 int *const *ranking)
{
    const hwnas_original *original;
    TRY(hwnas_base_model_original(&original, arch->space->model, batch));
    hwnas_arena *scratch = hwnas_arena_new();
    hwnas_derivation_begin(out, original);
    if (ranking)
        out->ranking = ranking;
    const hwnas_status status = apply_changes(out, arch, scratch);
    if (status != HWNAS_OK)
        hwnas_derivation_end(out);
    hwnas_arena_free(scratch);
    return status;
}

static hwnas_status build(hwnas_graph **out, const hwnas_arch *arch, int batch, bool with_weights)
{
    hwnas_derivation d;
    TRY(hwnas_derivation_of(&d, arch, batch, NULL));
    d.with_weights = with_weights;
    const hwnas_status status = hwnas_derivation_build(out, &d);
    hwnas_derivation_end(&d);
    return status;
}

static void free_model(void *model)
{
    hwnas_base_model_close(model);
}

static const hwnas_space_builder builder = {build, free_model};

hwnas_status hwnas_graph_build_trained(hwnas_graph **out, const hwnas_arch *arch, int batch)
{
    const hwnas_space_builder *own = arch->space->builder;
    return own ? own->build(out, arch, batch, true) : hwnas_graph_build(out, arch, batch);
}

/* ---- Spaces ---- */

hwnas_status hwnas_space_attach_model(hwnas_space *space)
{
    hwnas_base_model *model;
    if (!space->model_path || space->builder)
        return HWNAS_OK;
    const hwnas_status status = hwnas_base_model_open(&model, space->model_path);
    if (status != HWNAS_OK)
        return hwnas_context(status, "the model of %s", space->path);
    space->model = model;
    space->builder = &builder;
    return HWNAS_OK;
}

hwnas_status hwnas_load_space(hwnas_space **out, const char *name)
{
    hwnas_space *space;
    TRY(hwnas_space_load(&space, name));
    hwnas_status status = hwnas_space_attach_model(space);
    if (status == HWNAS_OK)
        status = hwnas_graph_check(space);
    if (status == HWNAS_OK)
        *out = space;
    else
        hwnas_space_free(space);
    return status;
}

/* ---- Writing one ---- */

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static bool is_taken(const hwnas_change_options *options, const char *name)
{
    for (size_t i = 0; i < options->n; i++)
        if (!strcmp(options->rows[i].choice, name))
            return true;
    return false;
}

/* Choices of one name get numbers. */
static void number_choices(hwnas_change_options *options)
{
    for (size_t i = 0; i < options->n; i++)
        for (size_t k = i + 1, n = 2; k < options->n; k++)
            if (!strcmp(options->rows[i].choice, options->rows[k].choice)) {
                char *numbered = NULL;
                do {
                    free(numbered);
                    numbered = hwnas_printf("%s_%zu", options->rows[k].choice, n++);
                } while (is_taken(options, numbered));
                free(options->rows[k].choice);
                options->rows[k].choice = numbered;
            }
}

/* As YAML spells any text. */
static void add_quoted(hwnas_str *out, const char *text)
{
    hwnas_str_add(out, "\"");
    for (; *text; text++) {
        if ((unsigned char)*text < ' ') {
            hwnas_str_addf(out, "\\x%02x", (unsigned)*text);
            continue;
        }
        if (*text == '"' || *text == '\\')
            hwnas_str_add(out, "\\");
        hwnas_str_addn(out, text, 1);
    }
    hwnas_str_add(out, "\"");
}

static void write_header(hwnas_str *out, const hwnas_original *o, const char *model_name,
                         const char *space_name)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, o->graph);
    hwnas_str_addf(out,
                   "hwnas: 1\nname: %s\nabout: a trained model of %.3g M parameters and %.4g "
                   "MMACs\nmodel: ",
                   space_name, (double)costs.params / 1e6, (double)costs.macs / 1e6);
    add_quoted(out, model_name);
    hwnas_str_add(out, "\n");
}

static void write_space(hwnas_str *out, const hwnas_change_options *options, const size_t *ends)
{
    hwnas_str_add(out, "choices: # the model's own value first\n");
    for (size_t i = 0; i < options->n; i++)
        hwnas_str_addf(out, "  %s: {values: [%s]}\n", options->rows[i].choice,
                       options->rows[i].values);
    hwnas_str_add(out, "changes:\n");
    for (size_t i = 0, kind = 0; i < options->n; i++) {
        while (i == ends[kind])
            kind++;
        const hwnas_change_option *row = &options->rows[i];
        for (char *c = row->about; *c; c++) /* a comment ends with its line */
            *c = (unsigned char)*c < ' ' ? '?' : *c;
        hwnas_str_addf(out, "  # %s\n  - %s: {of: ", row->about, hwnas_change_kinds[kind].name);
        add_quoted(out, row->of);
        hwnas_str_addf(out, ", to: %s}\n", row->choice);
    }
}

/* "nets/resnet-20.onnx": "resnet_20". */
static char *space_name(const char *model_path)
{
    const char *slash = strrchr(model_path, '/'), *base = slash ? slash + 1 : model_path;
    hwnas_str name = {0};
    if (*base >= '0' && *base <= '9')
        hwnas_str_add(&name, "model_");
    for (const char *at = base; *at && *at != '.' && name.n < 60; at++)
        hwnas_str_addn(&name, strchr(WORD, *at) ? at : "_", 1);
    if (!name.n)
        hwnas_str_add(&name, "model");
    return name.s;
}

/* The model as a space's file calls it: by its name where both lie in one folder. */
static hwnas_status model_name(char **out, const char *path, const char *model_path)
{
    const char *slash = strrchr(path, '/'), *model_slash = strrchr(model_path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    const size_t m = model_slash ? (size_t)(model_slash - model_path) : 0;
    if (n == m && !slash == !model_slash && !strncmp(path, model_path, n)) {
        *out = hwnas_strdup(model_slash ? model_slash + 1 : model_path);
        return HWNAS_OK;
    }
    *out = realpath(model_path, NULL);
    return *out ? HWNAS_OK : hwnas_fail(HWNAS_E_IO, NULL, "%s: %s", model_path, strerror(errno));
}

/* What could be added by hand. */
static void write_rare(hwnas_str *out, const hwnas_original *original)
{
    for (size_t i = 0; hwnas_change_kinds[i].name; i++) {
        hwnas_change_options options = {0};
        if (hwnas_change_kinds[i].is_rare)
            hwnas_change_kinds[i].list(&options, original);
        for (size_t k = 0; k < options.n; k++) {
            const hwnas_change_option *row = &options.rows[k];
            hwnas_str_addf(
                out,
                "# possible, too: %s: {values: [%s]} as a choice, and as a change\n#  - %s: {of: ",
                row->choice, row->values, hwnas_change_kinds[i].name);
            add_quoted(out, row->of);
            hwnas_str_addf(out, ", to: %s}\n", row->choice);
        }
        hwnas_change_options_done(&options);
    }
}

static hwnas_status list_options(hwnas_change_options *options, size_t *ends,
                                 const hwnas_original *original, const char *model_path,
                                 bool with_rare)
{
    for (size_t i = 0; hwnas_change_kinds[i].name; i++) {
        if (with_rare || !hwnas_change_kinds[i].is_rare)
            hwnas_change_kinds[i].list(options, original);
        ends[i] = options->n;
    }
    number_choices(options);
    return options->n
               ? HWNAS_OK
               : hwnas_hint(
                     hwnas_fail(HWNAS_E_INPUT, NULL, "nothing in %s can change", model_path),
                     "all its channels reach its input or output, and there are no x + f(x)");
}

/* That the text is read as what it was meant to be; takes the model. */
static hwnas_status check_text(const hwnas_str *text, const char *path, const char *model_path,
                               hwnas_base_model **model)
{
    hwnas_space *space;
    hwnas_status status = hwnas_space_parse(&space, path, text->s, text->n, NULL);
    if (status == HWNAS_OK) {
        space->model = *model;
        space->builder = &builder;
        *model = NULL;
        status = hwnas_file_is_same(space->model_path, model_path)
                     ? hwnas_graph_check(space)
                     : hwnas_fail(HWNAS_E_INPUT, NULL, "its name cannot be written in a space");
        hwnas_space_free(space);
    }
    return status == HWNAS_OK ? status : hwnas_context(status, "no space of %s", model_path);
}

hwnas_status hwnas_derive_space(const char *path, const char *model_path, bool with_rare)
{
    hwnas_status status = HWNAS_OK;
    hwnas_base_model *model = NULL;
    const hwnas_original *original;
    hwnas_change_options options = {0};
    size_t ends[HWNAS_MAX_CHANGE_KINDS] = {0};
    hwnas_str text = {0};
    char *name = NULL, *own_name = space_name(model_path);
    TRY_OUT(hwnas_base_model_open(&model, model_path));
    TRY_OUT(hwnas_base_model_original(&original, model, 1));
    TRY_OUT(list_options(&options, ends, original, model_path, with_rare));
    TRY_OUT(model_name(&name, path, model_path));
    write_header(&text, original, name, own_name);
    write_space(&text, &options, ends);
    if (!with_rare)
        write_rare(&text, original);
    TRY_OUT(check_text(&text, path, model_path, &model));
    TRY_OUT(hwnas_file_write(path, text.s, text.n));
out:
    hwnas_str_done(&text);
    hwnas_change_options_done(&options);
    free(name);
    free(own_name);
    hwnas_base_model_close(model);
    return status;
}
