#include "study/held.h"

#include <stdlib.h>
#include <string.h>

#include "predict/domain.h"
#include "space/hold.h"
#include "study/study_facts.h"

#define FACT "held"

/* Values of a gene that may be taken, where its choice is held at a list of labels; all where the
 * space has none of the list at this position, or there is no list. */
static bool *find_kept(const json_t *list, const hwnas_gene *gene)
{
    bool *kept = hwnas_alloc(gene->n_values * sizeof *kept), is_any = false;
    for (size_t v = 0; v < gene->n_values; v++) {
        kept[v] = hwnas_domain_lists(list, gene->labels[v]);
        is_any |= kept[v] && hwnas_gene_keeps(gene, v);
    }
    for (size_t v = 0; !is_any && v < gene->n_values; v++)
        kept[v] = true;
    return kept;
}

static void free_kept(bool **kept, const hwnas_space *space)
{
    for (size_t g = 0; g < space->n_genes; g++)
        free(kept[g]);
    free(kept);
}

static size_t count_left_out(const hwnas_space *space, const hwnas_choice *choice,
                             bool *const *kept)
{
    size_t most = 0;
    for (size_t p = 0; p < choice->n_positions; p++) {
        size_t n = 0;
        for (size_t v = 0; v < space->genes[choice->first_gene + p].n_values; v++)
            n += hwnas_gene_keeps(&space->genes[choice->first_gene + p], v) &&
                 !kept[choice->first_gene + p][v];
        most = n > most ? n : most;
    }
    return most;
}

/* Of a domain's labels of a choice those that the space may choose, which a narrowed one has fewer
 * of. By these the same values are found again. */
static json_t *list_seen(const json_t *domain, const hwnas_space *space, const hwnas_choice *choice)
{
    json_t *list = json_object_get(domain, choice->name), *seen = json_array(), *label;
    size_t i;
    json_array_foreach(list, i, label)
    {
        bool is_there = false;
        for (size_t p = 0; p < choice->n_positions; p++) {
            const hwnas_gene *gene = &space->genes[choice->first_gene + p];
            for (size_t v = 0; v < gene->n_values; v++)
                is_there |=
                    hwnas_gene_keeps(gene, v) && !strcmp(gene->labels[v], json_string_value(label));
        }
        if (is_there)
            json_array_append(seen, label);
    }
    return seen;
}

hwnas_status hwnas_held_find(json_t **held, const hwnas_space **walked,
                             const hwnas_predictor *predictor, const hwnas_job *job)
{
    const json_t *domain = predictor ? hwnas_predictor_domain(predictor) : NULL;
    const hwnas_space *space = *walked;
    *held = NULL;
    if (!domain || job->is_domain_free)
        return HWNAS_OK;
    bool **kept = hwnas_alloc((space->n_genes + 1) * sizeof *kept);
    for (size_t g = 0; g < space->n_genes; g++)
        kept[g] = find_kept(json_object_get(domain, space->choices[space->genes[g].choice].name),
                            &space->genes[g]);
    hwnas_status status = hwnas_space_hold(walked, space, (const bool *const *)kept);
    for (size_t c = 0; c < space->n_choices && status == HWNAS_OK; c++) {
        const size_t n = count_left_out(space, &space->choices[c], kept);
        if (!n)
            continue;
        if (!*held)
            *held = json_object();
        json_object_set_new(*held, space->choices[c].name,
                            json_pack("{s:o, s:I}", "kept",
                                      list_seen(domain, space, &space->choices[c]), "left_out",
                                      (json_int_t)n));
    }
    free_kept(kept, space);
    return status;
}

hwnas_status hwnas_held_again(const hwnas_space **walked, const json_t *held)
{
    const hwnas_space *space = *walked;
    if (!held)
        return HWNAS_OK;
    bool **kept = hwnas_alloc((space->n_genes + 1) * sizeof *kept);
    for (size_t g = 0; g < space->n_genes; g++)
        kept[g] = find_kept(
            json_object_get(json_object_get(held, space->choices[space->genes[g].choice].name),
                            "kept"),
            &space->genes[g]);
    hwnas_status status = hwnas_space_hold(walked, space, (const bool *const *)kept);
    free_kept(kept, space);
    return status;
}

hwnas_status hwnas_held_write(hwnas_store *store, const json_t *held)
{
    return held ? hwnas_facts_set_json(store, FACT, held) : HWNAS_OK;
}

hwnas_status hwnas_held_load(json_t **out, hwnas_store *store)
{
    return hwnas_facts_json(out, store, FACT);
}
