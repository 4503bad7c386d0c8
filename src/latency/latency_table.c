/* latency_table.c: what is known of parts and networks, and estimates from it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/stats.h"
#include "latency/latency_priv.h"

enum {
    FEWEST = 3,    /* networks that an estimate stands on */
    MOST = 3000,   /* networks that are kept: the first go when there are more */
    RECALLED = 30, /* steady ones of a file that are held out, to know the error */
    PRIOR = 20,    /* judged networks that the prior belief in the intervals is worth */
};
static const double NORMAL_95 = 1.96;

hwnas_latency_table *hwnas_latency_table_new(void)
{
    hwnas_latency_table *table = hwnas_alloc(sizeof *table);
    table->widening = 1;
    return table;
}

static void free_network(hwnas_timed_network *network)
{
    free(network->parts);
    free(network->set_of);
    free(network->set_seconds);
}

void hwnas_latency_table_free(hwnas_latency_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->n_networks; i++)
        free_network(&table->networks[i]);
    for (size_t i = 0; i < table->n_kinds; i++) {
        free(table->kinds[i].rows);
        free(table->kinds[i].weights);
    }
    free(table->any.rows);
    free(table->any.weights);
    free(table->of_context.covariance);
    free(table->of_whole.covariance);
    free(table->parts);
    free(table->slots);
    free(table->kinds);
    free(table->networks);
    free(table);
}

/* ---- Parts by signature ---- */

static size_t slot_of(const hwnas_latency_table *table, uint64_t signature)
{
    size_t slot = signature & (table->n_slots - 1);
    while (table->slots[slot] >= 0 && table->parts[table->slots[slot]].part.signature != signature)
        slot = (slot + 1) & (table->n_slots - 1);
    return slot;
}

static void make_slots(hwnas_latency_table *table)
{
    if (2 * (table->n_parts + 1) <= table->n_slots)
        return;
    table->n_slots = table->n_slots ? 2 * table->n_slots : 1024;
    free(table->slots);
    table->slots = hwnas_alloc(table->n_slots * sizeof *table->slots);
    for (size_t i = 0; i < table->n_slots; i++)
        table->slots[i] = -1;
    for (size_t i = 0; i < table->n_parts; i++)
        table->slots[slot_of(table, table->parts[i].part.signature)] = (int)i;
}

/* -1: none that was timed is of it. */
static int look_for_kind(const hwnas_latency_table *table, uint64_t kind)
{
    for (size_t i = 0; i < table->n_kinds; i++)
        if (table->kinds[i].kind == kind)
            return (int)i;
    return -1;
}

static int find_kind(hwnas_latency_table *table, uint64_t kind)
{
    const int found = look_for_kind(table, kind);
    if (found >= 0)
        return found;
    HWNAS_GROW(table->kinds, table->n_kinds, table->kind_capacity);
    table->kinds[table->n_kinds] = (hwnas_part_kind){.kind = kind};
    return (int)table->n_kinds++;
}

/* The part's index; it is added, predicted if the table is fitted, where it is not known. */
static int find_part(hwnas_latency_table *table, const hwnas_part *part)
{
    make_slots(table);
    const size_t slot = slot_of(table, part->signature);
    if (table->slots[slot] >= 0)
        return table->slots[slot];
    HWNAS_GROW(table->parts, table->n_parts, table->part_capacity);
    hwnas_timed_part *new = &table->parts[table->n_parts];
    *new = (hwnas_timed_part){.part = *part, .kind = find_kind(table, part->kind)};
    if (table->n_fitted)
        hwnas_latency_table_predict(table, new);
    table->slots[slot] = (int)table->n_parts;
    return (int)table->n_parts++;
}

/* What a fitted table says of a part. One that it does not have is not added: what it was asked
 * must not change what it answers. */
static hwnas_timed_part look(const hwnas_latency_table *table, const hwnas_part *part)
{
    const int index = table->n_slots ? table->slots[slot_of(table, part->signature)] : -1;
    if (index >= 0)
        return table->parts[index];
    hwnas_timed_part out = {.part = *part, .kind = look_for_kind(table, part->kind)};
    hwnas_latency_table_predict(table, &out);
    return out;
}

/* ---- Adding ---- */

