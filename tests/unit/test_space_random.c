/* test_space_random.c: conditions and constraints of random small spaces decide exactly what an
 * evaluator of the test's own says, combination by combination. Which spaces changes from day to
 * day: the seed is the day's number and is printed, HWNAS_SEED gives another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "search/neighbours.h"
#include "space/backtrack.h"
#include "space/diagram.h"
#include "space/repair.h"
#include "tests/unit/space_fixture.h"

enum { SECONDS_A_DAY = 86400 };

static uint64_t seed(void)
{
    const char *given = getenv("HWNAS_SEED");
    return given && *given ? strtoull(given, NULL, 10) : (uint64_t)(time(NULL) / SECONDS_A_DAY);
}

/* ---- Random spaces ---- */

typedef struct number {
    enum { WHOLE, REAL, WORD, BROKEN } kind;
    int64_t i; /* WORD: which */
    double r;
} number;

typedef struct term {
    char kind; /* see write_term() */
    int64_t i;
    size_t choice;
    struct term *args[3];
} term;

typedef struct made_choice {
    size_t n_positions, n_values, first;
    bool is_list;
    number values[4];
    term *when;
} made_choice;

enum { MAX_CHOICES = 4, MAX_CONSTRAINTS = 2, MADE_GENES = 12 };

typedef struct made {
    hwnas_rng rng;
    hwnas_arena *arena;
    bool has_words;
    size_t n_choices, n_genes, n_constraints;
    made_choice choices[MAX_CHOICES];
    term *constraints[MAX_CONSTRAINTS];
} made;

static const char *const words[] = {"red", "green", "blue"};

static size_t below(made *m, size_t n)
{
    return hwnas_rng_below(&m->rng, (uint32_t)n);
}

static term *new_term(made *m, char kind, term *a, term *b, term *c)
{
    term *t = hwnas_arena_alloc(m->arena, sizeof *t);
    *t = (term){.kind = kind, .args = {a, b, c}};
    return t;
}

static term *make_number(made *m, size_t n_choices, bool has_position, int depth);

static term *make_truth(made *m, size_t n_choices, bool has_position, int depth)
{
    static const char comparisons[] = "=!<>lg";
    if (depth > 0 && below(m, 3) == 0) {
        const char kind = "&|~"[below(m, 3)];
        return new_term(m, kind, make_truth(m, n_choices, has_position, depth - 1),
                        kind == '~' ? NULL : make_truth(m, n_choices, has_position, depth - 1),
                        NULL);
    }
    return new_term(m, comparisons[below(m, 6)], make_number(m, n_choices, has_position, depth - 1),
                    make_number(m, n_choices, has_position, depth - 1), NULL);
}

static term *make_leaf(made *m, size_t n_choices, bool has_position)
{
    term *t = new_term(m, 'n', NULL, NULL, NULL);
    t->i = (int64_t)below(m, 6);
    if (has_position && below(m, 3) == 0)
        t->kind = 'i';
    else if (n_choices && below(m, 5)) {
        t->choice = below(m, n_choices);
        const made_choice *choice = &m->choices[t->choice];
        t->kind = !choice->is_list ? 'c' : below(m, 3) ? 'e' : below(m, 6) ? 's' : 'L';
        if (t->kind == 'e') {
            t->args[0] = new_term(m, 'n', NULL, NULL, NULL);
            t->args[0]->i = (int64_t)below(m, choice->n_positions + (below(m, 20) == 0));
            if (below(m, 5) == 0)
                t->args[0] = make_leaf(m, n_choices, has_position);
        }
    } else if (m->has_words && below(m, 3) == 0) {
        t->kind = 'w';
        t->i = (int64_t)below(m, COUNT(words));
    } else if (below(m, 8) == 0) {
        t->kind = 'h'; /* a half more */
    }
    return t;
}

