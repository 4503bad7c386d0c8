/* compare_json.c: a comparison as JSON and CSV, from one table. */
#include <math.h>
#include <string.h>

#include "profile/fields.h"
#include "profile/record.h"
#include "report/compare_text.h"
#include "report/profile_text.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *get_device(const hwnas_device_choice *choice)
{
    return json_string(choice->device);
}

static json_t *get_source(const hwnas_device_choice *choice)
{
    return json_string(choice->profile->source);
}

static json_t *get_flaw(const hwnas_device_choice *choice)
{
    return choice->flaw ? json_string(choice->flaw) : json_null();
}

static json_t *get_price(const hwnas_device_choice *choice)
{
    return choice->price ? json_real(choice->price->per_hour) : json_null();
}

static json_t *get_rate(const hwnas_device_choice *choice)
{
    return number(choice->rate);
}

static json_t *get_machines(const hwnas_device_choice *choice)
{
    return json_integer(choice->machines);
}

static json_t *get_machine_rate(const hwnas_device_choice *choice)
{
    return number(choice->machine_rate);
}

static json_t *get_utilisation(const hwnas_device_choice *choice)
{
    return number(choice->machine_rate / choice->row->items_per_second);
}

static json_t *get_fill(const hwnas_device_choice *choice)
{
    return number(choice->response.fill);
}

static json_t *get_wait(const hwnas_device_choice *choice)
{
    return number(choice->response.wait);
}

static json_t *get_total(const hwnas_device_choice *choice)
{
    return number(choice->response.total);
}

static json_t *get_per_hour(const hwnas_device_choice *choice)
{
    return number(choice->per_hour);
}

static json_t *get_per_million(const hwnas_device_choice *choice)
{
    return number(choice->per_million);
}

static json_t *get_per_price(const hwnas_device_choice *choice)
{
    return number(choice->requests_per_price);
}

static json_t *get_steps(const hwnas_device_choice *choice)
{
    return json_integer(choice->train.steps);
}

static json_t *get_train_seconds(const hwnas_device_choice *choice)
{
    return number(choice->train.seconds);
}

static json_t *get_train_low(const hwnas_device_choice *choice)
{
    return number(choice->train.low);
}

static json_t *get_train_high(const hwnas_device_choice *choice)
{
    return number(choice->train.high);
}

static json_t *get_train_cost(const hwnas_device_choice *choice)
{
    return number(choice->train.money);
}

static json_t *get_speed_to_base(const hwnas_device_choice *choice)
{
    return number(choice->speed_to_base);
}

static json_t *get_cost_to_base(const hwnas_device_choice *choice)
{
    return number(choice->cost_to_base);
}

/* When a column is there. The answers are absent where there is a flaw. */
typedef enum column_kind { SETTING, SERVING, TRAINING } column_kind;

static const struct column {
    const char *name; /* in JSON; NULL ends the table */
    const char *column;
    column_kind kind;
    json_t *(*get)(const hwnas_device_choice *choice);
} columns[] = {
    {"device", "device", SETTING, get_device},
    {"source", "source", SETTING, get_source},
    {"price_per_hour", "price_per_hour", SETTING, get_price},
    {"flaw", "flaw", SETTING, get_flaw},
    {"requests_per_second", "requests_per_s", SERVING, get_rate},
    {"machines", "machines_count", SERVING, get_machines},
    {"machine_requests_per_second", "machine_requests_per_s", SERVING, get_machine_rate},
    {"utilisation", "utilisation", SERVING, get_utilisation},
    {"fill_seconds", "fill_s", SERVING, get_fill},
    {"wait_seconds", "wait_s", SERVING, get_wait},
    {"served_seconds", "served_s", SERVING, get_total},
    {"cost_per_hour", "cost_per_hour", SERVING, get_per_hour},
    {"cost_per_million", "cost_per_million", SERVING, get_per_million},
    {"requests_per_second_per_price", "requests_per_s_per_price", SERVING, get_per_price},
    {"samples_per_second", "samples_per_s", TRAINING, get_rate},
    {"cost_per_million", "cost_per_million", TRAINING, get_per_million},
    {"steps", "steps_count", TRAINING, get_steps},
    {"seconds", "seconds", TRAINING, get_train_seconds},
    {"low_seconds", "low_s", TRAINING, get_train_low},
    {"high_seconds", "high_s", TRAINING, get_train_high},
    {"cost", "cost", TRAINING, get_train_cost},
    {"speed_to_base", "speed_to_base", TRAINING, get_speed_to_base},
    {"cost_to_base", "cost_to_base", TRAINING, get_cost_to_base},
    {0},
};

