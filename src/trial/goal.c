#include "trial/goal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* ---- Reading ---- */

enum { WORD = 64 };

typedef struct reader {
    const char *text, *at;
    hwnas_place place; /* of the text's first character */
    bool is_verbatim;
    const hwnas_job_devices *devices;
} reader;

static const char EXAMPLE[] = "write a metric, <= or >=, a number and a unit, as in "
                              "'latency.p50 <= 10 ms on cpu and params < 6 M'";

static hwnas_place place_at(const reader *r, const char *at)
{
    hwnas_place place = r->place;
    if (r->is_verbatim)
        place.column += (int)(at - r->text);
    return place;
}

static void skip_space(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

/* The word at the reader, of letters, digits, '.', '_' and '-'; "" when there is none. */
static void peek(char out[WORD], const reader *r)
{
    size_t n = 0;
    while (is_word(r->at[n]) && n < WORD - 1)
        n++;
    memcpy(out, r->at, n);
    out[n] = '\0';
}

/* Goes past this word if it is next. */
static bool take_word(reader *r, const char *word)
{
    char next[WORD];
    skip_space(r);
    peek(next, r);
    if (strcmp(next, word))
        return false;
    r->at += strlen(word);
    return true;
}

static hwnas_status no_constraint(const reader *r, const char *what)
{
    hwnas_place place = place_at(r, r->at);
    hwnas_status status =
        *r->at ? hwnas_fail(HWNAS_E_INPUT, &place,
                            "'%.80s' is not a constraint: %s expected at '%.20s'", r->text, what,
                            r->at)
               : hwnas_fail(HWNAS_E_INPUT, &place,
                            "'%.80s' is not a constraint: %s expected at its end", r->text, what);
    return hwnas_hint(status, "%s", EXAMPLE);
}

static hwnas_status read_metric(const hwnas_metric **out, reader *r)
{
    char name[WORD];
    skip_space(r);
    hwnas_place place = place_at(r, r->at);
    peek(name, r);
    if (!*name)
        return no_constraint(r, "a metric");
    TRY(hwnas_metric_find(out, name, &place));
    r->at += strlen(name);
    return HWNAS_OK;
}

/* "on DEVICE", when it is there. */
static hwnas_status read_device(int *device, reader *r, const hwnas_metric *metric)
{
    char name[WORD];
    if (!take_word(r, "on"))
        return HWNAS_OK;
    skip_space(r);
    hwnas_place place = place_at(r, r->at);
    peek(name, r);
    if (metric->source != HWNAS_FROM_DEVICE)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place, "%s is the same on every device", metric->name),
            "leave out 'on %s'", name);
    const char *names[HWNAS_MAX_DEVICES + 1] = {0};
    hwnas_str list = {0};
    for (int i = 0; i < r->devices->n; i++) {
        names[i] = r->devices->rows[i].name;
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
        if (!strcmp(names[i], name)) {
            *device = i;
            r->at += strlen(name);
            hwnas_str_done(&list);
            return HWNAS_OK;
        }
    }
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, &place, "the job has no device called '%s'", name);
    const char *near = hwnas_nearest(name, names);
    status = near     ? hwnas_hint(status, "did you mean '%s'?", near)
             : list.n ? hwnas_hint(status, "its devices are %s", list.s)
                      : hwnas_hint(status, "add device: cpu");
    hwnas_str_done(&list);
    return status;
}

/* ---- Goals ---- */

hwnas_goal hwnas_goal_of(const hwnas_metric *metric, int device, const hwnas_job_devices *devices)
{
    hwnas_goal goal = {.metric = metric, .device = device};
    bool is_said = device >= 0 && devices->n > 1;
    snprintf(goal.name, sizeof goal.name, "%s%s%s", metric->name, is_said ? " on " : "",
             is_said ? devices->rows[device].name : "");
    return goal;
}

