// A user's C++17 program over the SQLite library: the row written under the lease is there, in the user's own table.
#include <cstdio>

#include <aster/aster.h>
#include <aster/sqlite.h>

static aster_status insert(void *tx, void *user)
{
    (void)user;
    int code = sqlite3_exec(static_cast<sqlite3 *>(tx), "CREATE TABLE note(text); INSERT INTO note VALUES ('written')",
                            nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? ASTER_OK : ASTER_ERR_IO;
}

int main(int argc, char **argv)
{
    aster_error error = ASTER_ERROR_INIT;
    aster_serializer *store = nullptr;
    aster_lease *lease = nullptr;
    aster_verdict verdict = ASTER_VERDICT_INIT;
    const aster_bytes me = aster_text("worker");

    if (argc != 2 || aster_sqlite_open(argv[1], nullptr, &store, &error) != ASTER_OK ||
        aster_lease_acquire(store, aster_text("notes"), me, nullptr, &lease, nullptr, &error) != ASTER_OK ||
        lease == nullptr ||
        aster_mutate_fenced(store, aster_lease_fence(lease), me, insert, nullptr, &verdict, &error) != ASTER_OK) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    aster_lease_destroy(lease);
    aster_serializer_destroy(store);
    std::puts(aster_reason_name(verdict.reason));
    return verdict.reason == ASTER_REASON_NONE ? 0 : 1;
}
