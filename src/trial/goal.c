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
    hwnas_job_devices *devices;
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
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-' || c == '/';
}

/* The word at the reader, of letters, digits, '.', '_', '-' and '/'; "" when there is none. */
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

static hwnas_status read_metric(const hwnas_metric **out, char phase[HWNAS_PHASE_NAME], reader *r)
{
    char name[WORD];
    skip_space(r);
    hwnas_place place = place_at(r, r->at);
    peek(name, r);
    if (!*name)
        return no_constraint(r, "a metric");
    TRY(hwnas_metric_find(out, phase, name, &place));
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
    for (int i = 0, n = 0; i < r->devices->n; i++) {
        bool is_listed = false;
        for (int k = 0; k < n; k++)
            is_listed |= !strcmp(names[k], r->devices->rows[i].name);
        if (is_listed)
            continue; /* another phase on it */
        names[n++] = r->devices->rows[i].name;
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", r->devices->rows[i].name);
        if (!strcmp(r->devices->rows[i].name, name)) {
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

/* There is more than one device, however many phases each has. */
static bool are_several(const hwnas_job_devices *devices)
{
    for (int i = 1; i < devices->n; i++)
        if (strcmp(devices->rows[i].name, devices->rows[0].name) != 0)
            return true;
    return false;
}

hwnas_row_name hwnas_job_row_name(const hwnas_job_devices *devices, int row)
{
    const hwnas_job_device *d = &devices->rows[row];
    hwnas_row_name name;
    if (!*d->phase)
        snprintf(name.text, sizeof name.text, "%.63s", d->name);
    else if (!are_several(devices))
        snprintf(name.text, sizeof name.text, "%s", d->phase);
    else
        snprintf(name.text, sizeof name.text, "%s.%.63s", d->phase, d->name);
    return name;
}

hwnas_goal hwnas_goal_in(const hwnas_metric *metric, const char *phase)
{
    hwnas_goal goal = {.metric = metric, .device = -1};
    const bool is_said = *phase && !metric->phase;
    snprintf(goal.phase, sizeof goal.phase, "%s", phase);
    snprintf(goal.name, sizeof goal.name, "%s%s%s", is_said ? phase : "", is_said ? "." : "",
             metric->name);
    return goal;
}

hwnas_goal hwnas_goal_of(const hwnas_metric *metric, int device, const hwnas_job_devices *devices)
{
    hwnas_goal goal = hwnas_goal_in(metric, device < 0 ? "" : devices->rows[device].phase);
    goal.device = device;
    if (device >= 0 && are_several(devices)) {
        const size_t n = strlen(goal.name);
        snprintf(goal.name + n, sizeof goal.name - n, " on %s", devices->rows[device].name);
    }
    return goal;
}

/* The rows that a goal is meant for. */
typedef struct rows {
    int n, at[HWNAS_MAX_DEVICES];
} rows;

/* The row of a phase on the device of another row; -1: there is none. */
static int find_row(const hwnas_job_devices *devices, int device, const char *phase)
{
    for (int i = 0; i < devices->n; i++)
        if (!strcmp(devices->rows[i].name, devices->rows[device].name) &&
            !strcmp(devices->rows[i].phase, phase))
            return i;
    return -1;
}

static hwnas_status add_row(int *out, hwnas_job_devices *devices, int device, const char *phase,
                            const hwnas_place *place)
{
    if (!devices->adds_phases)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place, "there is no phase '%s' here", phase),
                          "a search of a space with phases has them, by the names in its file");
    if (devices->n == HWNAS_MAX_DEVICES)
        return hwnas_fail(HWNAS_E_INPUT, place, "at most %d devices, each phase on one counted",
                          HWNAS_MAX_DEVICES);
    hwnas_job_device row = devices->rows[device];
    snprintf(row.phase, sizeof row.phase, "%s", phase);
    row.place = *place;
    *out = devices->n;
    devices->rows[devices->n++] = row;
    return HWNAS_OK;
}

/* `device`: the one that `on` says; -1: all of them. */
static hwnas_status find_rows(rows *out, reader *r, const hwnas_metric *metric, const char *phase,
                              int device, const hwnas_place *place)
{
    hwnas_job_devices *devices = r->devices;
    const int n = devices->n;
    *out = (rows){0};
    if (metric->source != HWNAS_FROM_DEVICE || !n) {
        *out = (rows){.n = 1, .at = {-1}};
        return HWNAS_OK;
    }
    for (int i = 0; i < n; i++) {
        const hwnas_job_device *d = &devices->rows[i];
        bool is_seen = device >= 0 && strcmp(d->name, devices->rows[device].name) != 0;
        for (int k = 0; k < i; k++)
            is_seen |= !strcmp(devices->rows[k].name, d->name);
        if (is_seen)
            continue;
        int at = find_row(devices, i, phase);
        if (at < 0 && !*phase)
            continue; /* left out, as no goal is of it */
        if (at < 0)
            TRY(add_row(&at, devices, i, phase, place));
        out->at[out->n++] = at;
    }
    return HWNAS_OK;
}

static hwnas_goal goal_at(const hwnas_metric *metric, const char *phase, int row,
                          const hwnas_job_devices *devices)
{
    return row < 0 ? hwnas_goal_in(metric, phase) : hwnas_goal_of(metric, row, devices);
}

void hwnas_goals_drop_idle(hwnas_goals *goals)
{
    hwnas_job_devices *devices = &goals->devices;
    const hwnas_goal *all[HWNAS_MOST_GOALS];
    const int n = hwnas_goals_list(all, goals);
    int moved[HWNAS_MAX_DEVICES], n_kept = 0;
    bool has_phases = false;
    for (int d = 0; d < devices->n; d++)
        has_phases |= *devices->rows[d].phase != '\0';
    for (int d = 0; d < devices->n; d++) {
        bool is_used = !has_phases || *devices->rows[d].phase;
        for (int i = 0; i < n; i++)
            is_used |= all[i]->device == d;
        moved[d] = n_kept;
        if (is_used)
            devices->rows[n_kept++] = devices->rows[d];
    }
    devices->n = n_kept;
    for (int i = 0; i < n; i++)
        if (all[i]->device >= 0)
            ((hwnas_goal *)all[i])->device = moved[all[i]->device];
}

hwnas_status hwnas_goals_parse(hwnas_goal *goals, int *n, int max, const char *text,
                               const hwnas_place *place, bool is_verbatim,
                               hwnas_job_devices *devices)
{
    reader r = {text, text, *place, is_verbatim, devices};
    const hwnas_metric *metric;
    char phase[HWNAS_PHASE_NAME];
    int device = -1;
    rows on;
    TRY(read_metric(&metric, phase, &r));
    TRY(read_device(&device, &r, metric));
    skip_space(&r);
    if (*r.at) {
        hwnas_place here = place_at(&r, r.at);
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &here, "'%.40s' does not belong to an objective", r.at),
            "write a metric, and 'on DEVICE' where there are several");
    }
    TRY(find_rows(&on, &r, metric, phase, device, place));
    for (int k = 0; k < on.n; k++) {
        hwnas_goal goal = goal_at(metric, phase, on.at[k], devices);
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
    char phase[HWNAS_PHASE_NAME];
    double number;
    int device = -1;
    rows found;
    skip_space(r);
    limit.place = place_at(r, r->at);
    TRY(read_metric(&metric, phase, r));
    TRY(read_device(&device, r, metric));
    TRY(read_operator(&limit, operator, r));
    TRY(read_value(&number, &limit.value, unit, r, metric));
    if (device < 0)
        TRY(read_device(&device, r, metric));
    TRY(find_rows(&found, r, metric, phase, device, &limit.place));
    for (int k = 0; k < found.n; k++) {
        if (*n == max)
            return hwnas_fail(HWNAS_E_INPUT, &limit.place, "at most %d constraints", max);
        limit.goal = goal_at(metric, phase, found.at[k], r->devices);
        const char *name = limit.goal.name, *on = strchr(name, ' ');
        snprintf(limit.text, sizeof limit.text, "%.*s %s %.10g %s%s", (int)strcspn(name, " "),
                 name, operator, number, *unit ? unit : metric->unit, on ? on : "");
        limits[(*n)++] = limit;
    }
    return HWNAS_OK;
}

/* A list is written as that of the objectives, too. */
static bool take_comma(reader *r)
{
    skip_space(r);
    const bool is_next = *r->at == ',';
    r->at += is_next;
    return is_next;
}

hwnas_status hwnas_limits_parse(hwnas_limit *limits, int *n, int max, const char *text,
                                const hwnas_place *place, bool is_verbatim,
                                hwnas_job_devices *devices)
{
    reader r = {text, text, *place, is_verbatim, devices};
    do
        TRY(read_comparison(limits, n, max, &r));
    while (take_word(&r, "and") || take_comma(&r));
    return *r.at ? no_constraint(&r, "'and', a comma or the end") : HWNAS_OK;
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
           !strcmp(upper->goal.phase, lower->goal.phase) &&
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