static term *make_number(made *m, size_t n_choices, bool has_position, int depth)
{
    if (depth <= 0 || below(m, 4) == 0)
        return make_leaf(m, n_choices, has_position);
    const char kind = "+++---**/DM_xXN?t"[below(m, 17)];
    term *a = kind == '?' || kind == 't' ? make_truth(m, n_choices, has_position, depth - 1)
                                         : make_number(m, n_choices, has_position, depth - 1);
    if (kind == 't')
        return a;
    term *b = kind == '_' ? NULL : make_number(m, n_choices, has_position, depth - 1);
    term *c =
        kind == '?' || kind == 'N' ? make_number(m, n_choices, has_position, depth - 1) : NULL;
    return new_term(m, kind, a, b, c);
}

static void write_term(hwnas_str *out, const term *t)
{
    static const struct {
        char kind;
        const char *text;
    } binary[] = {{'=', "=="}, {'!', "!="},  {'<', "<"},  {'>', ">"}, {'l', "<="},
                  {'g', ">="}, {'&', "and"}, {'|', "or"}, {'+', "+"}, {'-', "-"},
                  {'*', "*"},  {'/', "/"},   {'D', "//"}, {'M', "%"}};
    for (size_t i = 0; i < COUNT(binary); i++)
        if (binary[i].kind == t->kind) {
            hwnas_str_add(out, "(");
            write_term(out, t->args[0]);
            hwnas_str_addf(out, " %s ", binary[i].text);
            write_term(out, t->args[1]);
            hwnas_str_add(out, ")");
            return;
        }
    const char *names = "abcd";
    switch (t->kind) {
    case 'n':
        hwnas_str_addf(out, "%lld", (long long)t->i);
        break;
    case 'h':
        hwnas_str_addf(out, "%lld.5", (long long)t->i);
        break;
    case 'w':
        hwnas_str_add(out, words[t->i]);
        break;
    case 'i':
        hwnas_str_add(out, "i");
        break;
    case 'c':
        hwnas_str_addf(out, "%c", names[t->choice]);
        break;
    case 'e':
        hwnas_str_addf(out, "%c[", names[t->choice]);
        write_term(out, t->args[0]);
        hwnas_str_add(out, "]");
        break;
    case 's':
    case 'L':
        hwnas_str_addf(out, "%s(%c)", t->kind == 's' ? "sum" : "len", names[t->choice]);
        break;
    case '_':
    case '~':
        hwnas_str_add(out, t->kind == '_' ? "(-" : "(not ");
        write_term(out, t->args[0]);
        hwnas_str_add(out, ")");
        break;
    case '?':
        hwnas_str_add(out, "(");
        write_term(out, t->args[0]);
        hwnas_str_add(out, " ? ");
        write_term(out, t->args[1]);
        hwnas_str_add(out, " : ");
        write_term(out, t->args[2]);
        hwnas_str_add(out, ")");
        break;
    default: /* x, X, N: functions of two or three */
        hwnas_str_addf(out, "%s(", t->kind == 'X' ? "max" : "min");
        for (int i = 0; i < 3 && t->args[i]; i++) {
            hwnas_str_add(out, i ? ", " : "");
            write_term(out, t->args[i]);
        }
        hwnas_str_add(out, ")");
        break;
    }
}

/* ---- The test's own evaluator ---- */

static number whole(int64_t i)
{
    return (number){.kind = WHOLE, .i = i, .r = (double)i};
}

static number real(double r)
{
    return isfinite(r) ? (number){.kind = REAL, .r = r} : (number){.kind = BROKEN};
}

