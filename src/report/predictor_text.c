#include "report/predictor_text.h"

#include <math.h>
#include <string.h>

#include "base/json_number.h"
#include "predict/extrapolation.h"
#include "report/grid.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double score(const json_t *file, const char *key)
{
    return hwnas_json_number(json_object_get(file, "cross_validation"), key);
}

static void add_head(hwnas_str *out, const char *name, const json_t *file)
{
    const char *space = text_of(json_object_get(file, "space"), "name"),
               *unit = text_of(file, "unit");
    hwnas_str_addf(out, "%s: %s, fitted to %lld rows of %s%s\n", name, text_of(file, "kind"),
                   (long long)json_integer_value(json_object_get(file, "rows")), space,
                   strcmp(space, "any") ? "" : " space");
    hwnas_str_addf(out, "estimates  %s%s%s%s\n", text_of(file, "target"), *unit ? " (" : "", unit,
                   *unit ? ")" : "");
    if (isnan(score(file, "kendall_tau")))
        return;
    hwnas_str_addf(out, "held out   Kendall tau %.3f, root mean squared error %.4g%s%s",
                   score(file, "kendall_tau"), score(file, "rmse"), *unit ? " " : "", unit);
    if (!isnan(score(file, "coverage_90")))
        hwnas_str_addf(out, "; %.1f %% inside the 90 %% interval",
                       100 * score(file, "coverage_90"));
    hwnas_str_add(out, "\n");
}

/* ---- Choices ---- */

/* What an estimate's deviation grows by where a choice is outside. */
static char *widening(const hwnas_space *space, const hwnas_choice *choice, const json_t *errors,
                      const json_t *seen, const json_t *unseen)
{
    bool is_known;
    if (!errors || !json_array_size(unseen))
        return hwnas_strdup("-");
    const double most = hwnas_extrapolation_most(&is_known, errors, space, choice, seen, unseen);
    return hwnas_printf(is_known ? "up to %.3g" : "%.3g or more", most);
}

static json_t *tell_choice(hwnas_grid *grid, const hwnas_space *space, const hwnas_choice *choice,
                           const json_t *domain, const json_t *errors)
{
    const json_t *error = json_object_get(json_object_get(errors, "choices"), choice->name);
    json_t *seen = json_object_get(domain, choice->name);
    json_t *unseen = hwnas_domain_unseen(domain, space, choice);
    hwnas_str words = {0};
    hwnas_grid_cell(grid, "  %s", choice->name);
    hwnas_labels_text(&words, seen);
    hwnas_grid_take(grid, words.s);
    words = (hwnas_str){0};
    hwnas_labels_text(&words, unseen);
    hwnas_grid_take(grid, words.s);
    hwnas_grid_take(grid, widening(space, choice, errors, seen, unseen));
    return json_pack("{s:s, s:o, s:o, s:o}", "name", choice->name, "seen",
                     seen ? json_incref(seen) : json_array(), "unseen", unseen, "left_out",
                     error ? json_incref((json_t *)error) : json_null());
}

static json_t *tell_choices(hwnas_str *out, const hwnas_space *space, const json_t *domain,
                            const json_t *errors)
{
    json_t *choices = json_array();
    hwnas_grid grid = {0};
    hwnas_grid_column(&grid, "  choice", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "learned from", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "not seen", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "deviation there", HWNAS_GRID_LEFT);
    for (size_t c = 0; c < space->n_choices; c++)
        json_array_append_new(choices,
                              tell_choice(&grid, space, &space->choices[c], domain, errors));
    hwnas_str_add(out, "\n");
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out, "\nA search stays among the values learned from; 'domain: free' searches "
                       "all.\n");
    return choices;
}

/* ---- Facts about the graphs ---- */

