/* arch.c: one point of a space: sampling, variation, and its spelling. */
#include "space/arch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* Attempts to meet the constraints of a space by chance. */
enum { MAX_TRIES = 20000 };

static size_t genes_size(const hwnas_space *space)
{
    return space->n_genes * sizeof(uint16_t);
}

hwnas_arch *hwnas_arch_new(const hwnas_space *space)
{
    hwnas_arch *arch = hwnas_alloc(sizeof *arch + genes_size(space));
    arch->space = space;
    return arch;
}

hwnas_arch *hwnas_arch_copy(const hwnas_arch *arch)
{
    hwnas_arch *copy = hwnas_arch_new(arch->space);
    hwnas_arch_assign(copy, arch);
    return copy;
}

void hwnas_arch_free(hwnas_arch *arch)
{
    free(arch);
}

void hwnas_arch_assign(hwnas_arch *to, const hwnas_arch *from)
{
    assert(to->space == from->space);
    memcpy(to->genes, from->genes, genes_size(from->space));
}

bool hwnas_arch_equal(const hwnas_arch *a, const hwnas_arch *b)
{
    return a->space == b->space && !memcmp(a->genes, b->genes, genes_size(a->space));
}

uint64_t hwnas_arch_hash(const hwnas_arch *arch)
{
    /* FNV-1a, 64 bits. */
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < arch->space->n_genes; i++)
        hash = (hash ^ arch->genes[i]) * 1099511628211u;
    return hash;
}

static void sample(hwnas_arch *arch, hwnas_rng *rng)
{
    for (size_t i = 0; i < arch->space->n_genes; i++)
        arch->genes[i] =
            (uint16_t)hwnas_rng_below(rng, (uint32_t)arch->space->genes[i].n_values);
}

void hwnas_arch_sample(hwnas_arch *arch, hwnas_rng *rng)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        sample(arch, rng);
        if (hwnas_arch_settle(arch))
            return;
    }
}

/* Another value for gene i, uniform over the others. */
static void change(hwnas_arch *arch, size_t i, hwnas_rng *rng)
{
    uint32_t n = (uint32_t)arch->space->genes[i].n_values;
    arch->genes[i] = (uint16_t)((arch->genes[i] + 1 + hwnas_rng_below(rng, n - 1)) % n);
}

static void mutate(hwnas_arch *arch, double rate, hwnas_rng *rng)
{
    const hwnas_space *space = arch->space;
    bool changed = false;
    size_t n_free = 0;
    for (size_t i = 0; i < space->n_genes; i++) {
        if (space->genes[i].n_values < 2)
            continue;
        n_free++;
        if (hwnas_rng_double(rng) < rate) {
            change(arch, i, rng);
            changed = true;
        }
    }
    if (changed || n_free == 0)
        return;
    size_t nth = hwnas_rng_below(rng, (uint32_t)n_free);
    for (size_t i = 0; i < space->n_genes; i++)
        if (space->genes[i].n_values > 1 && nth-- == 0)
            change(arch, i, rng);
}

void hwnas_arch_mutate(hwnas_arch *arch, double rate, hwnas_rng *rng)
{
    if (!arch->space->has_rules) {
        mutate(arch, rate, rng);
        return;
    }
    /* A change of genes that do not count is none. */
    hwnas_arch *parent = hwnas_arch_copy(arch);
    bool is_valid = false;
    for (int i = 0; i < MAX_TRIES && (!is_valid || hwnas_arch_equal(arch, parent)); i++) {
        hwnas_arch_assign(arch, parent);
        mutate(arch, rate, rng);
        is_valid = hwnas_arch_settle(arch);
    }
    if (!is_valid)
        hwnas_arch_assign(arch, parent);
    hwnas_arch_free(parent);
}

void hwnas_arch_cross(hwnas_arch *child, const hwnas_arch *a, const hwnas_arch *b, hwnas_rng *rng)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        for (size_t g = 0; g < child->space->n_genes; g++)
            child->genes[g] = hwnas_rng_below(rng, 2) ? a->genes[g] : b->genes[g];
        if (hwnas_arch_settle(child))
            return;
    }
    hwnas_arch_assign(child, a);
}

static bool next(hwnas_arch *arch)
{
    for (size_t i = arch->space->n_genes; i-- > 0;) {
        if (++arch->genes[i] < arch->space->genes[i].n_values)
            return true;
        arch->genes[i] = 0;
    }
    return false;
}

bool hwnas_arch_next(hwnas_arch *arch)
{
    if (!arch->space->has_rules)
        return next(arch);
    hwnas_arch *settled = hwnas_arch_copy(arch);
    bool found = false;
    while (!found && next(arch)) {
        hwnas_arch_assign(settled, arch);
        found = hwnas_arch_settle(settled) && hwnas_arch_equal(settled, arch);
    }
    hwnas_arch_free(settled);
    return found;
}

hwnas_arch *hwnas_arch_first(const hwnas_space *space)
{
    hwnas_arch *arch = hwnas_arch_new(space);
    if (!hwnas_arch_settle(arch) && !hwnas_arch_next(arch))
        hwnas_arch_settle(arch); /* there is none; hwnas_space_check_rules() says so */
    return arch;
}

