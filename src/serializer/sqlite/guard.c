#include "serializer/sqlite/guard.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "aster/transition.h"
#include "base/error.h"

struct declaration {
    struct declaration *next;
    struct aster_fence fence; /* its names follow the struct in memory */
};

struct aster_guard {
    int references; /* the registered functions */
    struct declaration *first;
};

static struct declaration **find(struct aster_guard *guard, struct aster_bytes resource)
{
    struct declaration **at = &guard->first;
    while (*at != NULL && !aster_bytes_equal((*at)->fence.resource, resource)) {
        at = &(*at)->next;
    }
    return at;
}

void aster_guard_withdraw(struct aster_guard *guard, struct aster_bytes resource)
{
    struct declaration **at = find(guard, resource);
    struct declaration *found = *at;
    if (found != NULL) {
        *at = found->next;
        free(found);
    }
}

int aster_guard_declare(struct aster_guard *guard, const struct aster_fence *fence)
{
    size_t names = fence->resource.size + fence->holder.size;
    struct declaration *made = malloc(sizeof *made + names);
    if (made == NULL) {
        return SQLITE_NOMEM;
    }
    char *bytes = (char *)(made + 1);
    memcpy(bytes, fence->resource.data, fence->resource.size);
    memcpy(bytes + fence->resource.size, fence->holder.data, fence->holder.size);
    made->fence = (struct aster_fence){
        {bytes, fence->resource.size}, fence->epoch, {bytes + fence->resource.size, fence->holder.size}};
    aster_guard_withdraw(guard, fence->resource);
    made->next = guard->first;
    guard->first = made;
    return SQLITE_OK;
}

void aster_guard_withdraw_all(struct aster_guard *guard)
{
    while (guard->first != NULL) {
        aster_guard_withdraw(guard, guard->first->fence.resource);
    }
}

static void drop_reference(void *user)
{
    struct aster_guard *guard = user;
    if (--guard->references > 0) {
        return;
    }
    aster_guard_withdraw_all(guard);
    free(guard);
}

static struct aster_bytes text_of(sqlite3_value *value)
{
    const void *data = sqlite3_value_text(value); /* before the length: it may convert the value */
    return (struct aster_bytes){data, (size_t)sqlite3_value_bytes(value)};
}

/* The message keeps its text: SQLite replaces it only when there is none. */
static void refuse(sqlite3_context *context, int code, const char *message)
{
    sqlite3_result_error(context, message, -1);
    sqlite3_result_error_code(context, code);
}

static void declare(sqlite3_context *context, const struct aster_fence *fence)
{
    if (aster_guard_declare(sqlite3_user_data(context), fence) != SQLITE_OK) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sqlite3_result_int64(context, fence->epoch);
}

/* The one-line text that `aster run` hands to a command as ASTER_FENCE. */
static void fence_text_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    char storage[ASTER_FENCE_TEXT_MAX];
    struct aster_fence fence;
    struct aster_error error = ASTER_ERROR_INIT;
    const char *text = (const char *)sqlite3_value_text(values[0]);
    if (aster_fence_parse(text != NULL ? text : "", storage, sizeof storage, &fence, &error) != ASTER_OK) {
        refuse(context, SQLITE_MISMATCH, error.message);
        return;
    }
    declare(context, &fence);
}

static void fence_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    if (sqlite3_value_type(values[0]) != SQLITE_TEXT || sqlite3_value_numeric_type(values[1]) != SQLITE_INTEGER ||
        sqlite3_value_type(values[2]) != SQLITE_TEXT) {
        refuse(context, SQLITE_MISMATCH, "aster_fence(resource, epoch, holder): give a text, an integer and a text");
        return;
    }
    const struct aster_fence fence = {text_of(values[0]), sqlite3_value_int64(values[1]), text_of(values[2])};
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_resource_check(fence.resource, &error) != ASTER_OK ||
        aster_identity_check(fence.holder, "holder", &error) != ASTER_OK) {
        refuse(context, SQLITE_MISMATCH, error.message);
        return;
    }
    declare(context, &fence);
}

static void unfence_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    if (sqlite3_value_type(values[0]) != SQLITE_TEXT) {
        refuse(context, SQLITE_MISMATCH, "aster_unfence(resource): give a text");
        return;
    }
    aster_guard_withdraw(sqlite3_user_data(context), text_of(values[0]));
}