/* What a logarithm is of is easier to read. */
static void add_fact(hwnas_grid *grid, const char *name, double low, double high)
{
    const bool is_log = !strncmp(name, "log ", 4);
    hwnas_grid_cell(grid, "  %s", is_log ? name + 4 : name);
    hwnas_grid_cell(grid, "%.4g", is_log ? exp(low) : low);
    hwnas_grid_cell(grid, "%.4g", is_log ? exp(high) : high);
}

static json_t *tell_facts(hwnas_str *out, const json_t *names, const json_t *ranges)
{
    json_t *facts = json_array(), *range;
    hwnas_grid grid = {0};
    size_t i;
    hwnas_grid_column(&grid, "  fact of the networks", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "from", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "to", HWNAS_GRID_RIGHT);
    json_array_foreach(ranges, i, range)
    {
        const char *name = json_string_value(json_array_get(names, i));
        const double low = json_number_value(json_array_get(range, 0));
        const double high = json_number_value(json_array_get(range, 1));
        if (!name)
            continue;
        add_fact(&grid, name, low, high);
        json_array_append_new(facts,
                              json_pack("{s:s, s:f, s:f}", "name", name, "low", low, "high", high));
    }
    if (json_array_size(facts)) {
        hwnas_str_add(out, "\n");
        hwnas_grid_text(out, &grid);
    }
    hwnas_grid_done(&grid);
    return facts;
}

/* What an estimate's deviation grows by for each factor of 2 beyond an end. */
static json_t *tell_sizes(hwnas_str *out, const hwnas_sizes *sizes, const json_t *errors,
                          const char *unit)
{
    const char *space = *unit ? " " : "";
    json_t *told = json_array();
    for (size_t i = 0; sizes && i < sizes->n; i++) {
        const char *name = sizes->ranges[i].name + strlen("log ");
        hwnas_size_error error = hwnas_extrapolation_of_size(errors, &sizes->ranges[i]);
        error.below *= log(2);
        error.above *= log(2);
        hwnas_str_addf(out, "%s%s", i ? "; " : "\nOther sizes are outside as well: ", name);
        if (errors)
            hwnas_str_addf(out, " (deviation for a factor of 2: %.3g%s%s below, %.3g%s%s above)",
                           error.below, space, unit, error.above, space, unit);
        json_array_append_new(told,
                              json_pack("{s:s, s:o, s:o}", "name", name, "below",
                                        errors ? json_real(error.below) : json_null(), "above",
                                        errors ? json_real(error.above) : json_null()));
    }
    hwnas_str_add(out, sizes && sizes->n ? ".\n" : "");
    return told;
}

void hwnas_predictor_tell(hwnas_rendering *out, const char *name, const json_t *file,
                          const hwnas_space *space, const hwnas_sizes *sizes)
{
    const json_t *domain = json_object_get(file, "domain");
    json_t *errors = json_object_get(file, "extrapolation"), *spread;
    json_t *choices = NULL, *scores = json_object_get(file, "cross_validation");
    add_head(&out->text, name, file);
    if (space && domain)
        choices = tell_choices(&out->text, space, domain, errors);
    else if (space)
        hwnas_str_add(&out->text,
                      "It was fitted before a predictor kept what it has learned from.\n");
    json_t *facts = tell_facts(&out->text, json_object_get(file, "facts"),
                               json_object_get(file, "fact_ranges"));
    json_t *outside = tell_sizes(&out->text, sizes, errors, text_of(file, "unit"));
    spread = json_object_get(errors, "table_sd");
    out->json = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "format",
        "hwnas.predictor", "version", 1, "name", name, "kind", text_of(file, "kind"), "space",
        text_of(json_object_get(file, "space"), "name"), "target", text_of(file, "target"), "unit",
        text_of(file, "unit"), "rows", json_integer_value(json_object_get(file, "rows")),
        "cross_validation", scores ? json_incref(scores) : json_null(), "choices",
        choices ? choices : json_null(), "spread", spread ? json_incref(spread) : json_null(),
        "facts", facts, "sizes", outside);
}