/* The devices that a goal is meant for, as a range. */
static void range(int *first, int *last, const reader *r, const hwnas_metric *metric, int device)
{
    bool is_measured = metric->source == HWNAS_FROM_DEVICE;
    *first = is_measured && device < 0 && r->devices->n ? 0 : device;
    *last = is_measured && device < 0 && r->devices->n ? r->devices->n - 1 : device;
}

hwnas_status hwnas_goals_parse(hwnas_goal *goals, int *n, int max, const char *text,
                               const hwnas_place *place, bool is_verbatim,
                               const hwnas_job_devices *devices)
{
    reader r = {text, text, *place, is_verbatim, devices};
    const hwnas_metric *metric;
    int device = -1, first, last;
    TRY(read_metric(&metric, &r));
    TRY(read_device(&device, &r, metric));
    skip_space(&r);
    if (*r.at) {
        hwnas_place here = place_at(&r, r.at);
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &here, "'%.40s' does not belong to an objective", r.at),
            "write a metric, and 'on DEVICE' where there are several");
    }
    range(&first, &last, &r, metric, device);
    for (int d = first; d <= last; d++) {
        hwnas_goal goal = hwnas_goal_of(metric, d, devices);
        for (int i = 0; i < *n; i++)
            if (!strcmp(goals[i].name, goal.name))
                return hwnas_fail(HWNAS_E_INPUT, place, "'%s' is an objective twice", goal.name);
        if (*n == max)
            return hwnas_fail(HWNAS_E_INPUT, place, "a search has at most %d objectives", max);
        goals[(*n)++] = goal;
    }
    return HWNAS_OK;
}

int hwnas_goals_list(const hwnas_goal *out[HWNAS_MOST_GOALS], const hwnas_goals *goals)
{
    int n = 0;
    for (int i = 0; i < goals->n_objectives; i++)
        out[n++] = &goals->objectives[i];
    for (int i = 0; i < goals->n_limits; i++)
        out[n++] = &goals->limits[i].goal;
    for (int i = 0; i < goals->n_targets; i++)
        out[n++] = &goals->targets[i].goal;
    return n;
}

void hwnas_goals_of_scores(hwnas_goal *goals, int n)
{
    for (int i = 0; i < n; i++)
        if (goals[i].metric->source == HWNAS_FROM_PREDICTOR)
            goals[i].metric = &hwnas_score_metric;
}

void hwnas_limits_of_scores(hwnas_limit *limits, int n)
{
    for (int i = 0; i < n; i++) {
        hwnas_goals_of_scores(&limits[i].goal, 1);
        char *unit = strrchr(limits[i].text, ' ');
        if (limits[i].goal.metric == &hwnas_score_metric && unit && !strcmp(unit, " %"))
            *unit = '\0';
    }
}

/* ---- Limits ---- */

static hwnas_status read_operator(hwnas_limit *limit, char text[3], reader *r)
{
    skip_space(r);
    size_t n = strspn(r->at, "<>=!");
    if ((n != 1 && n != 2) || (*r->at != '<' && *r->at != '>') || (n == 2 && r->at[1] != '='))
        return no_constraint(r, "<=, <, >= or >");
    limit->is_upper = *r->at == '<';
    limit->is_strict = n == 1;
    memcpy(text, r->at, n);
    text[n] = '\0';
    r->at += n;
    return HWNAS_OK;
}

static hwnas_status read_value(double *number, double *value, char unit[WORD], reader *r,
                               const hwnas_metric *metric)
{
    char *end;
    double factor;
    skip_space(r);
    *number = strtod(r->at, &end);
    if (end == r->at || !isfinite(*number) || isalpha((unsigned char)*r->at))
        return no_constraint(r, "a number");
    r->at = end;
    skip_space(r);
    hwnas_place place = place_at(r, r->at);
    size_t n = 0;
    while (isalpha((unsigned char)r->at[n]) || r->at[n] == '%' || r->at[n] == '/')
        n++;
    bool is_unit = n && n < 8 && !(n == 2 && !strncmp(r->at, "on", n)) &&
                   !(n == 3 && !strncmp(r->at, "and", n));
    n = is_unit ? n : 0;
    memcpy(unit, r->at, n);
    unit[n] = '\0';
    TRY(hwnas_metric_unit(&factor, metric, unit, &place));
    r->at += n;
    *value = *number * factor;
    return HWNAS_OK;
}

