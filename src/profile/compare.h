/* compare.h: which device serves a network cheapest: profiles, prices and a question in, settings
 * with their cost and a winner for each network out. */
#ifndef HWNAS_PROFILE_COMPARE_H
#define HWNAS_PROFILE_COMPARE_H

#include "profile/prices.h"
#include "profile/profile.h"
#include "profile/serving.h"

typedef struct hwnas_query {
    double percentile;  /* of the latency that is promised: 0.5, 0.9 or 0.99 */
    double target;      /* seconds; INFINITY: none */
    double load;        /* requests a second; 0: not asked, one machine as full as may be */
    double utilisation; /* share of its time that a machine is busy at most */
    /* Training steps are compared in the place of inferences, and all but prices above is nothing.
     */
    hwnas_optimizer training;
    hwnas_training_plan plan; /* of them; without samples: a sample's share of a step */
    const char *base;         /* a device, whose best setting the others are told in units of; NULL:
                                 the first that was added */
} hwnas_query;

/* A device under one setting, as an answer to the question. */
typedef struct hwnas_device_choice {
    const char *device;
    const hwnas_profile *profile;
    const hwnas_profile_row *row;
    const hwnas_price *price; /* NULL: no prices were given */
    const char *flaw;         /* why it is none; then what follows means nothing; NULL: it is one */
    double rate;              /* requests a second that a machine may be given */
    long machines;            /* that the load needs; 1 when none was asked */
    double machine_rate;      /* requests a second that each of them gets */
    hwnas_response response;  /* at that rate; NaN where the percentile was not recorded */
    double per_hour;          /* of all machines; NaN without prices, as the next two */
    double per_million;       /* requests */
    double requests_per_price; /* requests a second of a full machine, for each unit that an hour
                                  costs */
    double cost;               /* what is to be small: money, without prices time */
    /* Of training steps, where `rate` is samples a second, and per_million of samples. */
    hwnas_training_cost train;
    double speed_to_base, cost_to_base; /* in units of the base's best; NaN: it has none */
} hwnas_device_choice;

/* The answer for one network. */
typedef struct hwnas_answer {
    const char *model, *arch; /* arch: NULL where the model is one network */
    size_t first, n;          /* its choices, best first, those with a flaw last */
    size_t n_good;
    const hwnas_device_choice *winner;    /* NULL: nothing keeps the target */
    const hwnas_device_choice *runner_up; /* the best of another device, or where there is only one
                                      device the next setting; NULL: none */
    const char *doubt; /* what was recorded under this name is not one network; NULL: it is */
    double ratio;      /* what the runner-up costs for each unit of the winner, or
                          without prices needs or gives */
} hwnas_answer;

typedef struct hwnas_comparison {
    hwnas_arena *arena;
    hwnas_query query;
    const hwnas_prices *prices; /* borrowed; NULL: none */
    size_t n_choices, n_answers, capacity, answer_capacity;
    hwnas_device_choice *choices;
    hwnas_answer *answers;
} hwnas_comparison;

hwnas_comparison *hwnas_comparison_new(const hwnas_query *query, const hwnas_prices *prices);
void hwnas_comparison_free(hwnas_comparison *comparison); /* accepts NULL */

/* Adds the rows of a profile, which must live as long. `name`: what its machine is called; NULL: by
 * its devices' spellings, which a price may have as well. A device without one is HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_comparison_add(hwnas_comparison *comparison,
                                                const hwnas_profile *profile, const char *name);
/* Sorts and finds the winners; nothing is added after it. */
void hwnas_comparison_judge(hwnas_comparison *comparison);

/* The latency of a row at a percentile; NaN where it was not recorded. */
double hwnas_profile_row_latency(const hwnas_profile_row *row, double percentile);

#endif
