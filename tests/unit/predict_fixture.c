#include "tests/unit/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "graph/elaborate.h"

static char dir[] = "/tmp/test_predict.XXXXXX";
hwnas_space *macro, *accel;

const char *in_dir(const char *name)
{
    static char *paths[4];
    static size_t next;
    char **path = &paths[next++ % COUNT(paths)];
    free(*path);
    return *path = hwnas_printf("%s/%s", dir, name);
}

void write_text(const char *name, const char *text)
{
    assert_int_equal(hwnas_file_write(in_dir(name), text, strlen(text)), HWNAS_OK);
}

char *read_text(const char *path)
{
    char *text = NULL;
    assert_int_equal(hwnas_file_read(&text, NULL, path, (size_t)64 << 20), HWNAS_OK);
    return text;
}

void write_rows(const char *name, const char *from, size_t step, size_t limit)
{
    char *text = read_text(from), *rest = text;
    hwnas_str out = {0};
    hwnas_str_addf(&out, "%s\n", strsep(&rest, "\n"));
    size_t row = 0, n = 0;
    for (char *line; n < limit && (line = strsep(&rest, "\n")) && *line; row++)
        if (row % step == 0 && ++n)
            hwnas_str_addf(&out, "%s\n", line);
    write_text(name, out.s);
    hwnas_str_done(&out);
    free(text);
}

size_t count_files(void)
{
    size_t n = 0;
    DIR *open = opendir(dir);
    for (struct dirent *entry; (entry = readdir(open));)
        n += entry->d_name[0] != '.';
    closedir(open);
    return n;
}

void assert_failed(hwnas_status got, hwnas_status expected, const char *message, const char *hint)
{
    const hwnas_error *error = hwnas_last_error();
    if (got != expected || !strstr(error->message, message) || !strstr(error->hint, hint))
        fail_msg("status '%s', message '%s', hint '%s'", hwnas_status_name(got), error->message,
                 error->hint);
}

int set_up(void **state)
{
    (void)state;
    return !mkdtemp(dir) || hwnas_graph_load_space(&macro, "nas_bench_macro") ||
           hwnas_graph_load_space(&accel, "accel_nasbench");
}

int tear_down(void **state)
{
    (void)state;
    hwnas_space_free(macro);
    hwnas_space_free(accel);
    DIR *open = opendir(dir);
    for (struct dirent *entry; (entry = readdir(open));)
        if (entry->d_name[0] != '.')
            unlink(in_dir(entry->d_name));
    closedir(open);
    return rmdir(dir);
}
