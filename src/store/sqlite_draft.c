/* sqlite_draft.c: a study that is being made lies beside the place that it is for, as STUDY-new,
 * and takes that name when it is worth to be seen: a new one at once, one that replaces another
 * with its first trial. Whatever happens before leaves the old one as it is, and a STUDY-new that
 * the next search takes away.
 *
 * Until then it has a rollback journal, not a write-ahead log, so that one rename() moves all of
 * it. */
#define _GNU_SOURCE 1 /* renameat2() */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/sqlite_priv.h"

/* What SQLite lays beside a file, and the file, which goes last. */
void hwnas_sqlite_delete(const char *file, bool and_itself)
{
    static const char *const suffixes[] = {"-journal", "-wal", "-shm", ""};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes - !and_itself; i++) {
        char *name = hwnas_printf("%s%s", file, suffixes[i]);
        unlink(name);
        free(name);
    }
}

/* ---- Making ---- */

/* Deletes a draft, or a copy of an old study, whose process has died. */
static hwnas_status sweep(const char *draft, const char *path)
{
    const hwnas_place place = {.file = path};
    unsigned char header[HWNAS_SQLITE_HEADER] = {0};
    hwnas_lock lock = {0};
    hwnas_status status = hwnas_lock_take(&lock, draft, path);
    if (status == HWNAS_E_NOT_FOUND) {
        hwnas_error_clear();
        return HWNAS_OK;
    }
    TRY(status);
    const ssize_t n = pread(hwnas_lock_descriptor(&lock), header, sizeof header, 0);
    if (n == 0 || (n == (ssize_t)sizeof header && hwnas_sqlite_is_ours(header)))
        hwnas_sqlite_delete(draft, true);
    else
        status = hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place, "%s is in the way, and it is not a study", draft),
            "move it to another place; a study is made under that name");
    hwnas_lock_release(&lock);
    return status;
}

void hwnas_sqlite_tidy(const hwnas_sqlite_store *store)
{
    static const char *const suffixes[] = {"-new", "-old"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char *name = hwnas_printf("%s%s", store->file, suffixes[i]);
        if (sweep(name, store->base.path) != HWNAS_OK)
            hwnas_error_clear();
        free(name);
    }
}

/* An empty file beside a study, locked, in the place of what a dead process left there. */
static hwnas_status make_beside(hwnas_lock *out, const char *name, const char *path)
{
    for (bool is_there = true; is_there;) {
        TRY(sweep(name, path));
        TRY(hwnas_lock_make(out, &is_there, name, path));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_sqlite_create(hwnas_sqlite_store *store)
{
    char *draft = hwnas_printf("%s-new", store->file);
    hwnas_status status = HWNAS_OK;
    store->draft = draft;
    status = make_beside(&store->lock, draft, store->base.path);
    if (status != HWNAS_OK) { /* what is there is not ours to delete */
        store->draft = NULL;
        free(draft);
        return status;
    }
    store->base.is_created = true;
    TRY(hwnas_sqlite_begin(store));
    return hwnas_sqlite_open(store, false);
}

/* ---- Publishing ---- */

static hwnas_status fail_rename(const hwnas_sqlite_store *store)
{
    const hwnas_place place = {.file = store->base.path};
    if (errno == EEXIST)
        return hwnas_store_fail_exists(store->base.path);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_IO, &place, "cannot create the study: %s", strerror(errno)),
        "the directory of a study must exist and be writable");
}

static hwnas_status take_name(const hwnas_sqlite_store *store)
{
    struct stat st;
    if (!renameat2(AT_FDCWD, store->draft, AT_FDCWD, store->file, RENAME_NOREPLACE))
        return HWNAS_OK;
    if (errno != EINVAL && errno != ENOSYS)
        return fail_rename(store);
    if (!stat(store->file, &st))
        return hwnas_store_fail_exists(store->base.path);
    return rename(store->draft, store->file) ? fail_rename(store) : HWNAS_OK;
}

