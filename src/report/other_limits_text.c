#include "report/other_limits_text.h"

/* "latency.p50 <= 8 ms and params < 6 M", as the search had them. */
static void add_own(hwnas_str *out, const hwnas_summary *s)
{
    const json_t *own = json_object_get(s->identity, "constraints"), *text;
    size_t i;
    hwnas_str_add(out, "            asked now; the search had ");
    json_array_foreach(own, i, text)
        hwnas_str_addf(out, "%s%s", i ? " and " : "", json_string_value(text));
    hwnas_str_add(out, json_array_size(own) ? "\n" : "none\n");
}

static size_t n_good(const hwnas_summary *s)
{
    return s->n_finished - s->n_failed;
}

void hwnas_other_limits_text(hwnas_str *out, const hwnas_summary *s)
{
    if (!s->has_other_limits)
        return;
    add_own(out, s);
    for (int i = 0; i < s->job.goals.n_limits; i++) {
        const char *name = s->job.goals.limits[i].goal.name;
        if (s->n_without[i] && s->n_without[i] == n_good(s))
            hwnas_str_addf(out, "            %s was never measured: no trial has it\n", name);
        else if (s->n_without[i])
            hwnas_str_addf(out, "            %s was not measured of %zu of %zu networks\n", name,
                           s->n_without[i], n_good(s));
    }
    if (s->n_left_open)
        hwnas_str_addf(out,
                       "            %zu network%s may meet them: the search did not measure %s; "
                       "another with these constraints and --warm-start goes on from here\n",
                       s->n_left_open, s->n_left_open == 1 ? "" : "s",
                       s->n_left_open == 1 ? "it" : "those");
}

json_t *hwnas_other_limits_json(const hwnas_summary *s)
{
    if (!s->has_other_limits)
        return json_null();
    json_t *constraints = json_array(), *without = json_object();
    for (int i = 0; i < s->job.goals.n_limits; i++) {
        const hwnas_limit *limit = &s->job.goals.limits[i];
        json_array_append_new(constraints, json_string(limit->text));
        json_object_set_new(without, limit->goal.name, json_integer((json_int_t)s->n_without[i]));
    }
    return json_pack("{s:o, s:o, s:I}", "constraints", constraints, "without", without, "left_open",
                     (json_int_t)s->n_left_open);
}
