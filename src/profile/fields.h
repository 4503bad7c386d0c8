/* fields.h: what a row of a profile has, as a table: JSON and CSV are written from it, and recorded
 * profiles are read by it. docs/json.md tells what the fields mean. */
#ifndef HWNAS_PROFILE_FIELDS_H
#define HWNAS_PROFILE_FIELDS_H

#include <jansson.h>

#include "base/str.h"
#include "profile/profile.h"

typedef enum hwnas_field_kind {
    HWNAS_FIELD_TEXT,
    HWNAS_FIELD_INT,
    HWNAS_FIELD_INT64,
    HWNAS_FIELD_SIZE,
    HWNAS_FIELD_NUMBER, /* NaN: not known */
    HWNAS_FIELD_FLAG,
    HWNAS_FIELD_PRECISION,
    HWNAS_FIELD_OPTIMIZER,
    HWNAS_FIELD_STATUS,
    HWNAS_FIELD_DIGEST, /* "" is null */
} hwnas_field_kind;

typedef enum hwnas_field_when {
    HWNAS_FIELD_ALWAYS,
    HWNAS_FIELD_MEASURED, /* when the measurement succeeded */
    HWNAS_FIELD_FAILED,   /* when it did not */
} hwnas_field_when;

typedef struct hwnas_profile_field {
    const char *name;   /* in JSON; NULL ends the table */
    const char *column; /* in CSV */
    hwnas_field_kind kind;
    hwnas_field_when when;
    size_t offset;    /* in hwnas_profile_row */
    bool is_required; /* of a recorded profile that is read */
} hwnas_profile_field;

extern const hwnas_profile_field hwnas_profile_fields[];

bool hwnas_field_applies(const hwnas_profile_field *field, const hwnas_profile_row *row);
/* Takes a value from JSON; NULL and null where the field is not required. false: it is of another
 * type, or missing. Text goes to the arena. */
bool hwnas_field_read(hwnas_profile_row *row, const hwnas_profile_field *field, const json_t *value,
                      hwnas_arena *arena);
json_t *hwnas_field_json(const hwnas_profile_field *field, const hwnas_profile_row *row);
/* A value as a cell of a CSV, in quotes where it needs them (RFC 4180). Takes it. */
void hwnas_csv_value(hwnas_str *out, json_t *value);

#endif
