/* The text of sql/postgres, all its files in one. */
#ifndef POSTGRES_SCHEMA_H
#define POSTGRES_SCHEMA_H

extern const char aster_postgres_schema_text[];

#endif
