#include "store/packed.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/intern.h"
#include "base/mem.h"
#include "store/names.h"

/* Numbers are written seven bits to a byte, the lowest first, with the eighth set but in the last
 * byte; a double as its 64 bits, the lowest byte first; a text with a NUL behind it. First comes
 * the format, then what values there are: metric, unit and name of the source of each kind; then
 * the events; then a checksum of all that, XXH3 of 64 bits, the lowest byte first. */
enum { FORMAT = 1, MOST_KINDS = 255, LONGEST_NAME = 63, CHECKSUM = 8, LEAST_VALUE = 9 };

/* What of an event is there. */
enum {
    IS_UNSTABLE = 1,
    IS_STOPPED_EARLY = 2,
    HAS_MESSAGE = 4,
    HAS_RUN_SECONDS = 8,
    HAS_ESTIMATE = 16,
    HAS_STATUS = 32 /* else HWNAS_OK */
};

/* ---- Writing ---- */

static void put_number(hwnas_str *out, uint64_t number)
{
    do {
        const char byte = (char)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
        hwnas_str_addn(out, &byte, 1);
        number >>= 7;
    } while (number);
}

static void put_bits(hwnas_str *out, uint64_t bits)
{
    char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(bits >> 8 * i);
    hwnas_str_addn(out, bytes, sizeof bytes);
}

static void put_double(hwnas_str *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_bits(out, bits);
}

static void put_text(hwnas_str *out, const char *text)
{
    hwnas_str_addn(out, text, strlen(text) + 1);
}

typedef struct kinds {
    size_t n;
    hwnas_value_row rows[MOST_KINDS]; /* metric, unit and source */
} kinds;

static bool is_of_kind(const hwnas_value_row *v, const hwnas_value_row *kind)
{
    return v->source == kind->source && !strcmp(v->metric, kind->metric) &&
           !strcmp(v->unit, kind->unit);
}

/* MOST_KINDS: there are too many. */
static size_t find_kind(kinds *k, const hwnas_value_row *v)
{
    size_t i = 0;
    while (i < k->n && !is_of_kind(v, &k->rows[i]))
        i++;
    if (i == k->n && i < MOST_KINDS)
        k->rows[k->n++] = *v;
    return i;
}

/* A value's kind and, in the lowest bit, whether it has ends. */
static void put_value(hwnas_str *out, kinds *k, const hwnas_value_row *v)
{
    const bool has_ends = !isnan(v->low) || !isnan(v->high);
    put_number(out, 2 * find_kind(k, v) + has_ends);
    put_double(out, v->value);
    if (has_ends) {
        put_double(out, v->low);
        put_double(out, v->high);
    }
}

static void put_outcome(hwnas_str *out, kinds *k, const hwnas_event *event)
{
    const hwnas_trial *t = &event->trial;
    const int flags =
        (t->is_unstable ? IS_UNSTABLE : 0) | (t->is_stopped_early ? IS_STOPPED_EARLY : 0) |
        (t->message ? HAS_MESSAGE : 0) | (event->run_seconds != 0 ? HAS_RUN_SECONDS : 0) |
        (isnan(event->estimate) ? 0 : HAS_ESTIMATE) | (t->status == HWNAS_OK ? 0 : HAS_STATUS);
    put_number(out, (uint64_t)flags);
    put_number(out, (uint64_t)t->order);
    if (flags & HAS_STATUS)
        put_text(out, hwnas_status_name(t->status));
    if (flags & HAS_MESSAGE)
        put_text(out, t->message);
    if (flags & HAS_RUN_SECONDS)
        put_double(out, event->run_seconds);
    if (flags & HAS_ESTIMATE)
        put_double(out, event->estimate);
    put_double(out, t->violation);
    put_number(out, t->n_values);
    for (size_t i = 0; i < t->n_values; i++)
        put_value(out, k, &t->values[i]);
}

static void put_event(hwnas_str *out, kinds *k, const hwnas_event *event)
{
    put_number(out, (uint64_t)event->kind);
    put_number(out, event->trial.number);
    if (event->kind == HWNAS_EVENT_PUT_OFF)
        return;
    put_number(out, (uint64_t)event->trial.rung);
    put_text(out, event->trial.code);
    put_text(out, event->trial.digest);
    if (event->kind != HWNAS_EVENT_ASKED)
        put_outcome(out, k, event);
}

bool hwnas_pack(hwnas_str *out, const hwnas_event *events, size_t n)
{
    kinds *k = hwnas_alloc(sizeof *k);
    hwnas_str body = {0};
    const size_t first = out->n;
    for (size_t i = 0; i < n; i++)
        put_event(&body, k, &events[i]);
    const bool fits = k->n < MOST_KINDS;
    put_number(out, FORMAT);
    put_number(out, k->n);
    for (size_t i = 0; i < k->n; i++) {
        put_text(out, k->rows[i].metric);
        put_text(out, k->rows[i].unit);
        put_text(out, hwnas_sources[k->rows[i].source].name);
    }
    put_number(out, n);
    hwnas_str_addn(out, body.s ? body.s : "", body.n);
    put_bits(out, XXH3_64bits(out->s + first, out->n - first));
    hwnas_str_done(&body);
    free(k);
    return fits;
}

/* ---- Reading ---- */

struct hwnas_unpacker {
    const unsigned char *at, *end;
    bool is_damaged;
    uint64_t n_left;
    size_t value_room;
    hwnas_value_row *values;
    kinds kinds;
};

static uint64_t get_number(hwnas_unpacker *u)
{
    uint64_t number = 0;
    for (int shift = 0; u->at < u->end && shift < 64; shift += 7) {
        const unsigned char byte = *u->at++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return number;
    }
    u->is_damaged = true;
    return 0;
}