static int64_t floored(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static number calculate(char kind, number a, number b)
{
    const bool whole_ones = a.kind == WHOLE && b.kind == WHOLE;
    if (a.kind == BROKEN || b.kind == BROKEN)
        return (number){.kind = BROKEN};
    if (kind == '=' || kind == '!') {
        const bool is_equal =
            a.kind == WORD || b.kind == WORD ? a.kind == b.kind && a.i == b.i : a.r == b.r;
        return whole(is_equal == (kind == '='));
    }
    if (a.kind == WORD || b.kind == WORD)
        return (number){.kind = BROKEN};
    switch (kind) {
    case '<':
        return whole(a.r < b.r);
    case '>':
        return whole(a.r > b.r);
    case 'l':
        return whole(a.r <= b.r);
    case 'g':
        return whole(a.r >= b.r);
    case '+':
        return whole_ones ? whole(a.i + b.i) : real(a.r + b.r);
    case '-':
        return whole_ones ? whole(a.i - b.i) : real(a.r - b.r);
    case '*':
        return whole_ones ? whole(a.i * b.i) : real(a.r * b.r);
    default:
        break;
    }
    if (b.r == 0)
        return (number){.kind = BROKEN};
    if (kind == '/')
        return whole_ones && a.i % b.i == 0 ? whole(a.i / b.i) : real(a.r / b.r);
    if (kind == 'D')
        return whole_ones ? whole(floored(a.i, b.i)) : real(floor(a.r / b.r));
    return whole_ones ? whole(a.i - floored(a.i, b.i) * b.i) : real(a.r - floor(a.r / b.r) * b.r);
}

static number value_at(const made *m, const uint16_t *genes, size_t choice, size_t position)
{
    return m->choices[choice].values[genes[m->choices[choice].first + position]];
}

/* -1: it cannot be computed. */
static int truth_of(const made *m, const term *t, const uint16_t *genes, size_t position);

static number worth(const made *m, const term *t, const uint16_t *genes, size_t position)
{
    static const number broken = {.kind = BROKEN};
    number a, sum = whole(0);
    int truth;
    switch (t->kind) {
    case 'n':
        return whole(t->i);
    case 'h':
        return real((double)t->i + 0.5);
    case 'w':
        return (number){.kind = WORD, .i = t->i};
    case 'i':
        return whole((int64_t)position);
    case 'c':
        return value_at(m, genes, t->choice, 0);
    case 'e':
        a = worth(m, t->args[0], genes, position);
        if (a.kind != WHOLE || a.i < 0 || a.i >= (int64_t)m->choices[t->choice].n_positions)
            return broken;
        return value_at(m, genes, t->choice, (size_t)a.i);
    case 's':
        for (size_t p = 0; p < m->choices[t->choice].n_positions; p++)
            sum = calculate('+', sum, value_at(m, genes, t->choice, p));
        return sum;
    case 'L':
        return whole((int64_t)m->choices[t->choice].n_positions);
    case '_':
        return calculate('-', whole(0), worth(m, t->args[0], genes, position));
    case '~':
        truth = truth_of(m, t->args[0], genes, position);
        return truth < 0 ? broken : whole(!truth);
    case '&':
    case '|':
        truth = truth_of(m, t->args[0], genes, position);
        if (truth >= 0 && truth == (t->kind == '&'))
            truth = truth_of(m, t->args[1], genes, position);
        return truth < 0 ? broken : whole(truth);
    case '?':
        truth = truth_of(m, t->args[0], genes, position);
        return truth < 0 ? broken : worth(m, t->args[truth ? 1 : 2], genes, position);
    case 'x':
    case 'X':
    case 'N':
        a = worth(m, t->args[0], genes, position);
        for (int k = 1; k < 3 && t->args[k]; k++) {
            const number b = worth(m, t->args[k], genes, position);
            const number is_less = calculate('<', t->kind == 'X' ? a : b, t->kind == 'X' ? b : a);
            if (is_less.kind == BROKEN)
                return broken;
            a = is_less.i ? b : a;
        }
        return a.kind == WORD ? broken : a;
    default:
        a = worth(m, t->args[0], genes, position);
        return calculate(t->kind, a, worth(m, t->args[1], genes, position));
    }
}

static int truth_of(const made *m, const term *t, const uint16_t *genes, size_t position)
{
    const number v = worth(m, t, genes, position);
    return v.kind == BROKEN || v.kind == WORD ? -1 : v.r != 0;
}

/* Does the encoding count? Which genes do, and its chance among random values. */
static bool is_valid(const made *m, const uint16_t *genes, bool *is_active, double *chance)
{
    *chance = 1;
    for (size_t c = 0; c < m->n_choices; c++)
        for (size_t p = 0; p < m->choices[c].n_positions; p++) {
            const size_t g = m->choices[c].first + p;
            is_active[g] = !m->choices[c].when || truth_of(m, m->choices[c].when, genes, p) == 1;
            if (!is_active[g] && genes[g])
                return false;
            if (is_active[g])
                *chance /= (double)m->choices[c].n_values;
        }
    for (size_t i = 0; i < m->n_constraints; i++)
        if (truth_of(m, m->constraints[i], genes, 0) != 1)
            return false;
    return true;
}

/* ---- Making them ---- */

static void make_values(made *m, made_choice *choice)
{
    const size_t flavour = below(m, 8), first = below(m, 5);
    for (size_t v = 0; v < choice->n_values; v++) {
        choice->values[v] = whole((int64_t)(first + v * (1 + flavour % 3)) - 2);
        if (flavour == 7)
            choice->values[v] = real((double)v - 0.5);
        if (m->has_words && (choice->first == 0 || flavour > 4) && v < COUNT(words))
            choice->values[v] = (number){.kind = WORD, .i = (int64_t)v};
    }
}

static char *write_space(made *m)
{
    hwnas_str out = {0};
    hwnas_str_add(&out, "hwnas: 1\nname: made\ninput: {image: [3, 8, 8]}\nchoices:\n");
    for (size_t c = 0; c < m->n_choices; c++) {
        const made_choice *choice = &m->choices[c];
        hwnas_str_addf(&out, "  %c: {values: [", "abcd"[c]);
        for (size_t v = 0; v < choice->n_values; v++) {
            hwnas_str_add(&out, v ? ", " : "");
            if (choice->values[v].kind == WORD)
                hwnas_str_add(&out, words[choice->values[v].i]);
            else
                hwnas_str_addf(&out, choice->values[v].kind == WHOLE ? "%.0f" : "%.1f",
                               choice->values[v].r);
        }
        hwnas_str_add(&out, "]");
        if (choice->is_list)
            hwnas_str_addf(&out, ", each_of: %zu", choice->n_positions);
        if (choice->when) {
            hwnas_str_add(&out, ", when: \"");
            write_term(&out, choice->when);
            hwnas_str_add(&out, "\"");
        }
        hwnas_str_add(&out, "}\n");
    }
    hwnas_str_add(&out, m->n_constraints ? "constraints:\n" : "");
    for (size_t i = 0; i < m->n_constraints; i++) {
        hwnas_str_add(&out, "  - \"");
        write_term(&out, m->constraints[i]);
        hwnas_str_add(&out, "\"\n");
    }
    hwnas_str_add(&out, "network:\n  - relu\n  - let: {used: [");
    for (size_t c = 0; c < m->n_choices; c++)
        hwnas_str_addf(&out, "%s%c", c ? ", " : "", "abcd"[c]);
    hwnas_str_add(&out, "]}\n");
    return out.s;
}

static char *make_space(made *m, uint64_t stream)
{
    size_t combinations = 1;
    *m = (made){.rng = hwnas_rng_new(seed(), stream), .arena = hwnas_arena_new()};
    m->has_words = below(m, 5) == 0;
    const size_t n_choices = 2 + below(m, MAX_CHOICES - 1);
    for (size_t c = 0; c < n_choices; c++) {
        made_choice *choice = &m->choices[c];
        choice->is_list = below(m, 2);
        choice->n_positions = choice->is_list ? 1 + below(m, 4) : 1;
        choice->n_values = c || !m->has_words ? 1 + below(m, 4) : COUNT(words);
        choice->first = m->n_genes;
        make_values(m, choice);
        if (below(m, 5) < 2)
            choice->when = make_truth(m, m->n_choices, true, 2);
        for (size_t p = 0; p < choice->n_positions; p++)
            combinations *= choice->n_values;
        if (combinations > 4096 || m->n_genes + choice->n_positions > MADE_GENES)
            break;
        m->n_genes += choice->n_positions;
        m->n_choices++;
    }
    m->n_constraints = m->n_choices ? below(m, MAX_CONSTRAINTS + 1) : 0;
    for (size_t i = 0; i < m->n_constraints; i++)
        m->constraints[i] = make_truth(m, m->n_choices, false, 3);
    return write_space(m);
}

/* ---- Comparing ---- */

typedef struct world {
    const made *m;
    const hwnas_space *space;
    size_t n, n_valid;
    bool *is_valid; /* by number of the combination */
} world;

static size_t index_of(const hwnas_arch *arch)
{
    size_t index = 0;
    for (size_t g = 0; g < arch->space->n_genes; g++)
        index = index * arch->space->genes[g].n_values + arch->genes[g];
    return index;
}

static void set_index(hwnas_arch *arch, size_t index)
{
    for (size_t g = arch->space->n_genes; g-- > 0;) {
        arch->genes[g] = (uint16_t)(index % arch->space->genes[g].n_values);
        index /= arch->space->genes[g].n_values;
    }
}

static void go_through(world *w)
{
    hwnas_arch *arch = hwnas_arch_new(w->space);
    bool is_active[MADE_GENES];
    double chance, accepted = 0;
    w->n = 1;
    for (size_t g = 0; g < w->space->n_genes; g++)
        w->n *= w->space->genes[g].n_values;
    w->is_valid = hwnas_alloc(w->n);
    for (size_t i = 0; i < w->n; i++) {
        set_index(arch, i);
        w->is_valid[i] = is_valid(w->m, arch->genes, is_active, &chance);
        w->n_valid += w->is_valid[i];
        accepted += w->is_valid[i] ? chance : 0;
        for (size_t g = 0; w->is_valid[i] && g < w->space->n_genes; g++)
            assert_int_equal(hwnas_arch_is_active(arch, g), is_active[g]);
    }
    if (w->space->rules)
        assert_float_equal(w->space->rules->diagram->acceptance, accepted, 1e-9);
    hwnas_arch_free(arch);
}

static void check_count_and_order(const world *w)
{
    hwnas_arch *arch = hwnas_arch_first(w->space);
    char *count = hwnas_printf("%zu", w->n_valid);
    expect_count(w->space, count);
    assert_int_equal(hwnas_space_count_up_to(w->space, w->n), w->n_valid);
    free(count);
    assert_int_equal(arch != NULL, w->n_valid > 0);
    for (size_t i = 0; arch && i < w->n; i++) {
        if (!w->is_valid[i])
            continue;
        assert_int_equal(index_of(arch), i); /* in lexical order */
        if (!hwnas_arch_next(arch)) {
            for (size_t k = i + 1; k < w->n; k++)
                assert_false(w->is_valid[k]);
            break;
        }
    }
    hwnas_arch_free(arch);
}

/* Genes that count in `to` and are others than in `from`. */
static size_t changes(const world *w, const hwnas_arch *from, const hwnas_arch *to)
{
    bool is_active[MADE_GENES];
    double chance;
    size_t n = 0;
    is_valid(w->m, to->genes, is_active, &chance);
    for (size_t g = 0; g < w->space->n_genes; g++)
        n += is_active[g] && from->genes[g] != to->genes[g];
    return n;
}

static void check_repair(const world *w, const hwnas_arch *near, size_t gene, size_t value)
{
    hwnas_repair *repair = hwnas_repair_new(near);
    hwnas_arch *found = hwnas_arch_copy(near), *other = hwnas_arch_new(w->space);
    const bool is_found = hwnas_repair_find(found, repair, gene, value);
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < w->n; i++) {
        set_index(other, i);
        if (!w->is_valid[i] || other->genes[gene] != value || !hwnas_arch_is_active(other, gene))
            continue;
        const size_t n = changes(w, near, other);
        fewest = n < fewest ? n : fewest;
    }
    assert_int_equal(is_found, fewest != SIZE_MAX);
    if (is_found) {
        assert_true(w->is_valid[index_of(found)]);
        assert_int_equal(found->genes[gene], value);
        assert_int_equal(changes(w, near, found), fewest);
    }
    hwnas_repair_free(repair);
    hwnas_arch_free(found);
    hwnas_arch_free(other);
}