static bool is_shown(const struct column *column, const hwnas_comparison *c)
{
    return column->kind == SETTING || (column->kind == TRAINING) == (c->query.training != 0);
}

static json_t *choice_json(const hwnas_comparison *comparison, const hwnas_device_choice *choice)
{
    json_t *json = json_object(), *measured = json_object();
    for (const struct column *c = columns; c->name; c++)
        if (is_shown(c, comparison) && (c->kind == SETTING || !choice->flaw))
            json_object_set_new(json, c->name, c->get(choice));
    for (const hwnas_profile_field *f = hwnas_profile_fields; f->name; f++)
        if (hwnas_field_applies(f, choice->row))
            json_object_set_new(measured, f->name, hwnas_field_json(f, choice->row));
    json_object_set_new(json, "measured", measured);
    return json;
}

static json_t *answer_json(const hwnas_comparison *c, const hwnas_answer *answer)
{
    json_t *choices = json_array();
    for (size_t i = 0; i < answer->n; i++)
        json_array_append_new(choices, choice_json(c, &c->choices[answer->first + i]));
    json_t *json = json_pack("{s:s, s:s?, s:s?, s:o, s:o}", "model", answer->model, "arch",
                             answer->arch, "doubt", answer->doubt, "ratio", number(answer->ratio),
                             "choices", choices);
    const hwnas_device_choice *best[] = {answer->winner, answer->runner_up};
    for (int i = 0; i < 2; i++) /* as positions in `choices` */
        json_object_set_new(json, i ? "runner_up" : "winner",
                            best[i] ? json_integer(best[i] - c->choices - (long)answer->first)
                                    : json_null());
    return json;
}

json_t *hwnas_comparison_json(const hwnas_comparison *c)
{
    const hwnas_query *q = &c->query;
    json_t *answers = json_array();
    for (size_t i = 0; i < c->n_answers; i++)
        json_array_append_new(answers, answer_json(c, &c->answers[i]));
    json_t *json =
        json_pack("{s:s, s:i, s:s?, s:f, s:o, s:o, s:f, s:o}", "format", "hwnas.comparison",
                  "version", 1, "currency", c->prices ? c->prices->currency : NULL, "percentile",
                  q->percentile, "target_seconds", number(q->target), "load_per_second",
                  q->load > 0 ? json_real(q->load) : json_null(), "utilisation_limit",
                  q->utilisation, "networks", answers);
    json_object_set_new(json, "training", json_string(hwnas_optimizer_name(q->training)));
    if (q->training) {
        json_object_set_new(json, "base", q->base ? json_string(q->base) : json_null());
        json_object_set_new(json, "plan", hwnas_training_plan_json(&q->plan));
    }
    return json;
}

void hwnas_comparison_csv(hwnas_str *out, const hwnas_comparison *c)
{
    for (const struct column *column = columns; column->name; column++)
        if (is_shown(column, c))
            hwnas_str_addf(out, "%s,", column->column);
    for (const hwnas_profile_field *f = hwnas_profile_fields; f->name; f++)
        hwnas_str_addf(out, "%s%s%s", f == hwnas_profile_fields ? "" : ",",
                       strcmp(f->column, "device") ? "" : "measured_", f->column);
    hwnas_str_add(out, "\n");
    for (size_t i = 0; i < c->n_choices; i++) {
        const hwnas_device_choice *choice = &c->choices[i];
        for (const struct column *column = columns; column->name; column++) {
            if (!is_shown(column, c))
                continue;
            if (column->kind == SETTING || !choice->flaw)
                hwnas_csv_value(out, column->get(choice));
            hwnas_str_add(out, ",");
        }
        hwnas_profile_csv_row(out, choice->row);
    }
}
