#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "engine/codec.h"
#include "engine/fence_rule.h"
#include "engine/table_internal.h"

aster_status aster_table_create(const struct aster_table_options *options, struct aster_table **table,
                                struct aster_error *error)
{
    struct aster_table *fresh = aster_alloc(sizeof *fresh);
    if (fresh == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a table of %zu bytes", sizeof *fresh);
    }
    memset(fresh, 0, sizeof *fresh);
    fresh->key = options->key;
    fresh->limits = options->limits;
    fresh->deadlines.off = options->without_deadlines;
    aster_identities_init(&fresh->identities, &options->key);
    *table = fresh;
    return ASTER_OK;
}

static bool free_entry(struct aster_entry *entry, void *user)
{
    (void)user;
    free(entry->value);
    free(entry);
    return true;
}

void aster_table_destroy(struct aster_table *table)
{
    if (table == NULL) {
        return;
    }
    aster_index_visit(&table->index, free_entry, NULL);
    aster_index_fini(&table->index);
    free(table->deadlines.heap);
    aster_identities_fini(&table->identities);
    free(table);
}

int64_t aster_entry_deadline_ns(const struct aster_entry *entry)
{
    return entry->held ? aster_add_saturated(entry->granted_at_ns, aster_ms_to_ns(entry->ttl_ms)) : INT64_MAX;
}

struct aster_row aster_entry_row(const struct aster_table *table, const struct aster_entry *entry)
{
    struct aster_row row = {
        .epoch = entry->epoch,
        .held = entry->held,
        .holder = aster_identities_bytes(&table->identities, entry->holder),
        .ttl_ms = entry->ttl_ms,
        .lease_revision = entry->lease_revision,
        .value_revision = entry->value_revision,
        .last_holder = aster_identities_bytes(&table->identities, entry->last_holder),
        .last_epoch_held = entry->last_epoch_held,
        .applied = {.caller = aster_identities_bytes(&table->identities, entry->applied_caller),
                    .kind = (enum aster_operation_kind)entry->applied_kind,
                    .takeover = entry->applied_takeover,
                    .epoch = entry->applied_epoch},
    };
    if (entry->value != NULL) {
        row.value = (struct aster_bytes){entry->value->bytes, entry->value->size};
    }
    memcpy(row.applied.request_id, entry->request_id, sizeof row.applied.request_id);
    return row;
}

static struct aster_entry *find(const struct aster_table *table, struct aster_bytes resource)
{
    return aster_index_find(&table->index, (uint32_t)aster_siphash(&table->key, resource), resource);
}

size_t aster_entry_size(size_t name_size)
{
    size_t size = offsetof(struct aster_entry, name) + name_size;
    return size < sizeof(struct aster_entry) ? sizeof(struct aster_entry) : size;
}

/* Everything that storing a row needs, taken before anything is changed. */
struct reservation {
    struct aster_entry *entry; /* a new one, or NULL when the row exists */
    struct aster_value *value; /* a new one, or NULL when it stays */
    uint32_t holder;
    uint32_t last_holder;
    uint32_t applied_caller;
};

static void give_back(struct aster_table *table, struct reservation *reservation)
{
    aster_identities_drop(&table->identities, reservation->holder);
    aster_identities_drop(&table->identities, reservation->last_holder);
    aster_identities_drop(&table->identities, reservation->applied_caller);
    free(reservation->value);
    free(reservation->entry);
}

static bool reserve_entry(struct aster_table *table, struct aster_bytes resource, struct reservation *reservation)
{
    if (!aster_index_reserve(&table->index) ||
        !aster_deadlines_reserve(&table->deadlines, table->index.count + table->removed_images + 1)) {
        return false;
    }
    struct aster_entry *entry = aster_alloc(aster_entry_size(resource.size));
    if (entry == NULL) {
        return false;
    }
    memset(entry, 0, sizeof *entry);
    entry->hash = (uint32_t)aster_siphash(&table->key, resource);
    entry->name_size = (uint16_t)resource.size;
    memcpy(entry->name, resource.data, resource.size);
    reservation->entry = entry;
    return true;
}

static bool reserve_value(const struct aster_entry *entry, struct aster_bytes value, struct reservation *reservation)
{
    bool same =
        entry != NULL && entry->value != NULL && entry->value->bytes == value.data && entry->value->size == value.size;
    if (same || value.size == 0) {
        return true;
    }
    struct aster_value *copy = aster_alloc(sizeof *copy + value.size);
    if (copy == NULL) {
        return false;
    }
    copy->size = value.size;
    memcpy(copy->bytes, value.data, value.size);
    reservation->value = copy;
    return true;
}