static void check_backtracking(const world *w, hwnas_rng *rng)
{
    hwnas_arch *arch = hwnas_arch_new(w->space);
    if (!w->space->rules)
        goto out;
    for (int i = 0; i < 5; i++) {
        const hwnas_finding finding = hwnas_backtrack(arch->genes, w->space->rules, NULL, rng);
        assert_int_equal(finding, w->n_valid ? HWNAS_FOUND : HWNAS_NONE);
        if (finding == HWNAS_FOUND)
            assert_true(w->is_valid[index_of(arch)]);
    }
out:
    hwnas_arch_free(arch);
}

static void check_variation(const world *w, hwnas_rng *rng)
{
    hwnas_arch *a = hwnas_arch_new(w->space), *b = hwnas_arch_new(w->space),
               *c = hwnas_arch_new(w->space);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hwnas_arch_sample(a, rng), w->n_valid > 0);
        assert_int_equal(hwnas_arch_sample_evenly(b, rng), w->n_valid > 0);
        if (!w->n_valid)
            break;
        assert_true(w->is_valid[index_of(a)]);
        assert_true(w->is_valid[index_of(b)]);
        hwnas_arch_cross(c, a, b, rng);
        assert_true(w->is_valid[index_of(c)]);
        hwnas_arch_assign(c, a);
        hwnas_arch_mutate(c, i % 4 * 0.25, rng);
        assert_true(w->is_valid[index_of(c)]);
        if (w->space->rules)
            hwnas_diagram_cross(c->genes, w->space->rules->diagram, a->genes, b->genes, rng);
        assert_true(w->is_valid[index_of(c)]);
        hwnas_neighbours all;
        hwnas_neighbours_of(&all, a);
        for (size_t k = 0; k < all.n; k++)
            assert_true(w->is_valid[index_of(all.archs[k])]);
        hwnas_neighbours_done(&all);
        const size_t gene = hwnas_rng_below(rng, (uint32_t)w->space->n_genes);
        if (i < 4 && w->space->rules)
            check_repair(w, a, gene,
                         hwnas_rng_below(rng, (uint32_t)w->space->genes[gene].n_values));
    }
    hwnas_arch_free(a);
    hwnas_arch_free(b);
    hwnas_arch_free(c);
}

