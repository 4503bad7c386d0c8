/* arch.c: one point of a space, and its spelling. */
#include "space/arch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

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
    hwnas_arch *example = hwnas_arch_first(space);
    char *text = example ? hwnas_arch_code(example) : NULL;
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, NULL, "'%.200s' is not an architecture of the space '%s': %s", code,
                   space->name, what);
    if (space->n_genes && text)
        hwnas_hint(status, "an architecture of it looks like %.400s", text);
    else if (!space->n_genes)
        hwnas_hint(status, "it has one network, whose code is empty");
    free(text);
    hwnas_arch_free(example);
    return status;
}

/* Which value has this label; n_values: none. */
static size_t find_label(const hwnas_gene *gene, const char *text, size_t n)
{
    size_t v = 0;
    while (v < gene->n_values && (strncmp(gene->labels[v], text, n) != 0 || gene->labels[v][n]))
        v++;
    return v;
}

/* The same where each label is one character, as in most spaces: all are looked at, as nobody can
 * foresee which one it is, and a wrong guess takes longer. */
static size_t find_letter(const hwnas_gene *gene, char letter)
{
    size_t found = gene->n_values;
    for (size_t v = 0; v < gene->n_values; v++)
        found = *gene->labels[v] == letter ? v : found;
    return found;
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
        const size_t v = choice->short_labels ? find_letter(gene, text[at])
                                              : find_label(gene, text + at, length);
        if (v == gene->n_values) {
            snprintf(what, sizeof what, "'%.*s' is not a value of '%s' at position %zu",
                     (int)(length < 32 ? length : 32), text + at, choice->name, p + 1);
            return bad_code(space, code, what);
        }
        arch->genes[choice->first_gene + p] = (uint16_t)v;
        at += length + joint;
    }
    if (at < n + joint) {
        snprintf(what, sizeof what, "'%s' has more than %zu value%s", choice->name,
                 choice->n_positions, choice->n_positions == 1 ? "" : "s");
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
            snprintf(what, sizeof what, "'%.60s' has %zu of %zu values that are needed",
                     choice->name, n_given[c], n);
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

size_t hwnas_space_genes(const hwnas_space *space)
{
    return space->n_genes;
}

size_t hwnas_space_values(const hwnas_space *space, size_t gene)
{
    return space->genes[gene].n_values;
}

const char *hwnas_space_label(const hwnas_space *space, size_t gene, size_t value)
{
    return space->genes[gene].labels[value];
}

const char *hwnas_space_choice(const hwnas_space *space, size_t gene)
{
    return space->choices[space->genes[gene].choice].name;
}

/* Why the rules do not hold, for a code that can be read. */
static hwnas_status broken_rule(const hwnas_arch *arch, const char *code)
{
    const hwnas_space *space = arch->space;
    char what[128];
    for (size_t g = 0; g < space->n_genes; g++) {
        const hwnas_gene *gene = &space->genes[g];
        if (hwnas_gene_keeps(gene, arch->genes[g]) || !hwnas_arch_is_active(arch, g))
            continue;
        snprintf(what, sizeof what, "'%.32s' is left out of the values of '%s' at position %zu",
                 gene->labels[arch->genes[g]], space->choices[gene->choice].name,
                 gene->position + 1);
        return bad_code(space, code, what);
    }
    return bad_code(space, code,
                    space->among ? "it is none of those that are searched, or a constraint of the "
                                   "space does not hold"
                                 : "a constraint of the space does not hold");
}

hwnas_status hwnas_arch_parse(hwnas_arch **out, const hwnas_space *space, const char *code)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_new(space);
    size_t few[16] = {0}; /* most spaces have less, and it may be done a million times */
    const bool is_few = space->n_choices <= sizeof few / sizeof *few;
    size_t *n_given = is_few ? few : hwnas_alloc(space->n_choices * sizeof *n_given);
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
                         choice ? "'%.*s' is given twice" : "'%.*s' is not a choice",
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
        status = broken_rule(arch, code);
        goto out;
    }
    *out = arch;
    arch = NULL;
out:
    hwnas_arch_free(arch);
    if (!is_few)
        free(n_given);
    return status;
}
