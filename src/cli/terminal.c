#include "cli/terminal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

int hwnas_terminal_columns(int fd)
{
    struct winsize size;
    return isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

int hwnas_terminal_lines(int fd)
{
    struct winsize size;
    return isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) ? size.ws_row : 0;
}

/* Bytes that do not continue a character of UTF-8. */
static bool is_column(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

char *hwnas_cut_line(const char *text, int columns)
{
    char *line = hwnas_need(strlen(text) + 1, 1), *at = line;
    strcpy(line, text);
    hwnas_clean(line, "");
    for (int width = 0; *at && columns; at++) {
        width += is_column(*at);
        if (width >= columns) /* a line that is full may scroll */
            *at = '\0';
        if (!*at)
            break;
    }
    return line;
}

static int width_of(const char *text, size_t n)
{
    int width = 0;
    for (size_t i = 0; i < n; i++)
        width += is_column(text[i]);
    return width;
}

/* "winner      trial 3: ..." goes on below "trial", other lines two columns further right than they
 * begin. */
static int indent_of(const char *line, size_t n)
{
    enum { LONGEST_KEY = 16 };
    const size_t blanks = strspn(line, " "), key = blanks + strcspn(line + blanks, " \n");
    const size_t value = key + strspn(line + key, " ");
    const bool has_key = value >= key + 2 && value <= LONGEST_KEY && value < n;
    return (int)(has_key ? value : blanks + 2);
}

/* Bytes of the line that fit: up to the last blank, or to the first where a word is too long. */
static size_t cut(const char *line, size_t n, int columns, size_t least)
{
    size_t end = 0;
    int width = 0;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == ' ' && i > least && (width <= columns || !end))
            end = i;
        if (line[i] == ' ' && width > columns)
            break;
        width += is_column(line[i]);
    }
    return width > columns && end ? end : n;
}

static void print_line(const char *line, size_t n, int columns)
{
    const int indent = indent_of(line, n);
    bool is_first = true;
    while (n) {
        const int room = is_first ? columns : columns - indent;
        const size_t length =
            width_of(line, n) <= room ? n : cut(line, n, room, is_first ? (size_t)indent : 0);
        printf("%*s%.*s\n", is_first ? 0 : indent, "", (int)length, line);
        line += length;
        n -= length;
        while (n && *line == ' ') {
            line++;
            n--;
        }
        is_first = false;
    }
}

void hwnas_print_lines(const char *text, int columns)
{
    for (; *text; text += *text == '\n') {
        const size_t n = strcspn(text, "\n");
        if (width_of(text, n) > columns)
            print_line(text, n, columns);
        else
            printf("%.*s\n", (int)n, text);
        text += n;
    }
}
