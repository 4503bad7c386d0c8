/* test_heartbeat.c: leases are renewed on time, whatever happens to the clock on the wall. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "store/database.h"
#include "store/leases.h"
#include "study/heartbeat.h"
#include "tests/unit/store_fixture.h"

/* The clock on the wall was an hour ahead when it was read, and is set right from then on. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int code = (int)syscall(SYS_clock_gettime, clock, out);
    if (clock == CLOCK_REALTIME)
        out->tv_sec += 3600;
    return code;
}

static bool takes(hwnas_leases *leases)
{
    bool is_there;
    hwnas_lease lease;
    assert_int_equal(hwnas_leases_take(&is_there, &lease, leases, -1), HWNAS_OK);
    return is_there;
}

/* Without a beat it would be over after ten seconds. */
static void renews_when_the_clock_is_set_back(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_SHARE);
    hwnas_leases *ours, *others;
    assert_int_equal(hwnas_leases_open(&ours, store, "ours"), HWNAS_OK);
    assert_int_equal(hwnas_leases_open(&others, store, "others"), HWNAS_OK);
    assert_int_equal(hwnas_store_start(store, 0, "c", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_leases_add(ours, 0), HWNAS_OK);
    hwnas_database *db = hwnas_store_database(store);
    assert_true(db->ops->exec(db, "UPDATE lease SET expires = expires - 50"));
    hwnas_heartbeat *heartbeat = hwnas_heartbeat_start(path, "ours");
    sleep(20); /* one beat is due after ten, another now */
    assert_false(takes(others));
    hwnas_heartbeat_stop(heartbeat);
    hwnas_leases_close(ours);
    hwnas_leases_close(others);
    hwnas_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(renews_when_the_clock_is_set_back)};
    return cmocka_run_group_tests_name("heartbeat", tests, NULL, NULL);
}
