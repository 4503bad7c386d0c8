/* lang.c: values of the space language. */
#include "space/lang.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

bool hwnas_value_equal(const hwnas_value *a, const hwnas_value *b)
{
    if (a->kind == HWNAS_VALUE_INT && b->kind == HWNAS_VALUE_REAL)
        return (double)a->i == b->r;
    if (a->kind == HWNAS_VALUE_REAL && b->kind == HWNAS_VALUE_INT)
        return a->r == (double)b->i;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case HWNAS_VALUE_INT:
        return a->i == b->i;
    case HWNAS_VALUE_REAL:
        return a->r == b->r;
    case HWNAS_VALUE_SYMBOL:
        return !strcmp(a->s, b->s);
    case HWNAS_VALUE_LIST:
        if (a->list.n != b->list.n)
            return false;
        for (size_t i = 0; i < a->list.n; i++)
            if (!hwnas_value_equal(&a->list.items[i], &b->list.items[i]))
                return false;
        return true;
    case HWNAS_VALUE_NONE:
        break;
    }
    return true;
}

static void add_text(hwnas_str *text, const hwnas_value *value)
{
    char real[40];
    switch (value->kind) {
    case HWNAS_VALUE_INT:
        hwnas_str_addf(text, "%lld", (long long)value->i);
        break;
    case HWNAS_VALUE_REAL: /* never looks like a whole number */
        snprintf(real, sizeof real, "%.15g", value->r);
        hwnas_str_addf(text, "%s%s", real, strpbrk(real, ".ein") ? "" : ".0");
        break;
    case HWNAS_VALUE_SYMBOL:
        hwnas_str_add(text, value->s);
        break;
    case HWNAS_VALUE_LIST:
        hwnas_str_add(text, "[");
        for (size_t i = 0; i < value->list.n; i++) {
            hwnas_str_add(text, i ? ", " : "");
            add_text(text, &value->list.items[i]);
        }
        hwnas_str_add(text, "]");
        break;
    case HWNAS_VALUE_NONE:
        hwnas_str_add(text, "nothing");
        break;
    }
}

char *hwnas_value_text(const hwnas_value *value)
{
    hwnas_str text = {0};
    add_text(&text, value);
    return text.s;
}

const char *hwnas_value_kind_name(hwnas_value_kind kind)
{
    static const char *const names[] = {"nothing", "a whole number", "a fraction", "a name",
                                        "a list"};
    return names[kind];
}
