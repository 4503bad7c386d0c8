#include "space/table_columns.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

char *hwnas_table_file(const char **names, const char *path)
{
    const char *mark = strrchr(path, '?');
    const bool has_names = mark && access(path, F_OK) != 0;
    *names = has_names ? mark + 1 : NULL;
    return hwnas_printf("%.*s", (int)(has_names ? (size_t)(mark - path) : strlen(path)), path);
}

size_t hwnas_table_name_length(const char *text)
{
    const size_t n = hwnas_file_name_length(text);
    const char *names;
    char *path = hwnas_printf("%.*s", (int)n, text), *file = hwnas_table_file(&names, path);
    const size_t length = strlen(file);
    free(path);
    free(file);
    return length;
}

void hwnas_table_columns_done(hwnas_table_columns *columns)
{
    for (size_t i = 0; i < columns->n_of; i++)
        free(columns->of[i].columns);
    free(columns->of);
    *columns = (hwnas_table_columns){0};
}

static void take_one(hwnas_table_column *out, size_t column)
{
    *out = (hwnas_table_column){.n = 1, .columns = hwnas_alloc(sizeof *out->columns)};
    *out->columns = column;
}

static hwnas_status fail(const hwnas_csv *csv, const char *what, const char *word)
{
    const hwnas_place place = {.file = csv->path};
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, what, word),
                      "write FILE?CHOICE=COLUMN,... where columns have other names");
}

/* "k1+k2" */
static hwnas_status take_named(hwnas_table_column *out, const hwnas_csv *csv, char *list,
                               size_t n_positions, const char *choice)
{
    size_t n = 0;
    out->columns = hwnas_alloc((strlen(list) + 1) * sizeof *out->columns);
    for (char *word; (word = strsep(&list, "+"));)
        TRY(hwnas_csv_require(&out->columns[n++], csv, word));
    out->n = n;
    return n == 1 || n == n_positions
               ? HWNAS_OK
               : fail(csv, "the choice '%s' has another number of positions than columns", choice);
}

/* The place of a choice in `out`; of "code" the first. */
static hwnas_status find_choice(size_t *out, hwnas_table_columns *columns, const hwnas_space *space,
                                const hwnas_csv *csv, const char *name)
{
    const char **names = hwnas_alloc((space->n_choices + 1) * sizeof *names);
    for (*out = 0; *out < space->n_choices; ++*out) {
        names[*out] = space->choices[*out].name;
        if (!strcmp(names[*out], name))
            break;
    }
    hwnas_status status = HWNAS_OK;
    if (*out == space->n_choices && !strcmp(name, "code")) {
        *out = 0;
        columns->is_code = true;
    } else if (*out == space->n_choices) {
        const hwnas_place place = {.file = csv->path};
        const char *nearest = hwnas_nearest(name, names);
        status = hwnas_fail(HWNAS_E_INPUT, &place, "the space '%s' has no choice '%s'", space->name,
                            name);
        status = nearest ? hwnas_hint(status, "did you mean '%s'?", nearest)
                         : hwnas_hint(status, "'hwnas space show %s' lists its choices; 'code' is "
                                              "the whole of an architecture",
                                      space->name);
    }
    free(names);
    return status;
}

/* "depth=d,kernel=k1+k2" */
static hwnas_status read_names(hwnas_table_columns *out, const hwnas_space *space,
                               const hwnas_csv *csv, char *names)
{
    for (char *column; (column = strsep(&names, ","));) {
        size_t c;
        const char *name = strsep(&column, "=");
        if (!column || !*column || !*name)
            return fail(csv, "'%s' names no choice and column", name);
        TRY(find_choice(&c, out, space, csv, name));
        if (c >= out->n_of || out->of[c].n)
            return fail(csv, "'%s' is named twice", name);
        TRY(take_named(&out->of[c], csv, column,
                       out->is_code ? 1 : space->choices[c].n_positions, name));
    }
    return HWNAS_OK;
}

static hwnas_status find_rest(hwnas_table_columns *out, const hwnas_space *space,
                              const hwnas_csv *csv)
{
    for (size_t c = 0; c < space->n_choices; c++) {
        const char *name = space->choices[c].name;
        const long column = hwnas_csv_column(csv, name);
        if (out->of[c].n)
            continue;
        if (column < 0) {
            const hwnas_place place = {.file = csv->path, .line = 1};
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &place,
                           "no column says which architecture a row is: there is no 'code', no "
                           "'arch', and none for the choice '%s' of the space '%s'",
                           name, space->name),
                "give one column 'code', or one column for each choice; 'FILE?%s=COLUMN' where it "
                "has another name",
                name);
        }
        take_one(&out->of[c], (size_t)column);
    }
    return HWNAS_OK;
}

