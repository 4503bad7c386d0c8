#include "report/verified_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "study/verified.h"

enum { MAX_REFERENCES = 8 };

/* The networks of the fronts, each once, on all devices of theirs. */
typedef struct tally {
    size_t n, n_right, n_wrong; /* networks; wrong ones have left the front */
    double largest;
    const char *why_not;      /* the first that could not be verified; NULL: each could */
    json_t *missing;          /* numbers of the trials of which a result is not known */
    const hwnas_trial *wrong; /* the first; NULL: none */
    int n_references;
    struct {
        const char *name;
        size_t n; /* results */
    } references[MAX_REFERENCES];
} tally;

static void add_reference(tally *t, const char *name)
{
    int i = 0;
    while (i < t->n_references && strcmp(t->references[i].name, name) != 0)
        i++;
    if (i == MAX_REFERENCES)
        return;
    t->references[i].name = name;
    t->references[i].n++;
    t->n_references += i == t->n_references;
}

static const char *skipped(const hwnas_summary *s, int device)
{
    return json_string_value(
        json_object_get(json_object_get(s->verified, "skipped"),
                        hwnas_job_row_name(&s->job.goals.devices, device).text));
}

static bool is_on(const hwnas_summary *s, int front, size_t trial)
{
    for (size_t i = 0; i < s->fronts[front].n; i++)
        if (s->fronts[front].trials[i] == trial)
            return true;
    return false;
}

/* One network of the fronts; false: a result is not known. */
static bool add_network(tally *t, const hwnas_summary *s, size_t index)
{
    const hwnas_trial *trial = &s->trials[index];
    char key[24];
    size_t n_known = 0;
    bool is_whole = true;
    snprintf(key, sizeof key, "%llu", (unsigned long long)trial->number);
    const json_t *results = json_object_get(json_object_get(s->verified, "trials"), key);
    for (int d = 0; d < s->job.goals.devices.n; d++) {
        if ((s->job.goals.is_front_per_device && !is_on(s, d, index)) || skipped(s, d))
            continue;
        const json_t *result =
            json_object_get(results, hwnas_job_row_name(&s->job.goals.devices, d).text);
        const char *against = json_string_value(json_object_get(result, "against"));
        const char *why_not = json_string_value(json_object_get(result, "message"));
        is_whole &= against != NULL;
        if (!against) {
            t->why_not = t->why_not ? t->why_not : why_not;
            continue;
        }
        n_known++;
        t->largest = fmax(t->largest, json_number_value(json_object_get(result, "error")));
        add_reference(t, against);
    }
    if (!is_whole)
        json_array_append_new(t->missing, json_integer((json_int_t)trial->number));
    return is_whole && n_known;
}

static bool is_on_one_before(const hwnas_summary *s, int front, size_t trial)
{
    for (int f = 0; f < front; f++)
        if (is_on(s, f, trial))
            return true;
    return false;
}

static tally count(const hwnas_summary *s)
{
    tally t = {.missing = json_array()};
    for (int f = 0; f < s->n_fronts; f++)
        for (size_t i = 0; i < s->fronts[f].n; i++) {
            const size_t trial = s->fronts[f].trials[i];
            if (is_on_one_before(s, f, trial))
                continue;
            t.n++;
            t.n_right += add_network(&t, s, trial);
        }
    for (size_t i = 0; i < s->n_trials; i++)
        if (hwnas_verified_is_wrong(s->verified, s->trials[i].number)) {
            t.wrong = t.wrong ? t.wrong : &s->trials[i];
            t.n_wrong++;
        }
    return t;
}

/* Why devices were left out; of all of them one after the other. */
static int add_skipped(hwnas_str *out, const hwnas_summary *s, const char *before)
{
    int n = 0;
    for (int d = 0; d < s->job.goals.devices.n; d++)
        if (skipped(s, d))
            hwnas_str_addf(out, "%s%s: %s", n++ ? "; " : before,
                           hwnas_job_row_name(&s->job.goals.devices, d).text, skipped(s, d));
    return n;
}

static void add_references(hwnas_str *out, const tally *t)
{
    for (int i = 0; i < t->n_references; i++)
        hwnas_str_addf(out, "%s%s", i ? " or " : " against ", t->references[i].name);
}

/* Which networks of the front nobody has looked at, as the search was ended before. */
static void add_missing(hwnas_str *out, const tally *t)
{
    enum { MOST = 8 };
    const size_t n = json_array_size(t->missing);
    for (size_t i = 0; i < n && i < MOST; i++)
        hwnas_str_addf(out, "%s%lld",
                       i        ? ", "
                       : n == 1 ? "; not trial "
                                : "; not trials ",
                       (long long)json_integer_value(json_array_get(t->missing, i)));
    if (n > MOST)
        hwnas_str_addf(out, " and %zu others", n - MOST);
}