void hwnas_latency_table_add(hwnas_latency_table *table, const hwnas_observation *o)
{
    if (table->n_networks == MOST) {
        table->n_steady -= table->networks[0].is_steady;
        free_network(&table->networks[0]);
        memmove(table->networks, table->networks + 1,
                --table->n_networks * sizeof *table->networks);
    }
    HWNAS_GROW(table->networks, table->n_networks, table->network_capacity);
    hwnas_timed_network *network = &table->networks[table->n_networks++];
    *network = (hwnas_timed_network){.seconds = o->seconds,
                                     .is_steady = o->is_steady,
                                     .n_parts = o->n_parts,
                                     .n_sets = o->n_sets};
    table->n_steady += o->is_steady;
    network->parts = hwnas_alloc((o->n_parts + 1) * sizeof *network->parts);
    network->set_of = hwnas_alloc((o->n_parts + 1) * sizeof *network->set_of);
    network->set_seconds = hwnas_alloc((o->n_sets + 1) * sizeof *network->set_seconds);
    memcpy(network->set_of, o->set_of, o->n_parts * sizeof *o->set_of);
    memcpy(network->set_seconds, o->set_seconds, o->n_sets * sizeof *o->set_seconds);
    for (size_t i = 0; i < o->n_parts; i++) {
        network->parts[i] = find_part(table, &o->parts[i]);
        table->parts[network->parts[i]].is_timed |= o->set_of[i] >= 0;
    }
    hwnas_latency_table_features(network->features, o->parts, o->n_parts);
}

/* Fits again when a tenth has come to what the fit knows: all fits together then cost as much as a
 * few of the last one. */
