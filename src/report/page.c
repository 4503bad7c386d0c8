#include "report/page.h"

#include <math.h>

#include "report/explain_text.h"
#include "report/front.h"

static json_t *objectives_json(const hwnas_goals *goals)
{
    json_t *list = json_array();
    for (int i = 0; i < goals->n_objectives; i++)
        json_array_append_new(list, json_string(goals->objectives[i].name));
    return list;
}

static json_t *limits_json(const hwnas_goals *goals)
{
    json_t *list = json_array();
    for (int i = 0; i < goals->n_limits; i++) {
        const hwnas_limit *limit = &goals->limits[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:s, s:b}", "text", limit->text,
                                              "metric", limit->goal.name, "value",
                                              limit->value / limit->goal.metric->scale, "unit",
                                              limit->goal.metric->unit, "upper", limit->is_upper));
    }
    return list;
}

json_t *hwnas_page_json(const hwnas_summary *s, const hwnas_explanation *explanation,
                        const char *why_not, json_t *predictions)
{
    /* What failed is among the trials. */
    json_t *study = hwnas_front_json(s);
    json_object_del(study, "failures");
    json_t *trials = hwnas_page_columns(s);
    json_object_set(trials, "predictions", predictions);
    json_t *page = json_pack(
        "{s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:s?}", "format", "hwnas.page", "version", 1,
        "hwnas", hwnas_version(), "study", study, "objectives", objectives_json(&s->job.goals),
        "limits", limits_json(&s->job.goals), "trials", trials, "explanation",
        explanation ? hwnas_explain_json(explanation) : json_null(), "no_explanation", why_not);
    if (page)
        hwnas_page_add_networks(page, s);
    return page;
}
