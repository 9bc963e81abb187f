#include "serializer/sqlite/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aster/sqlite.h"
#include "base/error.h"
#include "serializer/sqlite/rows.h"
#include "serializer/sqlite/statements.h"

const char *aster_sqlite_schema(void)
{
    return aster_schema_text;
}

static aster_status table_exists(struct aster_connection *connection, bool *exists, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(connection->db, "SELECT 1 FROM sqlite_schema WHERE name = 'aster_meta'", -1,
                                  &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        return aster_connection_fault(connection, code, error);
    }
    *exists = code == SQLITE_ROW;
    return ASTER_OK;
}

static aster_status create(struct aster_connection *connection, struct aster_error *error)
{
    aster_status status = aster_connection_begin_write(connection, true, error);
    if (status != ASTER_OK) {
        return status;
    }
    status = aster_connection_execute(connection, aster_schema_text, error);
    if (status != ASTER_OK) {
        aster_connection_rollback(connection);
        return status;
    }
    return aster_connection_commit(connection, error);
}

aster_status aster_schema_prepare(struct aster_connection *connection, struct aster_error *error)
{
    bool exists = false;
    aster_status status = table_exists(connection, &exists, error);
    if (status == ASTER_OK && !exists) {
        status = create(connection, error); /* harmless when another process was first */
    }
    struct aster_meta meta;
    if (status == ASTER_OK) {
        status = aster_meta_load(connection, &meta, error);
    }
    if (status == ASTER_OK && meta.schema_version > ASTER_SCHEMA_VERSION) {
        return aster_error_set(error, ASTER_ERR_VERSION,
                               "the store was written by a newer Aster (schema version %" PRId64
                               ", this build knows %d): use that version",
                               meta.schema_version, ASTER_SCHEMA_VERSION);
    }
    if (status == ASTER_OK && meta.schema_version < 1) {
        return aster_error_set(error, ASTER_ERR_CORRUPT,
                               "aster_meta names schema version %" PRId64 ": restore the file from a copy",
                               meta.schema_version);
    }
    return status;
}

static aster_status arm_all(struct aster_connection *connection, const struct aster_clock *clock,
                            const struct aster_boot *boot, struct aster_error *error)
{
    struct aster_meta meta;
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_meta_load(connection, &meta, error);
    if (status == ASTER_OK) {
        status = aster_connection_statement(connection, ASTER_STATEMENT_ROW_ARM, &statement, error);
    }
    if (status == ASTER_OK) {
        sqlite3_bind_int64(statement, 1, aster_boot_to_stored(boot, aster_clock_now_ns(clock)));
        sqlite3_bind_text(statement, 2, boot->id, -1, SQLITE_TRANSIENT);
        status = aster_connection_run(connection, ASTER_STATEMENT_ROW_ARM, error);
    }
    if (status == ASTER_OK) {
        snprintf(meta.boot_id, sizeof meta.boot_id, "%s", boot->id);
        status = aster_meta_store(connection, &meta, error);
    }
    return status;
}

aster_status aster_schema_arm(struct aster_connection *connection, const struct aster_clock *clock,
                              const struct aster_boot *boot, struct aster_error *error)
{
    struct aster_meta meta;
    aster_status status = aster_meta_load(connection, &meta, error);
    if (status != ASTER_OK || strcmp(meta.boot_id, boot->id) == 0) {
        return status;
    }
    status = aster_connection_begin_write(connection, true, error);
    if (status != ASTER_OK) {
        return status;
    }
    status = arm_all(connection, clock, boot, error);
    if (status != ASTER_OK) {
        aster_connection_rollback(connection);
        return status;
    }
    return aster_connection_commit(connection, error);
}