char *hwnas_arch_code(const hwnas_arch *arch)
{
    const hwnas_space *space = arch->space;
    hwnas_str code = {0};
    hwnas_str_add(&code, "");
    for (size_t c = 0; c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        if (space->n_choices > 1)
            hwnas_str_addf(&code, "%s%s=", c ? "," : "", choice->name);
        for (size_t p = 0; p < choice->n_positions; p++) {
            const hwnas_gene *gene = &space->genes[choice->first_gene + p];
            if (p && !choice->short_labels)
                hwnas_str_addn(&code, &choice->separator, 1);
            hwnas_str_add(&code, gene->labels[arch->genes[choice->first_gene + p]]);
        }
    }
    return code.s;
}

static hwnas_status bad_code(const hwnas_space *space, const char *code, const char *what)
{
    hwnas_arch *example = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(0, 0);
    if (!hwnas_arch_settle(example))
        hwnas_arch_sample(example, &rng);
    char *text = hwnas_arch_code(example);
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, NULL, "'%.200s' is no architecture of the space '%s': %s", code,
                   space->name, what);
    if (space->n_genes)
        hwnas_hint(status, "an architecture of it looks like %.400s", text);
    else
        hwnas_hint(status, "it has one network, whose code is empty");
    free(text);
    hwnas_arch_free(example);
    return status;
}

/* Reads the labels of one choice from text[0..n), and says for how many of its positions there were
 * some. */
static hwnas_status parse_labels(size_t *n_given, hwnas_arch *arch, const hwnas_choice *choice,
                                 const char *code, const char *text, size_t n)
{
    const hwnas_space *space = arch->space;
    const size_t joint = !choice->short_labels; /* behind each label, as if behind the last too */
    char what[128];
    size_t at = 0, p = 0;
    for (; p < choice->n_positions && at < n + joint; p++) {
        const hwnas_gene *gene = &space->genes[choice->first_gene + p];
        size_t length = 1;
        if (!choice->short_labels) {
            const char *end = memchr(text + at, choice->separator, n - at);
            length = end ? (size_t)(end - text) - at : n - at;
        }
        size_t v = 0;
        while (v < gene->n_values && (strlen(gene->labels[v]) != length ||
                                      memcmp(gene->labels[v], text + at, length)))
            v++;
        if (v == gene->n_values) {
            snprintf(what, sizeof what, "'%.*s' is no value of '%s' at position %zu",
                     (int)(length < 32 ? length : 32), text + at, choice->name, p + 1);
            return bad_code(space, code, what);
        }
        arch->genes[choice->first_gene + p] = (uint16_t)v;
        at += length + joint;
    }
    if (at < n + joint) {
        snprintf(what, sizeof what, "'%s' has more than %zu values", choice->name,
                 choice->n_positions);
        return bad_code(space, code, what);
    }
    *n_given = p;
    return HWNAS_OK;
}

/* Positions that were not given, the last of each choice, must be such as do not count. */
static hwnas_status check_given(const hwnas_arch *arch, const size_t *n_given, const char *code)
{
    const hwnas_space *space = arch->space;
    char what[128];
    for (size_t c = 0; c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        size_t n = choice->n_positions;
        while (n > n_given[c] && !hwnas_arch_is_active(arch, choice->first_gene + n - 1))
            n--;
        if (n == n_given[c])
            continue;
        if (n_given[c] || space->n_choices == 1)
            snprintf(what, sizeof what, "'%.60s' has %zu values, %zu are needed", choice->name,
                     n_given[c], n);
        else
            snprintf(what, sizeof what, "'%.60s' is missing", choice->name);
        return bad_code(space, code, what);
    }
    return HWNAS_OK;
}

static const hwnas_choice *find_choice(const hwnas_space *space, const char *name, size_t n)
{
    for (size_t c = 0; c < space->n_choices; c++)
        if (strlen(space->choices[c].name) == n && !memcmp(space->choices[c].name, name, n))
            return &space->choices[c];
    return NULL;
}

hwnas_status hwnas_arch_parse(hwnas_arch **out, const hwnas_space *space, const char *code)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_new(space);
    size_t *n_given = hwnas_alloc(space->n_choices * sizeof *n_given);
    if (space->n_choices == 1 && !strchr(code, '=')) {
        TRY_OUT(parse_labels(&n_given[0], arch, &space->choices[0], code, code, strlen(code)));
    } else {
        for (const char *part = code; *part;) {
            size_t n = strcspn(part, ",");
            const char *equals = memchr(part, '=', n);
            const hwnas_choice *choice =
                equals ? find_choice(space, part, (size_t)(equals - part)) : NULL;
            if (!choice || n_given[choice - space->choices]) {
                char what[96];
                snprintf(what, sizeof what,
                         choice ? "'%.*s' is given twice" : "'%.*s' is no choice",
                         (int)(n < 40 ? n : 40), part);
                status = bad_code(space, code, what);
                goto out;
            }
            TRY_OUT(parse_labels(&n_given[choice - space->choices], arch, choice, code, equals + 1,
                                 n - (size_t)(equals + 1 - part)));
            part += n;
            if (*part == ',' && !part[1]) {
                status = bad_code(space, code, "it ends with ','");
                goto out;
            }
            part += *part == ',';
        }
    }
    const bool holds = hwnas_arch_settle(arch);
    TRY_OUT(check_given(arch, n_given, code));
    if (!holds) {
        status = bad_code(space, code, "a constraint of the space does not hold");
        goto out;
    }
    *out = arch;
    arch = NULL;
out:
    hwnas_arch_free(arch);
    free(n_given);
    return status;
}