static long find_code(const hwnas_csv *csv)
{
    const long code = hwnas_csv_column(csv, "code");
    return code >= 0 ? code : hwnas_csv_column(csv, "arch");
}

hwnas_status hwnas_table_columns_find(hwnas_table_columns *out, const hwnas_space *space,
                                      const hwnas_csv *csv, const char *names)
{
    *out = (hwnas_table_columns){.n_of = space->n_choices ? space->n_choices : 1};
    out->of = hwnas_alloc(out->n_of * sizeof *out->of);
    if (names) {
        char *text = hwnas_strdup(names);
        const hwnas_status status = read_names(out, space, csv, text);
        free(text);
        TRY(status);
    } else if (find_code(csv) >= 0) {
        out->is_code = true;
        take_one(&out->of[0], (size_t)find_code(csv));
    }
    return out->is_code ? HWNAS_OK : find_rest(out, space, csv);
}

/* A word as the gene spells it; where it spells none so, a number as it spells that number:
 * programs write 16 as 16.0. */
static void add_word(hwnas_str *code, const hwnas_gene *gene, const char *word)
{
    char *end;
    const double number = strtod(word, &end);
    const bool is_number = end > word && !*end;
    const char *same = NULL;
    for (size_t v = 0; v < gene->n_values; v++) {
        const char *label = gene->labels[v];
        if (!strcmp(label, word)) {
            same = NULL;
            break;
        }
        if (is_number && strtod(label, &end) == number && end > label && !*end)
            same = label;
    }
    hwnas_str_add(code, same ? same : word);
}

/* The values of all positions in one cell: as in a code, or "2 8 4", "[2, 8, 4]", "2.8.4". */
static void add_list(hwnas_str *code, const hwnas_space *space, const hwnas_choice *choice,
                     const char *cell)
{
    static const char usual[] = " ,;\t";
    size_t n = strlen(cell), p = 0;
    const bool is_enclosed =
        n > 1 && ((cell[0] == '[' && cell[n - 1] == ']') || (cell[0] == '(' && cell[n - 1] == ')'));
    char *list = hwnas_printf("%.*s", (int)(is_enclosed ? n - 2 : n), cell + is_enclosed);
    char *rest = list, *word;
    const char between[] = {choice->separator, 0};
    const bool is_spaced = strpbrk(list, usual);
    if (!is_spaced && choice->short_labels && !strchr(list, choice->separator))
        hwnas_str_add(code, list);
    else
        while ((word = strsep(&rest, is_spaced ? usual : between))) {
            if (is_spaced && !*word)
                continue;
            if (p && !choice->short_labels)
                hwnas_str_addn(code, &choice->separator, 1);
            if (p < choice->n_positions)
                add_word(code, &space->genes[choice->first_gene + p], word);
            else
                hwnas_str_add(code, word); /* one too many, of which the reader of codes tells */
            p++;
        }
    free(list);
}

static void add_choice(hwnas_str *code, const hwnas_table_column *column, const hwnas_space *space,
                       const hwnas_choice *choice, const hwnas_csv *csv, size_t row)
{
    hwnas_str_addf(code, "%s=", choice->name);
    if (column->n == 1 && choice->n_positions > 1) {
        add_list(code, space, choice, hwnas_csv_cell(csv, row, *column->columns));
        return;
    }
    for (size_t p = 0; p < column->n; p++) {
        if (p && !choice->short_labels)
            hwnas_str_addn(code, &choice->separator, 1);
        add_word(code, &space->genes[choice->first_gene + p],
                 hwnas_csv_cell(csv, row, column->columns[p]));
    }
}

void hwnas_table_columns_code(hwnas_str *out, const hwnas_table_columns *columns,
                              const hwnas_space *space, const hwnas_csv *csv, size_t row)
{
    hwnas_str_add(out, "");
    if (columns->is_code) {
        hwnas_str_add(out, hwnas_csv_cell(csv, row, *columns->of[0].columns));
        return;
    }
    for (size_t c = 0; c < space->n_choices; c++) {
        hwnas_str_add(out, c ? "," : "");
        add_choice(out, &columns->of[c], space, &space->choices[c], csv, row);
    }
}