static hwnas_status read_comparison(hwnas_limit *limits, int *n, int max, reader *r)
{
    hwnas_limit limit = {0};
    const hwnas_metric *metric;
    char operator[3], unit[WORD];
    double number;
    int device = -1, first, last;
    skip_space(r);
    limit.place = place_at(r, r->at);
    TRY(read_metric(&metric, r));
    TRY(read_device(&device, r, metric));
    TRY(read_operator(&limit, operator, r));
    TRY(read_value(&number, &limit.value, unit, r, metric));
    if (device < 0)
        TRY(read_device(&device, r, metric));
    range(&first, &last, r, metric, device);
    for (int d = first; d <= last; d++) {
        if (*n == max)
            return hwnas_fail(HWNAS_E_INPUT, &limit.place, "at most %d constraints", max);
        limit.goal = hwnas_goal_of(metric, d, r->devices);
        const char *on = strchr(limit.goal.name, ' ');
        snprintf(limit.text, sizeof limit.text, "%s %s %.10g %s%s", metric->name, operator, number,
                 *unit ? unit : metric->unit, on ? on : "");
        limits[(*n)++] = limit;
    }
    return HWNAS_OK;
}

hwnas_status hwnas_limits_parse(hwnas_limit *limits, int *n, int max, const char *text,
                                const hwnas_place *place, bool is_verbatim,
                                const hwnas_job_devices *devices)
{
    reader r = {text, text, *place, is_verbatim, devices};
    do
        TRY(read_comparison(limits, n, max, &r));
    while (take_word(&r, "and"));
    skip_space(&r);
    return *r.at ? no_constraint(&r, "'and' or the end") : HWNAS_OK;
}

/* What bounds one from above bounds the other: quantiles of one thing have an order. */
static bool is_no_less(const hwnas_metric *a, const hwnas_metric *b)
{
    return a == b || (a->of == HWNAS_LATENCY && b->of == a->of && a->per == HWNAS_OF_BATCH &&
                      b->per == a->per && a->quantile >= b->quantile);
}

static bool exclude_each_other(const hwnas_limit *upper, const hwnas_limit *lower)
{
    return upper->goal.device == lower->goal.device &&
           is_no_less(upper->goal.metric, lower->goal.metric) &&
           (upper->value < lower->value ||
            (upper->value == lower->value && (upper->is_strict || lower->is_strict)));
}

hwnas_status hwnas_limits_check(const hwnas_limit *limits, int n)
{
    for (int i = 0; i < n; i++) {
        const hwnas_limit *a = &limits[i];
        const double most = strcmp(a->goal.metric->unit, "%") ? INFINITY : 100;
        bool is_possible =
            a->is_upper ? a->value > 0 : a->value < most || (a->value == most && !a->is_strict);
        if (!is_possible)
            return hwnas_fail(HWNAS_E_INPUT, &a->place, "no network has %s", a->text);
        for (int j = 0; j < i; j++) {
            const hwnas_limit *b = &limits[j];
            if (a->is_upper != b->is_upper &&
                exclude_each_other(a->is_upper ? a : b, a->is_upper ? b : a))
                return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &a->place,
                                             "'%s' and '%s' exclude each other", b->text, a->text),
                                  "keep one of them");
        }
    }
    return HWNAS_OK;
}

double hwnas_limit_violation(const hwnas_limit *limit, double low, double high)
{
    double excess = limit->is_upper ? high - limit->value : limit->value - low;
    if (isnan(excess))
        return INFINITY;
    if (excess < 0 || (excess == 0 && !limit->is_strict))
        return 0;
    /* A strict limit that is just met is missed by a little. */
    return fmax(excess, 1e-12) / fmax(fabs(limit->value), 1e-300);
}
