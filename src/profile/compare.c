#include "profile/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/conclude.h"
#include "profile/training_cost.h"

#define MS 1e3

hwnas_comparison *hwnas_comparison_new(const hwnas_query *query, const hwnas_prices *prices)
{
    hwnas_comparison *c = hwnas_alloc(sizeof *c);
    c->arena = hwnas_arena_new();
    c->query = *query;
    c->prices = prices;
    c->query.plan.currency = prices ? prices->currency : NULL;
    return c;
}

void hwnas_comparison_free(hwnas_comparison *comparison)
{
    if (!comparison)
        return;
    hwnas_arena_free(comparison->arena);
    free(comparison);
}

double hwnas_profile_row_latency(const hwnas_profile_row *row, double percentile)
{
    return percentile > 0.9   ? row->m.tails[HWNAS_P99].value
           : percentile > 0.5 ? row->m.tails[HWNAS_P90].value
                              : row->m.p50;
}

/* Why a setting cannot keep the target whatever the load; NULL when it can. */
static const char *find_flaw(const hwnas_comparison *c, const hwnas_device_choice *choice,
                             const hwnas_service *service)
{
    const hwnas_query *q = &c->query;
    const hwnas_profile_row *row = choice->row;
    const int percent = (int)(100 * q->percentile + 0.5);
    if (row->status != HWNAS_OK)
        return hwnas_arena_printf(c->arena, "%s: %s", hwnas_status_name(row->status),
                                  row->message ? row->message : "no reason recorded");
    if (row->mode && strcmp(row->mode, "hot") && strcmp(row->mode, "sustained"))
        return hwnas_arena_printf(c->arena, "it was measured %s, and a server is hot", row->mode);
    if (isinf(q->target))
        return NULL;
    if (isnan(service->seconds) && row->m.n_samples)
        return hwnas_arena_printf(c->arena, "%zu samples carry no p%d: that takes %d",
                                  row->m.n_samples, percent, hwnas_quantile_needs(q->percentile));
    if (isnan(service->seconds))
        return hwnas_arena_printf(c->arena, "its p%d is not recorded", percent);
    if (service->seconds > q->target)
        return hwnas_arena_printf(c->arena, "a batch alone takes %.4g ms", MS * service->seconds);
    if (hwnas_serving_rate(service, q->target, q->utilisation) <= 0)
        return hwnas_arena_printf(c->arena, "filling a batch and waiting take it over the target");
    return NULL;
}

/* The same of training steps: a machine computes one after the other. */
static void judge_steps(const hwnas_comparison *c, hwnas_device_choice *choice)
{
    const hwnas_training_plan *plan = &c->query.plan;
    const hwnas_profile_row *row = choice->row;
    const double price = choice->price ? choice->price->per_hour : NAN;
    choice->speed_to_base = choice->cost_to_base = NAN;
    if (row->status != HWNAS_OK)
        choice->flaw = hwnas_arena_printf(c->arena, "%s: %s", hwnas_status_name(row->status),
                                          row->message ? row->message : "no reason recorded");
    else if (plan->samples > 0 && row->batch > plan->samples)
        choice->flaw =
            hwnas_arena_printf(c->arena, "its batch is more than the %.0f samples", plan->samples);
    if (choice->flaw)
        return;
    choice->machines = 1;
    choice->rate = choice->machine_rate = row->items_per_second;
    choice->per_hour = price;
    choice->per_million = price / 3600 / choice->rate * 1e6;
    choice->requests_per_price = choice->rate / price;
    choice->train = hwnas_training_cost_of(plan, row, choice->price);
    choice->cost = plan->samples > 0 ? choice->price ? choice->train.money : choice->train.seconds
                   : choice->price   ? choice->per_million
                                     : 1 / choice->rate;
}

/* What the setting gives and costs. */
static void judge_choice(const hwnas_comparison *c, hwnas_device_choice *choice)
{
    const hwnas_query *q = &c->query;
    const hwnas_profile_row *row = choice->row;
    const hwnas_service service = {
        .batch = row->batch,
        .streams = row->streams,
        .items_per_second = row->items_per_second,
        .seconds = hwnas_profile_row_latency(row, q->percentile),
        .percentile = q->percentile,
        .fill = hwnas_serving_fill(row->batch, q->percentile),
    };
    choice->flaw = find_flaw(c, choice, &service);
    if (choice->flaw)
        return;
    choice->rate = hwnas_serving_rate(&service, q->target, q->utilisation);
    choice->machines = 1;
    if (q->load > 0)
        choice->machines = hwnas_serving_machines(&service, q->load, q->target, q->utilisation);
    if (!choice->machines)
        choice->flaw =
            hwnas_arena_printf(c->arena, "at this load a batch of %d fills too slowly", row->batch);
    if (choice->machines > HWNAS_SERVING_MACHINES)
        choice->flaw = hwnas_arena_printf(c->arena, "this load needs more than %d machines",
                                          HWNAS_SERVING_MACHINES);
    if (choice->flaw)
        return;
    const double load = q->load > 0 ? q->load : choice->rate;
    choice->machine_rate = load / (double)choice->machines;
    choice->response = hwnas_serving_response(&service, choice->machine_rate);
    const double price = choice->price ? choice->price->per_hour : NAN;
    choice->per_hour = price * (double)choice->machines;
    choice->per_million = choice->per_hour / 3600 / load * 1e6;
    choice->requests_per_price = choice->rate / price;
    choice->cost = choice->price ? choice->per_million : 1 / choice->machine_rate;
}