static void add_devices(hwnas_str *out, const hwnas_summary *s, const hwnas_trial *trial)
{
    json_t *on = hwnas_verified_wrong_on(s->verified, trial->number);
    for (size_t i = 0; i < json_array_size(on); i++)
        hwnas_str_addf(out, "%s%s", i ? ", " : " on ", json_string_value(json_array_get(on, i)));
    json_decref(on);
}

static void add_wrong(hwnas_str *out, const hwnas_summary *s, const tally *t)
{
    hwnas_str_addf(out, "; %zu wrong result%s, failed: trial %llu", t->n_wrong,
                   t->n_wrong == 1 ? "" : "s", (unsigned long long)t->wrong->number);
    if (t->wrong->status == HWNAS_OK)
        add_devices(out, s, t->wrong);
    if (t->n_wrong > 1)
        hwnas_str_add(out, " and others");
}

static void add_tally(hwnas_str *out, const hwnas_summary *s, const tally *t)
{
    hwnas_str_add(out, "\nverified    ");
    if (t->n && !t->n_right && add_skipped(out, s, "no, ") == s->job.goals.devices.n)
        return;
    if (t->n_right < t->n)
        hwnas_str_addf(out, "%zu of ", t->n_right);
    hwnas_str_addf(out, "%zu network%s of the front", t->n, t->n == 1 ? "" : "s");
    add_references(out, t);
    if (t->n_right)
        hwnas_str_addf(out, ", largest error %.1g", t->largest);
    add_missing(out, t);
    if (t->why_not)
        hwnas_str_addf(out, "; one could not be: %s", t->why_not);
    if (t->n_right)
        add_skipped(out, s, "; not on ");
    if (t->wrong)
        add_wrong(out, s, t);
}

/* The front's networks whose times are not those of a fast runtime. */
typedef struct slow_ones {
    size_t n;
    double share; /* the largest */
    const json_t *worst;
    uint64_t trial;
    json_t *list; /* {trial, device, share, step, operators, how, roof_share} */
} slow_ones;

static void add_slow(slow_ones *found, const hwnas_summary *s, uint64_t trial, const char *device)
{
    const json_t *slow = hwnas_verified_slow(s->verified, trial, device);
    if (!slow)
        return;
    const double share = json_number_value(json_object_get(slow, "share"));
    json_t *entry = json_copy((json_t *)slow);
    json_object_set_new(entry, "trial", json_integer((json_int_t)trial));
    json_object_set_new(entry, "device", json_string(device));
    json_array_append_new(found->list, entry);
    found->n++;
    if (share <= found->share)
        return;
    found->share = share;
    found->worst = slow;
    found->trial = trial;
}

static slow_ones find_slow(const hwnas_summary *s)
{
    slow_ones found = {.list = json_array()};
    for (int f = 0; f < s->n_fronts; f++)
        for (size_t i = 0; i < s->fronts[f].n; i++)
            for (int d = 0; d < s->job.goals.devices.n; d++)
                if (!s->job.goals.is_front_per_device || d == f)
                    add_slow(&found, s, s->trials[s->fronts[f].trials[i]].number,
                             hwnas_job_row_name(&s->job.goals.devices, d).text);
    return found;
}

void hwnas_slow_ones_text(hwnas_str *out, const hwnas_summary *s)
{
    const slow_ones found = find_slow(s);
    if (found.n)
        hwnas_str_addf(out,
                       "\nslow code   %zu of the front's times; trial %llu: %.0f %%, most of it "
                       "'%s' (%s by %s): a fast runtime takes less",
                       found.n, (unsigned long long)found.trial, 100 * found.share,
                       json_string_value(json_object_get(found.worst, "step")),
                       json_string_value(json_object_get(found.worst, "operators")),
                       json_string_value(json_object_get(found.worst, "how")));
    json_decref(found.list);
}

json_t *hwnas_slow_ones_json(const hwnas_summary *s)
{
    return find_slow(s).list;
}

void hwnas_verified_text(hwnas_str *out, const hwnas_summary *s)
{
    const tally t = count(s);
    if (s->job.goals.devices.n && (t.n || t.n_wrong))
        add_tally(out, s, &t);
    json_decref(t.missing);
}

json_t *hwnas_verified_json(const hwnas_summary *s)
{
    const tally t = count(s);
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:O}", "networks", (json_int_t)t.n, "right",
                     (json_int_t)t.n_right, "wrong", (json_int_t)t.n_wrong, "missing", t.missing,
                     "largest_error", t.n_right ? json_real(t.largest) : json_null(), "skipped",
                     json_object_get(s->verified, "skipped"));
}
