/* topics.h: pages on what commands have in common; they are sections of docs/, so that nothing is
 * written twice. */
#ifndef HWNAS_CLI_TOPICS_H
#define HWNAS_CLI_TOPICS_H

typedef enum hwnas_topic_block_kind {
    HWNAS_BLOCK_HEADING,
    HWNAS_BLOCK_PARAGRAPH,
    HWNAS_BLOCK_CODE, /* a line that stays as it is */
    HWNAS_BLOCK_ITEM, /* `term`, and what is said of it */
} hwnas_topic_block_kind;

/* `code` stands in backquotes in both texts. */
typedef struct hwnas_topic_block {
    hwnas_topic_block_kind kind;
    const char *term; /* NULL: none */
    const char *text; /* NULL ends the list */
} hwnas_topic_block;

typedef struct hwnas_topic {
    const char *name;  /* NULL ends the table */
    const char *about; /* a line */
    const hwnas_topic_block *blocks;
} hwnas_topic;

/* Made of topics.txt by scripts/topics.awk. */
extern const hwnas_topic hwnas_topics[];

const hwnas_topic *hwnas_topic_find(const char *name); /* NULL: there is none */
void hwnas_topic_print(const hwnas_topic *topic);

#endif