static aster_status reserve(struct aster_table *table, struct aster_bytes resource, const struct aster_entry *entry,
                            const struct aster_row *row, struct reservation *reservation, struct aster_error *error)
{
    *reservation = (struct reservation){0};
    if (entry == NULL && table->index.count >= table->limits.resources_max) {
        return aster_error_set(error, ASTER_ERR_LIMIT,
                               "resources_max is %zu and reached: forget free resources or raise the limit",
                               table->limits.resources_max);
    }
    if ((entry == NULL && !reserve_entry(table, resource, reservation)) ||
        !reserve_value(entry, row->value, reservation) ||
        !aster_identities_take(&table->identities, row->holder, &reservation->holder) ||
        !aster_identities_take(&table->identities, row->last_holder, &reservation->last_holder) ||
        !aster_identities_take(&table->identities, row->applied.caller, &reservation->applied_caller)) {
        give_back(table, reservation);
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for row %zu: nothing was changed",
                               table->index.count + 1);
    }
    return ASTER_OK;
}

static void store_value(struct aster_table *table, struct aster_entry *entry, struct aster_value *value, size_t size,
                        struct aster_table_image *image)
{
    if (value == NULL && size > 0) {
        return; /* unchanged */
    }
    table->entry_bytes += aster_value_bytes(value) - aster_value_bytes(entry->value);
    if (image != NULL && image->kind == ASTER_IMAGE_CHANGED) {
        aster_image_keep_value(image, entry->value);
    } else {
        free(entry->value);
    }
    entry->value = value;
}

/* Cannot fail: `reservation` has all it needs. */
static struct aster_entry *store(struct aster_table *table, struct aster_entry *entry, const struct aster_row *row,
                                 struct reservation *reservation, struct aster_table_image *image)
{
    if (entry == NULL) {
        entry = reservation->entry;
        aster_index_insert(&table->index, entry);
        table->entry_bytes += aster_entry_size(entry->name_size);
    }
    table->held += (size_t)row->held - (size_t)entry->held;
    store_value(table, entry, reservation->value, row->value.size, image);
    aster_identities_drop(&table->identities, entry->holder);
    aster_identities_drop(&table->identities, entry->last_holder);
    aster_identities_drop(&table->identities, entry->applied_caller);
    entry->epoch = row->epoch;
    entry->held = row->held;
    entry->holder = reservation->holder;
    entry->ttl_ms = (uint32_t)row->ttl_ms;
    entry->lease_revision = row->lease_revision;
    entry->value_revision = row->value_revision;
    entry->last_holder = reservation->last_holder;
    entry->last_epoch_held = row->last_epoch_held;
    memcpy(entry->request_id, row->applied.request_id, sizeof entry->request_id);
    entry->applied_caller = reservation->applied_caller;
    entry->applied_kind = (uint8_t)row->applied.kind;
    entry->applied_takeover = row->applied.takeover;
    entry->applied_epoch = row->applied.epoch;
    return entry;
}

static void remove_entry(struct aster_table *table, struct aster_entry *entry, struct aster_table_image *image)
{
    aster_table_raise_floor(table, entry->epoch);
    aster_index_remove(&table->index, entry);
    aster_deadlines_remove(&table->deadlines, entry);
    table->entry_bytes -= aster_entry_size(entry->name_size) + aster_value_bytes(entry->value);
    if (image != NULL) {
        aster_image_keep_removed(table, entry, image);
        return;
    }
    aster_identities_drop(&table->identities, entry->holder);
    aster_identities_drop(&table->identities, entry->last_holder);
    aster_identities_drop(&table->identities, entry->applied_caller);
    free_entry(entry, NULL);
}

/* Renewing changes two numbers: the row's strings need not be taken and given back. */
static bool store_renewal(struct aster_table *table, struct aster_entry *entry, const struct aster_row *row)
{
    uint32_t caller;
    if (!aster_bytes_equal(row->applied.caller, row->holder)) {
        return false;
    }
    caller = entry->holder;
    if (entry->applied_caller != caller) {
        aster_identities_drop(&table->identities, entry->applied_caller);
        aster_identities_share(&table->identities, caller);
        entry->applied_caller = caller;
    }
    entry->lease_revision = row->lease_revision;
    memcpy(entry->request_id, row->applied.request_id, sizeof entry->request_id);
    entry->applied_kind = ASTER_OP_RENEW;
    entry->applied_takeover = 0;
    entry->applied_epoch = row->applied.epoch;
    return true;
}