static void random_spaces_are_what_their_rules_say(void **state)
{
    (void)state;
    enum { N_SPACES = 600 };
    size_t n_without = 0, n_partly = 0;
    print_message("# HWNAS_SEED=%llu\n", (unsigned long long)seed());
    for (uint64_t i = 0; i < N_SPACES; i++) {
        made m;
        char *text = make_space(&m, i);
        hwnas_space *space = NULL;
        if (!m.n_choices)
            goto next;
        if (hwnas_space_parse(&space, "made.yaml", text, strlen(text), NULL) != HWNAS_OK)
            fail_msg("%s\n%s", describe(), text);
        world w = {.m = &m, .space = space};
        hwnas_rng rng = hwnas_rng_new(seed(), i + N_SPACES);
        if (getenv("HWNAS_SHOW"))
            print_message("# space %llu:\n%s", (unsigned long long)i, text);
        go_through(&w);
        check_count_and_order(&w);
        check_backtracking(&w, &rng);
        check_variation(&w, &rng);
        n_without += w.n_valid == 0;
        n_partly += w.n_valid > 0 && w.n_valid < w.n;
        free(w.is_valid);
        hwnas_space_free(space);
    next:
        hwnas_arena_free(m.arena);
        free(text);
    }
    print_message("# %d spaces: %zu have no network, rules leave a part of %zu\n", N_SPACES,
                  n_without, n_partly);
    assert_true(n_without > 0 && n_partly > N_SPACES / 10); /* it tests something */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_spaces_are_what_their_rules_say)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
