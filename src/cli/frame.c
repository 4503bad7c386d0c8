#include "cli/frame.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/terminal.h"
#include "cli/verbosity.h"

enum { MOST_LINES = 256 };

/* What stands on the terminal; the cursor is behind its last line. */
static struct {
    int n, widths[MOST_LINES], columns;
} shown;

bool hwnas_frame_is_possible(void)
{
    const char *name = getenv("TERM");
    return isatty(STDERR_FILENO) && !(name && !strcmp(name, "dumb"));
}

/* Columns, without the sequences that colour. */
static int width_of(const char *line)
{
    int width = 0;
    for (const char *at = line; *at && *at != '\n'; at++) {
        if (*at == '\033')
            at += strcspn(at, "m\n");
        else
            width += ((unsigned char)*at & 0xc0) != 0x80;
        if (!*at || *at == '\n')
            break;
    }
    return width;
}

/* Lines that became longer than the terminal is wide stand in several by now. */
static int rows_above(int columns)
{
    int rows = 0;
    for (int i = 0; i < shown.n; i++)
        rows += 1 + (columns && shown.widths[i] ? (shown.widths[i] - 1) / columns : 0);
    return rows - 1;
}

static void add_lines(FILE *to, const char *lines)
{
    shown.n = 0;
    for (const char *at = lines; shown.n < MOST_LINES; at++) {
        const size_t n = strcspn(at, "\n");
        shown.widths[shown.n++] = width_of(at);
        fprintf(to, "%.*s\033[K", (int)n, at);
        at += n;
        if (!*at)
            break;
        fputc('\n', to);
    }
}

void hwnas_frame_show(const char *lines)
{
    char *text = NULL;
    size_t n;
    if (!lines && !shown.n)
        return;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        return;
    const int columns = hwnas_terminal_columns(STDERR_FILENO), above = rows_above(columns);
    fputc('\r', to);
    if (above > 0)
        fprintf(to, "\033[%dA", above);
    if (columns != shown.columns) /* else lines that it parted may be joined again, later */
        fputs("\033[J", to);
    shown.columns = columns;
    shown.n = 0;
    if (lines)
        add_lines(to, lines);
    fputs("\033[J", to);
    if (!fclose(to)) {
        fflush(stderr);
        for (size_t done = 0; done < n;) {
            const ssize_t some = write(STDERR_FILENO, text + done, n - done);
            if (some <= 0)
                break;
            done += (size_t)some;
        }
    }
    free(text);
}

void hwnas_show_progress(void *context, const char *words)
{
    (void)context;
    if (!hwnas_frame_is_possible() || hwnas_log_is_quiet())
        return;
    char *line = words ? hwnas_cut_line(words, hwnas_terminal_columns(STDERR_FILENO)) : NULL;
    hwnas_frame_show(line);
    free(line);
}
