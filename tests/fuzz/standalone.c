/* Runs a fuzz target over files, without a fuzzer, and speaks TAP: [FOLDER...], else the corpus
 * that has the target's name. Each file is a case; a case that does not end, or ends the program,
 * is a failure of the whole. */
#define _GNU_SOURCE 1 /* program_invocation_short_name */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "fuzz.h"

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay(const char *folder, int n)
{
    struct dirent **entries;
    int n_entries = scandir(folder, &entries, is_visible, alphasort);
    if (n_entries <= 0) {
        printf("not ok %d - %s has files\n", ++n, folder);
        return n;
    }
    for (int i = 0; i < n_entries; i++) {
        char *path = hwnas_printf("%s/%s", folder, entries[i]->d_name), *text;
        size_t length;
        bool is_read = hwnas_file_read(&text, &length, path, (size_t)64 << 20) == HWNAS_OK;
        if (is_read) {
            LLVMFuzzerTestOneInput((const uint8_t *)text, length);
            free(text);
        }
        printf("%sok %d - %s\n", is_read ? "" : "not ", ++n, entries[i]->d_name);
        fflush(stdout);
        free(path);
        free(entries[i]);
    }
    free(entries);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    if (argc == 1) {
        const char *name = strstr(program_invocation_short_name, "fuzz_") + strlen("fuzz_");
        char *corpus = hwnas_printf("%s/tests/fuzz/corpus/%s", HWNAS_SOURCE_DIR, name);
        n = replay(corpus, n);
        free(corpus);
    }
    for (int i = 1; i < argc; i++)
        n = replay(argv[i], n);
    printf("1..%d\n", n);
    return n == 0;
}
