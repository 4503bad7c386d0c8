/* json_number.h: a number of a JSON object that may lack it. */
#ifndef HWNAS_BASE_JSON_NUMBER_H
#define HWNAS_BASE_JSON_NUMBER_H

#include <jansson.h>
#include <math.h>

/* NaN where the object is NULL, or has no number under the key. */
static inline double hwnas_json_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

#endif
