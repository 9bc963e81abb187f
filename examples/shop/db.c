#include "db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct db_ops *const kinds[] = {
    &db_sqlite,
#ifdef SHOP_POSTGRES
    &db_postgres,
#endif
};

const struct db_ops *db_ops_for(const char *url)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strncmp(url, kinds[i]->scheme, strlen(kinds[i]->scheme)) == 0) {
            return kinds[i];
        }
    }
    fprintf(stderr, "shop: \"%s\" is no database: write sqlite:PATH or postgresql://...\n", url);
    return NULL;
}

struct db *db_open(const char *url)
{
    const struct db_ops *ops = db_ops_for(url);
    return ops != NULL ? ops->open(url) : NULL;
}

void db_close(struct db *db)
{
    if (db != NULL) {
        db->ops->close(db);
    }
}

bool db_each(struct db *db, const char *sql, int count, const struct db_value *values, db_row row, void *user)
{
    return db->ops->each(db, sql, count, values, row, user);
}

bool db_run(struct db *db, const char *sql, int count, const struct db_value *values)
{
    return db_each(db, sql, count, values, NULL, NULL);
}

static bool take_number(const char *const *columns, void *user)
{
    *(long long *)user = columns[0] != NULL ? strtoll(columns[0], NULL, 10) : -1;
    return false;
}

long long db_number(struct db *db, const char *sql, int count, const struct db_value *values)
{
    long long number = -1;
    return db_each(db, sql, count, values, take_number, &number) ? number : -1;
}