/* A new file takes the mode of the old one. */
static void take_mode(const hwnas_sqlite_store *store, const hwnas_lock *lock)
{
    struct stat st;
    if (!fstat(hwnas_lock_descriptor(&store->replaced), &st) &&
        fchmod(hwnas_lock_descriptor(lock), st.st_mode & 0777))
        errno = 0;
}

static hwnas_status copy_pages(const hwnas_sqlite_store *store, hwnas_database *old,
                               const char *name)
{
    const hwnas_place place = {.file = store->base.path};
    hwnas_database *copy = NULL;
    hwnas_status status = HWNAS_OK;
    sqlite3_backup *backup = NULL;
    if (hwnas_sqlite_connect(&copy, name, SQLITE_OPEN_READWRITE))
        backup = sqlite3_backup_init(hwnas_sqlite_handle(copy), "main", hwnas_sqlite_handle(old),
                                     "main");
    if (backup)
        sqlite3_backup_step(backup, -1);
    if (!backup || sqlite3_backup_finish(backup) != SQLITE_OK)
        status = hwnas_fail(HWNAS_E_IO, &place, "cannot copy the study that is replaced: %s",
                            copy->ops->reason(copy));
    copy->ops->close(copy);
    return status;
}

/* Puts a copy of the old study, which is whole in one file, into its place. The same pages are at
 * the same places in it, so it may be read with the write-ahead log and without. It is locked as
 * the old one is until that, too, is replaced. */
static hwnas_status copy_old(hwnas_lock *lock, const hwnas_sqlite_store *store, hwnas_database *old)
{
    hwnas_status status;
    char *name = hwnas_printf("%s-old", store->file);
    TRY_OUT(make_beside(lock, name, store->base.path));
    status = copy_pages(store, old, name);
    take_mode(store, lock);
    if (status == HWNAS_OK && rename(name, store->file))
        status = fail_rename(store);
    if (status != HWNAS_OK)
        hwnas_sqlite_delete(name, true);
out:
    free(name);
    return status;
}

/* Puts all of the old study into its one file, and takes what SQLite has beside it: the new one
 * must not be read with it. Who still reads the old one goes on with the files that it has open,
 * and SQLite leaves ours alone, as it sees that its own has moved. What such a reader keeps in the
 * log comes into a copy (`lock`). */
static hwnas_status settle_old(hwnas_lock *lock, const hwnas_sqlite_store *store)
{
    hwnas_database *old = NULL;
    hwnas_status status = HWNAS_OK;
    int n_logged = 0, n_moved = 0;
    if (hwnas_sqlite_connect(&old, store->file, SQLITE_OPEN_READWRITE)) {
        sqlite3_busy_timeout(hwnas_sqlite_handle(old), 0);
        /* The first look opens the log. */
        old->ops->exec(old, "SELECT 1 FROM sqlite_schema");
        sqlite3_wal_checkpoint_v2(hwnas_sqlite_handle(old), NULL, SQLITE_CHECKPOINT_PASSIVE,
                                  &n_logged, &n_moved);
        if (n_logged != n_moved)
            status = copy_old(lock, store, old);
        else
            old->ops->exec(old, "PRAGMA journal_mode = DELETE");
    }
    old->ops->close(old);
    if (status == HWNAS_OK)
        hwnas_sqlite_delete(store->file, false);
    return status;
}

static hwnas_status replace(hwnas_sqlite_store *store)
{
    hwnas_lock copy = {0};
    hwnas_status status = settle_old(&copy, store);
    take_mode(store, &store->lock);
    if (status == HWNAS_OK && rename(store->draft, store->file))
        status = fail_rename(store);
    if (status == HWNAS_OK)
        hwnas_lock_release(&store->replaced);
    hwnas_lock_release(&copy);
    return status;
}

hwnas_status hwnas_sqlite_publish(hwnas_store *base)
{
    hwnas_sqlite_store *store = (hwnas_sqlite_store *)base;
    hwnas_sqlite_close(store);
    TRY(store->replaced.file ? replace(store) : take_name(store));
    free(store->draft);
    store->draft = NULL;
    return hwnas_sqlite_open(store, false);
}
