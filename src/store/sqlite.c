/* sqlite.c: a study in one SQLite file.
 *
 * While it is open for changes it is in WAL mode, which lets others read; at rest it is one plain
 * file. This is its tables and its failures; sqlite_database.c is the connection, sqlite_open.c
 * opens the file, sqlite_draft.c has how it comes to be. */
#include "store/sqlite_priv.h"

#define STRING(x) STRING_OF(x)
#define STRING_OF(x) #x

/* clang-format off */
const char hwnas_sqlite_schema[] =
    "PRAGMA journal_mode = MEMORY;" /* of a file that nobody knows yet */
    "BEGIN;"
    "PRAGMA application_id = " STRING(HWNAS_SQLITE_APPLICATION) ";"
    "PRAGMA user_version = " STRING(HWNAS_SQLITE_VERSION) ";"
    HWNAS_STORE_TABLES("INTEGER", "REAL", " WITHOUT ROWID")
    "COMMIT;";
/* clang-format on */

const char hwnas_sqlite_lease_table[] =
    "CREATE TABLE IF NOT EXISTS lease (trial INTEGER PRIMARY KEY REFERENCES trial (number),"
    " worker TEXT NOT NULL, expires REAL NOT NULL);";

const char hwnas_sqlite_lease_tasks[] = HWNAS_STORE_LEASE_TASKS("INTEGER") HWNAS_STORE_LEASE_BEGUN;

const char hwnas_sqlite_packed_table[] = HWNAS_STORE_PACKED_TABLE("INTEGER", "BLOB");

hwnas_status hwnas_sqlite_fail(const hwnas_store *store)
{
    static const struct {
        int code;
        hwnas_status status;
        const char *message, *hint; /* message NULL: SQLite's reason */
    } rows[] = {
        {SQLITE_NOTADB, HWNAS_E_INPUT, "this is not a study of hwnas", "is it the right file?"},
        {SQLITE_CORRUPT, HWNAS_E_INPUT, "the study is damaged or cut short",
         "take a copy of it if there is one; 'sqlite3 FILE .recover' may save a part"},
        {SQLITE_BUSY, HWNAS_E_IO, "another program keeps the study locked",
         "close the program that has it open"},
        {SQLITE_FULL, HWNAS_E_IO, "cannot write the study: the disk is full",
         "make room, then go on with --resume; every finished trial is in the study"},
        {SQLITE_NOMEM, HWNAS_E_MEMORY, "no memory for SQLite", ""},
        {SQLITE_READONLY, HWNAS_E_IO, "the study may not be written", "look at its permissions"},
        {SQLITE_CANTOPEN, HWNAS_E_IO, NULL,
         "are it and its directory readable and writable? files lie beside it while it is open"},
        {SQLITE_IOERR, HWNAS_E_IO, NULL,
         "is there room on the disk, and is it whole? every finished trial is in the study"},
    };
    hwnas_place place = {.file = store->path};
    const char *reason = store->db->ops->reason(store->db);
    int code = sqlite3_errcode(hwnas_sqlite_handle(store->db)) & 0xff;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code && rows[i].message)
            return hwnas_hint(hwnas_fail(rows[i].status, &place, "%s", rows[i].message), "%s",
                              rows[i].hint);
        else if (rows[i].code == code)
            return hwnas_hint(
                hwnas_fail(rows[i].status, &place, "cannot use the study: %s", reason), "%s",
                rows[i].hint);
    return hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, &place, "cannot use the study: %s", reason),
                      "did another program change it?");
}
