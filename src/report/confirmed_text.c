#include "report/confirmed_text.h"

#include "study/confirm.h"

/* How the winner's fresh measurements differ from the first one. */
static void add_confirmed(hwnas_str *out, const hwnas_summary *s, const hwnas_summary_front *front)
{
    const hwnas_goals *goals = &s->job.goals;
    for (int d = 0; d < goals->devices.n && front->winner >= 0; d++) {
        const hwnas_trial *winner = &s->trials[front->winner];
        const hwnas_goal p50 = hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), d, &goals->devices);
        const json_t *found = hwnas_confirmed_of(s->confirmed, winner->number, p50.name);
        const double first = json_number_value(json_object_get(found, "first"));
        const hwnas_metric m = hwnas_metric_shown(p50.metric, first);
        if (found)
            hwnas_str_addf(out,
                           "confirmed   trial %llu: %s %.*f %s at first, %.*f [%.*f, %.*f] in %d "
                           "fresh rounds beside %d other networks\n",
                           (unsigned long long)winner->number, p50.name, m.decimals,
                           first / m.scale, m.unit, m.decimals,
                           json_number_value(json_object_get(found, "value")) / m.scale, m.decimals,
                           json_number_value(json_object_get(found, "low")) / m.scale, m.decimals,
                           json_number_value(json_object_get(found, "high")) / m.scale,
                           (int)json_integer_value(json_object_get(found, "rounds")),
                           (int)json_integer_value(json_object_get(found, "references")));
    }
}

/* How many of the front's networks a quick device has run without being quick. */
static void add_thorough(hwnas_str *out, const hwnas_summary *s)
{
    const char *key, *device = NULL;
    int n = 0, n_failed = 0;
    json_t *note;
    json_object_foreach(s->thorough, key, note)
    {
        n++;
        n_failed += json_object_get(note, "failed") != NULL;
        device = json_string_value(json_object_get(note, "device"));
    }
    if (n)
        hwnas_str_addf(out, "measured    %d network%s of the front again on %s", n - n_failed,
                       n - n_failed == 1 ? "" : "s", device);
    if (n_failed)
        hwnas_str_addf(out, "; %d could not be", n_failed);
    hwnas_str_add(out, n ? "\n" : "");
}

void hwnas_confirmed_text(hwnas_str *out, const hwnas_summary *s)
{
    add_thorough(out, s);
    for (int f = 0; f < s->n_fronts; f++)
        add_confirmed(out, s, &s->fronts[f]);
}

json_t *hwnas_thorough_json(const hwnas_summary *s)
{
    json_t *list = json_array(), *note;
    const char *key;
    json_object_foreach(s->thorough, key, note) json_array_append(list, note);
    return list;
}

json_t *hwnas_confirmed_json(const hwnas_summary *s)
{
    json_t *list = json_array(), *found;
    const char *key;
    json_object_foreach(s->confirmed, key, found) json_array_append(list, found);
    return list;
}