static void arm(struct aster_table *table, struct aster_entry *entry, const struct aster_decision *decision,
                int64_t now_ns)
{
    entry->granted_at_ns = now_ns;
    if (decision->kind == ASTER_OP_ACQUIRE) {
        entry->since_ns = now_ns;
    }
    aster_deadlines_arm(&table->deadlines, entry);
}

static int64_t remaining_ns(const struct aster_entry *entry, int64_t now_ns)
{
    int64_t deadline_ns = aster_entry_deadline_ns(entry);
    return entry->held && deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

static void fill_views(const struct aster_table *table, const struct aster_entry *entry, int64_t now_ns,
                       struct aster_table_result *result)
{
    struct aster_snapshot *snapshot = &result->effect.decision.snapshot;
    result->since_ns = ASTER_TABLE_SINCE_UNKNOWN;
    if (entry == NULL) {
        return;
    }
    result->effect.row = aster_entry_row(table, entry);
    snapshot->holder = result->effect.row.holder;
    snapshot->value = result->effect.row.value;
    snapshot->last_holder = result->effect.row.last_holder;
    snapshot->remaining_ns = remaining_ns(entry, now_ns);
    if (entry->held) {
        result->since_ns = entry->since_ns;
    }
}

static aster_status keep(struct aster_table *table, const struct aster_operation *operation, struct aster_entry **entry,
                         const struct aster_effect *effect, int64_t now_ns, struct aster_table_image *image,
                         struct aster_error *error)
{
    if (!(operation->kind == ASTER_OP_RENEW && store_renewal(table, *entry, &effect->row))) {
        struct reservation reservation;
        aster_status status = reserve(table, operation->resource, *entry, &effect->row, &reservation, error);
        if (status == ASTER_OK && image != NULL && !aster_image_begin(table, *entry, image)) {
            give_back(table, &reservation);
            status = aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for the image of a row: nothing changed");
        }
        if (status != ASTER_OK) {
            return status;
        }
        *entry = store(table, *entry, &effect->row, &reservation, image);
    }
    if (effect->rearm) {
        arm(table, *entry, &effect->decision, now_ns);
    }
    return ASTER_OK;
}

static aster_status apply(struct aster_table *table, const struct aster_operation *operation, int64_t now_ns,
                          struct aster_table_result *result, struct aster_table_image *image, struct aster_error *error)
{
    aster_status status = aster_operation_check(operation, &table->limits, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_entry *entry = find(table, operation->resource);
    struct aster_row row = entry != NULL ? aster_entry_row(table, entry) : aster_row_absent(table->floor);
    bool expired = entry != NULL && entry->held && now_ns >= aster_entry_deadline_ns(entry);
    struct aster_table_result fresh = {.since_ns = ASTER_TABLE_SINCE_UNKNOWN};
    status = aster_transition(&row, expired, operation, &fresh.effect, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (fresh.effect.removed) {
        if (entry != NULL) {
            remove_entry(table, entry, image);
        }
        entry = NULL;
        fresh.effect.decision.snapshot.value = (struct aster_bytes){NULL, 0};
        fresh.effect.decision.snapshot.last_holder = (struct aster_bytes){NULL, 0};
    } else if (fresh.effect.changed) {
        status = keep(table, operation, &entry, &fresh.effect, now_ns, image, error);
        if (status != ASTER_OK) {
            return status;
        }
    }
    fill_views(table, entry, now_ns, &fresh);
    *result = fresh;
    return ASTER_OK;
}

aster_status aster_table_apply(struct aster_table *table, const struct aster_operation *operation, int64_t now_ns,
                               struct aster_table_result *result, struct aster_error *error)
{
    return apply(table, operation, now_ns, result, NULL, error);
}

aster_status aster_table_apply_imaged(struct aster_table *table, const struct aster_operation *operation,
                                      int64_t now_ns, struct aster_table_result *result,
                                      struct aster_table_image *image, struct aster_error *error)
{
    *image = (struct aster_table_image){.kind = ASTER_IMAGE_NONE};
    return apply(table, operation, now_ns, result, image, error);
}

struct aster_verdict aster_table_fence_hashed(const struct aster_table *table, uint64_t hash,
                                              const struct aster_fence *fence, struct aster_bytes writer)
{
    const struct aster_entry *entry = aster_index_find(&table->index, (uint32_t)hash, fence->resource);
    struct aster_verdict verdict = {ASTER_REASON_NONE, fence->epoch, table->floor};
    struct aster_bytes holder = {NULL, 0};
    bool held = false;
    if (entry != NULL) {
        verdict.current_epoch = entry->epoch;
        held = entry->held;
        holder = aster_identities_bytes(&table->identities, entry->holder);
    }
    verdict.reason = aster_fence_rule(verdict.current_epoch, held, holder, fence, writer);
    return verdict;
}

struct aster_verdict aster_table_fence(const struct aster_table *table, const struct aster_fence *fence,
                                       struct aster_bytes writer)
{
    return aster_table_fence_hashed(table, aster_siphash(&table->key, fence->resource), fence, writer);
}

bool aster_table_has(const struct aster_table *table, struct aster_bytes resource)
{
    return find(table, resource) != NULL;
}

int64_t aster_table_next_deadline(const struct aster_table *table)
{
    /* Free rows may wait in the heap; they are no reason to wake up. */
    return table->held > 0 && table->deadlines.count > 0 ? table->deadlines.heap[0].at_ns : INT64_MAX;
}

bool aster_table_next_expired(struct aster_table *table, int64_t now_ns, struct aster_expired_lease *lease)
{
    const struct aster_entry *entry = aster_deadlines_pop_expired(&table->deadlines, now_ns);
    if (entry == NULL) {
        return false;
    }
    *lease = (struct aster_expired_lease){aster_entry_name(entry), entry->epoch, entry->lease_revision};
    return true;
}

int64_t aster_table_deadline(const struct aster_table *table, struct aster_bytes resource)
{
    const struct aster_entry *entry = find(table, resource);
    return entry != NULL ? aster_entry_deadline_ns(entry) : INT64_MAX;
}

struct restarting {
    struct aster_table *table;
    int64_t now_ns;
    size_t rearmed;
};

static bool rearm(struct aster_entry *entry, void *user)
{
    struct restarting *restarting = user;
    if (entry->held) {
        entry->granted_at_ns = restarting->now_ns;
        entry->since_ns = ASTER_TABLE_SINCE_UNKNOWN;
        aster_deadlines_arm(&restarting->table->deadlines, entry);
        restarting->rearmed++;
    }
    return true;
}

size_t aster_table_restart(struct aster_table *table, int64_t now_ns)
{
    struct restarting restarting = {table, now_ns, 0};
    aster_index_visit(&table->index, rearm, &restarting);
    return restarting.rearmed;
}

aster_status aster_table_load(struct aster_table *table, struct aster_bytes resource, const struct aster_row *row,
                              int64_t now_ns, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    const char *broken = aster_row_check(resource, row);
    if (broken != NULL) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "row \"%s\" cannot be loaded, %s: restore it from a backup",
                               aster_printable(resource, shown), broken);
    }
    struct aster_entry *entry = find(table, resource);
    struct reservation reservation;
    aster_status status = reserve(table, resource, entry, row, &reservation, error);
    if (status != ASTER_OK) {
        return status;
    }
    entry = store(table, entry, row, &reservation, NULL);
    struct restarting restarting = {table, now_ns, 0};
    rearm(entry, &restarting);
    return ASTER_OK;
}

int64_t aster_table_floor(const struct aster_table *table)
{
    return table->floor;
}

void aster_table_raise_floor(struct aster_table *table, int64_t floor)
{
    if (floor > table->floor) {
        table->floor = floor;
    }
}

struct aster_table_usage aster_table_usage_get(const struct aster_table *table)
{
    size_t bytes = sizeof *table + table->entry_bytes + table->identities.bytes +
                   table->deadlines.capacity * sizeof(struct aster_deadline) +
                   ((size_t)table->index.bucket_count + table->index.old_count) * sizeof(struct aster_entry *);
    return (struct aster_table_usage){table->index.count, table->held, bytes};
}

struct visiting {
    const struct aster_table *table;
    int64_t now_ns;
    aster_table_visitor visit;
    void *user;
};

static bool visit_entry(struct aster_entry *entry, void *user)
{
    const struct visiting *visiting = user;
    struct aster_row row = aster_entry_row(visiting->table, entry);
    struct aster_snapshot snapshot = aster_row_snapshot(aster_entry_name(entry), &row);
    snapshot.remaining_ns = remaining_ns(entry, visiting->now_ns);
    return visiting->visit(&snapshot, entry->held ? entry->since_ns : ASTER_TABLE_SINCE_UNKNOWN, visiting->user);
}

void aster_table_visit(const struct aster_table *table, int64_t now_ns, aster_table_visitor visit, void *user)
{
    struct visiting visiting = {table, now_ns, visit, user};
    aster_index_visit(&table->index, visit_entry, &visiting);
}