/* The price of a name; else, for a profile that was recorded, that of the device in it, unless
 * another profile takes it: two machines may both be called 'cpu'. */
static hwnas_status find_price(const hwnas_comparison *c, hwnas_device_choice *choice)
{
    const hwnas_price *own = hwnas_prices_get(c->prices, choice->row->device);
    for (size_t i = 0; i < c->n_choices; i++)
        if (c->choices[i].price == own && c->choices[i].profile != choice->profile)
            own = NULL;
    choice->price = hwnas_prices_get(c->prices, choice->device);
    if (!choice->price)
        choice->price = own;
    return choice->price ? HWNAS_OK : hwnas_prices_find(&choice->price, c->prices, choice->device);
}

hwnas_status hwnas_comparison_add(hwnas_comparison *c, const hwnas_profile *profile,
                                  const char *name)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        const char *device = !name ? row->device
                             : profile->n_devices > 1
                                 ? hwnas_arena_printf(c->arena, "%s/%s", name, row->device)
                                 : hwnas_arena_printf(c->arena, "%s", name);
        hwnas_device_choice choice = {.device = device, .profile = profile, .row = row};
        if (c->prices)
            TRY(find_price(c, &choice));
        if (c->query.training)
            judge_steps(c, &choice);
        else
            judge_choice(c, &choice);
        HWNAS_ARENA_GROW(c->arena, c->choices, c->n_choices, c->capacity);
        c->choices[c->n_choices++] = choice;
    }
    return HWNAS_OK;
}

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static bool same_network(const hwnas_device_choice *a, const hwnas_device_choice *b)
{
    return !strcmp(a->row->model, b->row->model) && !compare_text(a->row->arch, b->row->arch);
}

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

/* Networks by name; of one, best first, and of two that cost the same the faster. */
static int compare_choices(const void *a_in, const void *b_in)
{
    const hwnas_device_choice *a = a_in, *b = b_in;
    int order = strcmp(a->row->model, b->row->model);
    if (!order)
        order = compare_text(a->row->arch, b->row->arch);
    if (!order && !a->flaw != !b->flaw)
        order = a->flaw ? 1 : -1;
    if (!order && !a->flaw)
        order = compare_numbers(a->cost, b->cost);
    if (!order && !a->flaw)
        order = compare_numbers(a->response.total, b->response.total);
    if (!order)
        order = strcmp(a->device, b->device);
    return order ? order : compare_numbers((double)(a->row > b->row), (double)(a->row < b->row));
}

static void find_winner(hwnas_answer *answer, const hwnas_device_choice *choices)
{
    answer->ratio = NAN;
    if (!answer->n_good)
        return;
    answer->winner = &choices[0];
    bool has_others = false;
    for (size_t i = 1; i < answer->n; i++)
        has_others |= strcmp(choices[i].device, choices[0].device) != 0;
    for (size_t i = 1; i < answer->n_good && !answer->runner_up; i++)
        if (!has_others || strcmp(choices[i].device, choices[0].device))
            answer->runner_up = &choices[i];
    if (answer->runner_up)
        answer->ratio = answer->runner_up->cost / answer->winner->cost;
}

/* The digest is of the graph at a batch; figures of others have none. */
static const char *find_doubt(const hwnas_answer *answer, const hwnas_device_choice *choices)
{
    for (size_t i = 0; i < answer->n; i++)
        for (size_t k = 0; k < i; k++) {
            const hwnas_profile_row *a = choices[i].row, *b = choices[k].row;
            if (a->batch == b->batch && *a->digest.hex && *b->digest.hex &&
                strcmp(a->digest.hex, b->digest.hex))
                return "the profiles have different networks, or versions of hwnas, under "
                       "this name";
        }
    return NULL;
}

/* Choices in units of the best of the base. */
static void find_ratios(const hwnas_comparison *c, const hwnas_answer *answer,
                        hwnas_device_choice *choices)
{
    const hwnas_device_choice *base = NULL;
    for (size_t i = answer->n_good; i-- > 0;)
        if (!strcmp(choices[i].device, c->query.base))
            base = &choices[i];
    for (size_t i = 0; i < answer->n_good && base; i++) {
        choices[i].speed_to_base = choices[i].rate / base->rate;
        choices[i].cost_to_base = choices[i].cost / base->cost;
    }
}

void hwnas_comparison_judge(hwnas_comparison *c)
{
    if (!c->query.base && c->n_choices)
        c->query.base = c->choices[0].device;
    qsort(c->choices, c->n_choices, sizeof *c->choices, compare_choices);
    for (size_t i = 0; i < c->n_choices;) {
        hwnas_answer answer = {
            .model = c->choices[i].row->model, .arch = c->choices[i].row->arch, .first = i};
        for (; i < c->n_choices && same_network(&c->choices[answer.first], &c->choices[i]); i++)
            answer.n_good += !c->choices[i].flaw;
        answer.n = i - answer.first;
        find_winner(&answer, &c->choices[answer.first]);
        answer.doubt = find_doubt(&answer, &c->choices[answer.first]);
        if (c->query.training)
            find_ratios(c, &answer, &c->choices[answer.first]);
        HWNAS_ARENA_GROW(c->arena, c->answers, c->n_answers, c->answer_capacity);
        c->answers[c->n_answers++] = answer;
    }
}
