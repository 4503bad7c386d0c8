/* attributes.h: attributes of an operator in tests, as words. */
#ifndef HWNAS_TESTS_ATTRIBUTES_H
#define HWNAS_TESTS_ATTRIBUTES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/op.h"

/* Reads attributes written as "out=8 kernel=3,5 alpha=0.2"; too few integers are repeated. An
 * unknown one ends the program. */
static inline hwnas_attr *attributes(const hwnas_op *op, const char *text)
{
    hwnas_attr *attrs = hwnas_alloc((HWNAS_MAX_RANK + 1) * sizeof *attrs);
    char *copy = hwnas_strdup(text), *rest = copy;
    for (char *word; (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = '\0';
        int i = 0;
        while (op->attrs[i].name && strcmp(op->attrs[i].name, word))
            i++;
        if (!op->attrs[i].name) {
            fprintf(stderr, "'%s' has no '%s'\n", op->name, word);
            abort();
        }
        hwnas_attr *attr = &attrs[i];
        attr->is_set = true;
        attr->number = strtod(value, NULL);
        attr->n = op->attrs[i].kind == HWNAS_ATTR_INTS ? op->attrs[i].count : 1;
        int n_given = 0;
        for (char *number; n_given < HWNAS_MAX_RANK && (number = strsep(&value, ","));)
            attr->ints[n_given++] = strtol(number, NULL, 10);
        if (attr->n == 0)
            attr->n = n_given; /* a list of any length */
        for (int k = n_given; k < attr->n; k++)
            attr->ints[k] = attr->ints[k % n_given];
    }
    free(copy);
    return attrs;
}

#endif