static double get_double(hwnas_unpacker *u)
{
    uint64_t bits = 0;
    double value;
    if (u->end - u->at < 8) {
        u->is_damaged = true;
        return NAN;
    }
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)u->at[i] << 8 * i;
    u->at += 8;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Points into the bytes; never NULL. */
static const char *get_text(hwnas_unpacker *u)
{
    const unsigned char *nul = u->at < u->end ? memchr(u->at, 0, (size_t)(u->end - u->at)) : NULL;
    const char *text = (const char *)u->at;
    if (!nul || !hwnas_is_text(text)) {
        u->is_damaged = true;
        return "";
    }
    u->at = nul + 1;
    return text;
}

static const char *get_name(hwnas_unpacker *u)
{
    const char *name = get_text(u);
    u->is_damaged |= strlen(name) > LONGEST_NAME;
    return u->is_damaged ? "" : hwnas_intern(name);
}

/* Cuts the checksum off. */
static bool has_checksum(hwnas_unpacker *u)
{
    if (u->end - u->at < CHECKSUM)
        return false;
    u->end -= CHECKSUM;
    uint64_t told = 0;
    for (int i = 0; i < CHECKSUM; i++)
        told |= (uint64_t)u->end[i] << 8 * i;
    return told == XXH3_64bits(u->at, (size_t)(u->end - u->at));
}

hwnas_unpacker *hwnas_unpacker_new(const void *bytes, size_t n)
{
    hwnas_unpacker *u = hwnas_alloc(sizeof *u);
    u->at = bytes;
    u->end = u->at + n;
    u->is_damaged = !has_checksum(u) || get_number(u) != FORMAT;
    const uint64_t n_kinds = u->is_damaged ? 0 : get_number(u);
    u->is_damaged |= n_kinds >= MOST_KINDS;
    while (!u->is_damaged && u->kinds.n < n_kinds) {
        hwnas_value_row *kind = &u->kinds.rows[u->kinds.n++];
        kind->metric = get_name(u);
        kind->unit = get_name(u);
        kind->source = hwnas_source_from_name(get_text(u));
        u->is_damaged |= kind->source >= HWNAS_N_SOURCES;
    }
    u->n_left = u->is_damaged ? 0 : get_number(u);
    if (!u->is_damaged)
        return u;
    hwnas_unpacker_free(u);
    return NULL;
}

void hwnas_unpacker_free(hwnas_unpacker *u)
{
    if (!u)
        return;
    free(u->values);
    free(u);
}

static void get_value(hwnas_value_row *out, hwnas_unpacker *u)
{
    const uint64_t word = get_number(u);
    if (word / 2 >= u->kinds.n) {
        u->is_damaged = true;
        return;
    }
    *out = u->kinds.rows[word / 2];
    out->value = get_double(u);
    out->low = word & 1 ? get_double(u) : NAN;
    out->high = word & 1 ? get_double(u) : NAN;
    u->is_damaged |= !isfinite(out->value) || isinf(out->low) || isinf(out->high);
}

static void get_outcome(hwnas_event *out, hwnas_unpacker *u)
{
    hwnas_trial *t = &out->trial;
    const uint64_t flags = get_number(u);
    t->is_finished = true;
    t->order = (int64_t)get_number(u);
    t->status = flags & HAS_STATUS ? hwnas_status_from_name(get_text(u)) : HWNAS_OK;
    t->message = flags & HAS_MESSAGE ? (char *)get_text(u) : NULL;
    t->is_unstable = flags & IS_UNSTABLE;
    t->is_stopped_early = flags & IS_STOPPED_EARLY;
    out->run_seconds = flags & HAS_RUN_SECONDS ? get_double(u) : 0;
    out->estimate = flags & HAS_ESTIMATE ? get_double(u) : NAN;
    t->violation = get_double(u);
    const uint64_t n = get_number(u);
    u->is_damaged |= t->status >= HWNAS_N_STATUS || n > (uint64_t)(u->end - u->at) / LEAST_VALUE;
    if (u->is_damaged)
        return;
    if (n > u->value_room) {
        u->value_room = n;
        u->values = hwnas_realloc(u->values, n * sizeof *u->values);
    }
    for (uint64_t i = 0; i < n; i++)
        get_value(&u->values[i], u);
    t->n_values = n;
    t->values = u->values;
}

static void get_event(hwnas_event *out, hwnas_unpacker *u)
{
    const uint64_t kind = get_number(u);
    u->is_damaged |= kind >= HWNAS_N_EVENT_KINDS;
    *out = (hwnas_event){.kind = (hwnas_event_kind)kind, .estimate = NAN};
    out->trial.order = -1;
    out->trial.number = get_number(u);
    if (out->kind == HWNAS_EVENT_PUT_OFF || u->is_damaged)
        return;
    out->trial.rung = (int)get_number(u);
    out->trial.code = (char *)get_text(u);
    const char *digest = get_text(u);
    const size_t n = strlen(digest);
    u->is_damaged |= n >= sizeof out->trial.digest;
    if (!u->is_damaged)
        memcpy(out->trial.digest, digest, n + 1);
    if (out->kind != HWNAS_EVENT_ASKED)
        get_outcome(out, u);
}

bool hwnas_unpack(hwnas_event *out, bool *is_there, hwnas_unpacker *u)
{
    *is_there = u->n_left > 0;
    if (!*is_there)
        return u->at == u->end;
    u->n_left--;
    get_event(out, u);
    return !u->is_damaged;
}
