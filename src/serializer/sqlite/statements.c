#include "serializer/sqlite/statements.h"

#define ROW_COLUMNS                                                                                                    \
    "resource, epoch, held, holder, ttl_ms, lease_revision, value, value_revision, last_holder, last_epoch_held, "     \
    "request_id, request_caller, request_kind, request_takeover, request_epoch, checksum, granted_at_ns, boot_id, "    \
    "since_unix_ms"

const char *const aster_store_statement_texts[ASTER_STATEMENT_COUNT] = {
    ASTER_SHARED_STATEMENT_TEXTS,
    [ASTER_STATEMENT_ROW_LOAD] = "SELECT " ROW_COLUMNS " FROM aster_lease WHERE resource = ?1",
    [ASTER_STATEMENT_ROW_LIST] = "SELECT " ROW_COLUMNS " FROM aster_lease WHERE resource >= ?1 ORDER BY resource",
    [ASTER_STATEMENT_ROW_INSERT] = "INSERT INTO aster_lease (" ROW_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                                   "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
    [ASTER_STATEMENT_ROW_UPDATE] =
        "UPDATE aster_lease SET epoch = ?2, held = ?3, holder = ?4, ttl_ms = ?5, lease_revision = ?6, value = ?7, "
        "value_revision = ?8, last_holder = ?9, last_epoch_held = ?10, request_id = ?11, request_caller = ?12, "
        "request_kind = ?13, request_takeover = ?14, request_epoch = ?15, checksum = ?16, granted_at_ns = ?17, "
        "boot_id = ?18, since_unix_ms = ?19 WHERE resource = ?1",
    /* An instant in the future can only come from another clock, as another boot does. */
    [ASTER_STATEMENT_ROW_ARM] = "UPDATE aster_lease SET granted_at_ns = ?1, boot_id = ?2 "
                                "WHERE held <> 0 AND (boot_id <> ?2 OR granted_at_ns > ?1)",
    [ASTER_STATEMENT_ROW_DELETE] = "DELETE FROM aster_lease WHERE resource = ?1",
    [ASTER_STATEMENT_META_LOAD] = "SELECT schema_version, floor, resources, boot_id FROM aster_meta WHERE id = 1",
    [ASTER_STATEMENT_META_STORE] = "UPDATE aster_meta SET floor = ?1, resources = ?2, boot_id = ?3 WHERE id = 1",
    [ASTER_STATEMENT_AUDIT_INSERT] =
        "INSERT INTO aster_audit (unix_ms, kind, reason, resource, actor, previous, epoch, carried_epoch) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [ASTER_STATEMENT_AUDIT_PRUNE] = "DELETE FROM aster_audit WHERE revision <= ?1",
    [ASTER_STATEMENT_AUDIT_READ] =
        "SELECT * FROM (SELECT revision, unix_ms, kind, reason, resource, actor, previous, epoch, carried_epoch "
        "FROM aster_audit WHERE revision > max(?1, (SELECT max(revision) FROM aster_audit) - ?2) "
        "AND (?3 = '' OR resource = ?3) ORDER BY revision DESC LIMIT ?4) ORDER BY revision",
};