static bool make_ready(hwnas_latency_table *table)
{
    const size_t n = table->n_networks;
    if (n < FEWEST)
        return false;
    if (!table->n_fitted || n > table->n_fitted + table->n_fitted / 10)
        hwnas_latency_table_fit(table);
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t n_kept(const hwnas_latency_table *table)
{
    return table->n_judged < HWNAS_LATENCY_JUDGED ? table->n_judged : HWNAS_LATENCY_JUDGED;
}

/* The intervals are as wide as held for 95 % of what was judged, to which a prior of PRIOR networks
 * that went as they should is added. */
static void calibrate(hwnas_latency_table *table)
{
    double sizes[HWNAS_LATENCY_JUDGED + PRIOR];
    const size_t n = n_kept(table);
    for (size_t i = 0; i < n; i++)
        sizes[i] = fabs(table->scores[i]);
    for (int i = 0; i < PRIOR; i++) /* quantiles of |z|: 2 Phi(z) - 1 = p, by Winitzki's erf */
    {
        const double p = (i + 0.5) / PRIOR, l = log(1 - p * p), a = 0.147,
                     b = 2 / (M_PI * a) + l / 2;
        sizes[n + (size_t)i] = M_SQRT2 * sqrt(sqrt(b * b - l / a) - b);
    }
    qsort(sizes, n + PRIOR, sizeof *sizes, compare_doubles);
    table->widening = hwnas_quantile(sizes, n + PRIOR, 0.95) / NORMAL_95;
}

void hwnas_latency_table_tell(hwnas_latency_table *table, const hwnas_observation *o)
{
    const hwnas_parts parts = {.n = o->n_parts, .parts = o->parts};
    hwnas_latency_estimate e;
    const bool is_judged = o->is_steady || table->n_steady < HWNAS_LATENCY_FEW_STEADY;
    if (is_judged && hwnas_latency_table_estimate(&e, table, &parts)) {
        const size_t at = table->n_judged++ % HWNAS_LATENCY_JUDGED;
        const double sd = log(e.high / e.low) / (2 * NORMAL_95 * table->widening);
        table->errors[at] = e.seconds / o->seconds - 1;
        table->scores[at] = log(o->seconds / e.seconds) / sd;
        table->is_inside[at] = e.low <= o->seconds && o->seconds <= e.high;
        calibrate(table);
    }
    hwnas_latency_table_add(table, o);
}

void hwnas_latency_table_restore(hwnas_latency_table *table, hwnas_observation *const *observations,
                                 size_t n)
{
    size_t first = n, n_steady = 0; /* of those that are told */
    while (first > 0 && n_steady < RECALLED)
        n_steady += observations[--first]->is_steady;
    for (size_t i = 0; i < n; i++)
        if (i < first || !observations[i]->is_steady)
            hwnas_latency_table_add(table, observations[i]);
    for (size_t i = first; i < n; i++)
        if (observations[i]->is_steady)
            hwnas_latency_table_tell(table, observations[i]);
    if (table->n_networks >= FEWEST)
        hwnas_latency_table_fit(table);
}

void hwnas_latency_table_replay(hwnas_latency_table *table, hwnas_observation *const *observations,
                                size_t n)
{
    for (size_t i = 0; i < n; i++) {
        make_ready(table);
        hwnas_latency_table_tell(table, observations[i]);
    }
}

/* ---- Estimating ---- */

/* Sums over the parts of a network. */
typedef struct sums {
    double seconds, factors; /* factors: of the kinds, weighed by seconds */
    double doubt;            /* sd of the logarithm of `seconds` */
    double strange;          /* seconds of parts of kinds that the table does not have */
    int n_unknown;
} sums;

/* `by_kind`: seconds by the table's kinds; NULL: not wanted. */
static sums add_up(double *by_kind, const hwnas_latency_table *table, const hwnas_parts *parts)
{
    sums s = {0};
    double variance = 0, unknown = 0;
    for (size_t i = 0; i < parts->n; i++) {
        const hwnas_timed_part timed = look(table, &parts->parts[i]), *part = &timed;
        const double error = part->seconds * part->sd;
        s.seconds += part->seconds;
        s.factors += part->kind < 0 ? 0 : part->seconds * table->kinds[part->kind].factor;
        s.strange += part->kind < 0 ? part->seconds : 0;
        if (by_kind && part->kind >= 0)
            by_kind[part->kind] += part->seconds;
        variance += error * error;
        unknown += part->n > 0 ? 0 : error;
        s.n_unknown += !(part->n > 0);
    }
    /* Errors of predicted parts have much in common, those of timed ones little. */
    s.doubt = sqrt(variance + unknown * unknown / 4) / fmax(s.seconds, 1e-12);
    return s;
}

bool hwnas_latency_table_estimate(hwnas_latency_estimate *out, hwnas_latency_table *table,
                                  const hwnas_parts *parts)
{
    double features[HWNAS_NET_FEATURES];
    if (!make_ready(table))
        return false;
    double *shares = hwnas_alloc((table->n_kinds + 1) * sizeof *shares);
    const sums s = add_up(shares, table, parts);
    hwnas_latency_table_features(features, parts->parts, parts->n);
    for (size_t k = 0; k < table->n_kinds; k++)
        shares[k] /= fmax(s.seconds, 1e-12);
    const double unsure =
        hwnas_latency_table_unsure(table, features, shares, s.strange / fmax(s.seconds, 1e-12));
    free(shares);
    if (!(s.seconds > 0))
        return false;
    const double sd = sqrt(s.doubt * s.doubt + unsure + table->residual * table->residual +
                           table->level_sd * table->level_sd);
    const double seconds = s.seconds * exp(table->whole + s.factors / s.seconds +
                                           hwnas_latency_table_context(table, features));
    const double width = exp(NORMAL_95 * table->widening * sd);
    /* What nobody has measured: a file may say anything. */
    if (!(seconds / width > 0) || !isfinite(seconds * width))
        return false;
    *out = (hwnas_latency_estimate){.seconds = seconds,
                                    .low = seconds / width,
                                    .high = seconds * width,
                                    .n_parts = (int)parts->n,
                                    .n_unknown = s.n_unknown};
    return true;
}

double hwnas_latency_table_doubt(hwnas_latency_table *table, const hwnas_parts *parts)
{
    return make_ready(table) ? fmin(add_up(NULL, table, parts).doubt, 1) : 1;
}

void hwnas_latency_table_describe(hwnas_latency_state *out, const hwnas_latency_table *table)
{
    double errors[HWNAS_LATENCY_JUDGED];
    const size_t n = n_kept(table);
    *out = (hwnas_latency_state){
        .n_networks = table->n_networks, .n_judged = table->n_judged, .error = NAN};
    for (size_t i = 0; i < table->n_parts; i++)
        out->n_parts += table->parts[i].is_timed;
    for (size_t i = 0; i < n; i++) {
        errors[i] = fabs(table->errors[i]);
        out->within_5 += errors[i] <= 0.05;
        out->within_10 += errors[i] <= 0.1;
        out->coverage += table->is_inside[i];
    }
    if (!n)
        return;
    hwnas_sort(errors, n);
    out->error = hwnas_quantile(errors, n, 0.5);
    out->within_5 /= (double)n;
    out->within_10 /= (double)n;
    out->coverage /= (double)n;
}

char *hwnas_latency_table_key(const char *device, const hwnas_device_info *info,
                              const hwnas_exec_options *options)
{
    char host[HWNAS_HOST_ID];
    hwnas_host_id(host);
    return hwnas_printf("%s; %s; host %s; %s; %s; %d threads; %s; hwnas %s", device, info->name,
                        host, info->library, info->isa, info->threads,
                        hwnas_precision_name(options->precision), hwnas_version());
}

/* A table is relied on when it has been tried on so many networks, ... */
enum { FEWEST_JUDGED = 10 };
/* ... of which so many were in the intervals, that should hold 95 %, ... */
static const double LEAST_COVERAGE = 0.8;
/* ... and half of the last: the machine, or the program, may have changed since the others. */
enum { LAST_JUDGED = 16 };

bool hwnas_latency_table_is_trusted(const hwnas_latency_table *table)
{
    hwnas_latency_state state;
    hwnas_latency_table_describe(&state, table);
    size_t n_inside = 0;
    for (size_t i = 1; i <= LAST_JUDGED && i <= table->n_judged; i++)
        n_inside += table->is_inside[(table->n_judged - i) % HWNAS_LATENCY_JUDGED];
    return state.n_judged >= FEWEST_JUDGED && state.coverage >= LEAST_COVERAGE &&
           2 * n_inside >= LAST_JUDGED;
}
