#include "cli/topics.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal.h"

enum { WIDTH = 80, INDENT = 4 };

/* A text is set word by word, without its backquotes. */
typedef struct setter {
    int width, indent;
    int column; /* 0: at the beginning of a line */
} setter;

static int width_of_word(const char *word, size_t n)
{
    int width = 0;
    for (size_t i = 0; i < n; i++)
        width += word[i] != '`' && ((unsigned char)word[i] & 0xc0) != 0x80;
    return width;
}

static void set_word(setter *s, const char *word, size_t n)
{
    const int width = width_of_word(word, n);
    if (s->column > s->indent && s->column + 1 + width > s->width) {
        putchar('\n');
        s->column = 0;
    }
    if (s->column)
        s->column += printf(" ");
    else
        s->column = printf("%*s", s->indent, "");
    for (size_t i = 0; i < n; i++)
        if (word[i] != '`')
            putchar(word[i]);
    s->column += width;
}

static void set(const char *text, int indent)
{
    const int columns = hwnas_terminal_columns(STDOUT_FILENO);
    setter s = {columns >= 40 && columns < WIDTH ? columns : WIDTH, indent, 0};
    while (*text) {
        const size_t n = strcspn(text, " ");
        if (n)
            set_word(&s, text, n);
        text += n + (text[n] == ' ');
    }
    putchar('\n');
}

const hwnas_topic *hwnas_topic_find(const char *name)
{
    for (const hwnas_topic *t = hwnas_topics; t->name; t++)
        if (!strcmp(t->name, name))
            return t;
    return NULL;
}

static void print_block(const hwnas_topic_block *b, const hwnas_topic_block *before)
{
    if (before && !(before->kind == HWNAS_BLOCK_CODE && b->kind == HWNAS_BLOCK_CODE) &&
        !(before->kind == HWNAS_BLOCK_ITEM && b->kind == HWNAS_BLOCK_ITEM))
        putchar('\n');
    switch (b->kind) {
    case HWNAS_BLOCK_HEADING:
    case HWNAS_BLOCK_PARAGRAPH:
        set(b->text, 0);
        break;
    case HWNAS_BLOCK_CODE:
        printf("%*s%s\n", INDENT, "", b->text);
        break;
    case HWNAS_BLOCK_ITEM:
        set(b->term, 2);
        set(b->text, 2 + INDENT);
        break;
    }
}

void hwnas_topic_print(const hwnas_topic *topic)
{
    printf("%s: %s\n\n", topic->name, topic->about);
    for (const hwnas_topic_block *b = topic->blocks; b->text; b++)
        print_block(b, b > topic->blocks ? b - 1 : NULL);
}
