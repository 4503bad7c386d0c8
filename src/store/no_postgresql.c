/* no_postgresql.c: in the place of a driver that was built without the headers of libpq. */
#include "store/store_driver.h"

static hwnas_status refuse(const char *path)
{
    const hwnas_place place = {.file = path};
    return hwnas_hint(
        hwnas_fail(HWNAS_E_UNSUPPORTED, &place, "this hwnas was built without PostgreSQL"),
        "install libpq-dev and build it again, or keep the study in a file");
}

static hwnas_status open_store(hwnas_store **out, const char *path, hwnas_store_mode mode)
{
    (void)out;
    (void)mode;
    return refuse(path);
}

static hwnas_status list(char ***names, size_t *n, const char *where)
{
    (void)names;
    (void)n;
    return refuse(where);
}

static hwnas_status exists(bool *out, const char *path)
{
    (void)out;
    return refuse(path);
}

static bool is_held(const char *path)
{
    (void)path;
    return false;
}

static const char *const prefixes[] = {"postgresql://", "postgres://", NULL};

const hwnas_store_driver hwnas_postgresql_driver = {
    .prefixes = prefixes, .open = open_store, .exists = exists, .is_held = is_held, .list = list};
