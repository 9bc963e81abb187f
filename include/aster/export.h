/* Symbol visibility. Everything else in the library is hidden. */
#ifndef ASTER_EXPORT_H
#define ASTER_EXPORT_H

#if defined(__GNUC__)
#define ASTER_API __attribute__((visibility("default")))
#else
#define ASTER_API
#endif

#ifdef __cplusplus
#define ASTER_BEGIN_DECLS extern "C" {
#define ASTER_END_DECLS }
#else
#define ASTER_BEGIN_DECLS
#define ASTER_END_DECLS
#endif

#endif