static const char *next_step(enum aster_reason reason)
{
    switch (reason) {
    case ASTER_REASON_NO_FENCE:
        return "declare the fence on this connection first: SELECT aster_fence(resource, epoch, holder)";
    case ASTER_REASON_FUTURE_EPOCH:
        return "the store is older than the fence: was it restored from a backup?";
    case ASTER_REASON_NOT_HELD:
        return "nobody holds the lease: acquire it and declare the new fence";
    case ASTER_REASON_NOT_HOLDER:
        return "another identity holds this epoch: acquire the lease and declare the new fence";
    default:
        return "this writer's lease is over: acquire again and read the data anew before writing";
    }
}

/* The fence of another resource is the likeliest mistake of a writer that declared one. */
static void say_declared(const struct aster_guard *guard, char *text, size_t size)
{
    char shown[ASTER_PRINTABLE_MAX];
    text[0] = '\0';
    if (guard->first != NULL) {
        snprintf(text, size, "; what it declared last is for '%s'",
                 aster_printable(guard->first->fence.resource, shown));
    }
}

static void reject(sqlite3_context *context, struct aster_bytes resource, const struct aster_verdict *verdict)
{
    char shown[ASTER_PRINTABLE_MAX];
    char carried[48] = "no fence";
    char declared[ASTER_PRINTABLE_MAX + 48] = "";
    if (verdict->reason != ASTER_REASON_NO_FENCE) {
        snprintf(carried, sizeof carried, "epoch %" PRId64, verdict->carried_epoch);
    } else {
        say_declared(sqlite3_user_data(context), declared, sizeof declared);
    }
    char message[ASTER_ERROR_MESSAGE_MAX];
    snprintf(message, sizeof message, "aster: %s: resource '%s' carried %s, current epoch %" PRId64 ": %s%s",
             aster_reason_name(verdict->reason), aster_printable(resource, shown), carried, verdict->current_epoch,
             next_step(verdict->reason), declared);
    refuse(context, SQLITE_CONSTRAINT, message);
}

/* guard(resource, epoch, held, holder, floor): the row's columns are NULL when the resource has no row. */
static void guard_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct aster_guard *guard = sqlite3_user_data(context);
    struct aster_bytes resource = text_of(values[0]);
    struct aster_row row = aster_row_absent(sqlite3_value_int64(values[4]));
    if (sqlite3_value_type(values[1]) != SQLITE_NULL) {
        row.epoch = sqlite3_value_int64(values[1]);
        row.held = sqlite3_value_int(values[2]) != 0;
        row.holder = text_of(values[3]);
    }
    const struct declaration *declared = *find(guard, resource);
    if (declared == NULL) {
        const struct aster_verdict verdict = {ASTER_REASON_NO_FENCE, 0, row.epoch};
        reject(context, resource, &verdict);
        return;
    }
    /* Whoever declares the fence names itself: the file's permissions are the only authentication there is here. */
    struct aster_verdict verdict = aster_fence_verdict(&row, resource, &declared->fence, declared->fence.holder);
    if (verdict.reason != ASTER_REASON_NONE) {
        reject(context, resource, &verdict);
        return;
    }
    sqlite3_result_int(context, 1);
}

int aster_guard_install(sqlite3 *db, struct aster_guard **guard)
{
    /* The schema may call the guard (also under trusted_schema=OFF), and only the application may declare. */
    static const struct {
        const char *name;
        int arguments;
        int flags;
        void (*function)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"aster_fence", 1, SQLITE_DIRECTONLY, fence_text_function},
        {"aster_fence", 3, SQLITE_DIRECTONLY, fence_function},
        {"aster_unfence", 1, SQLITE_DIRECTONLY, unfence_function},
        {ASTER_GUARD_FUNCTION, 5, SQLITE_INNOCUOUS, guard_function},
    };
    struct aster_guard *made = malloc(sizeof *made);
    if (made == NULL) {
        return SQLITE_NOMEM;
    }
    *made = (struct aster_guard){1, NULL};
    int code = SQLITE_OK;
    for (size_t i = 0; code == SQLITE_OK && i < sizeof functions / sizeof functions[0]; i++) {
        made->references++; /* given back by drop_reference(), also when registering fails */
        code =
            sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments, SQLITE_UTF8 | functions[i].flags,
                                       made, functions[i].function, NULL, NULL, drop_reference);
    }
    if (code == SQLITE_OK && guard != NULL) {
        *guard = made;
    }
    drop_reference(made);
    return code;
}
