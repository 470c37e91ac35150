/* plugin.h - the boundary between libhorovod.so and libhorovod_gloo.so: a table of C functions, so
 * that the core is built without Gloo, never links it, and shares no C++ type or exception with it.
 *
 * Every function that returns an hvd_gloo_result may block, until the time limit of its group at
 * the latest, or until hvd_gloo_plugin.abort. A group runs one call at a time; abort is for any
 * thread. After a call has failed only abort and close_group may follow: Gloo has closed the
 * connections. The members of a group make the same calls in the same order. */
#ifndef HVD_GLOO_PLUGIN_H
#define HVD_GLOO_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when the meaning of what is there changes. New functions are appended, and found out about
 * by struct_size. */
#define HVD_GLOO_PLUGIN_VERSION 1u
#define HVD_GLOO_PLUGIN_ENTRY "hvd_gloo_plugin_table"

typedef struct hvd_gloo_device hvd_gloo_device; /* a listener and its thread */
typedef struct hvd_gloo_group hvd_gloo_group;   /* connections among some ranks */

typedef enum hvd_gloo_result { HVD_GLOO_OK = 0, HVD_GLOO_FAILED = 1 } hvd_gloo_result;

/* Filled in by a call that fails: what Gloo says, cut to fit. */
typedef struct hvd_gloo_error {
  char text[512];
} hvd_gloo_error;

/* out = a combined with b, element by element; out may equal a or b. Must not throw. */
typedef void (*hvd_gloo_reduce)(const void* state, void* out, const void* a, const void* b,
                                size_t count);

typedef struct hvd_gloo_allreduce_args {
  uint32_t struct_size;
  uint32_t element_bytes; /* 1, 2, 4 or 8 */
  const void* in;         /* equal to out: in place */
  void* out;
  uint64_t count; /* elements, at least 1 */
  hvd_gloo_reduce reduce;
  const void* state; /* of reduce */
} hvd_gloo_allreduce_args;

typedef struct hvd_gloo_plugin {
  uint32_t version;     /* HVD_GLOO_PLUGIN_VERSION */
  uint32_t struct_size; /* of this table */

  /* "Gloo 0.5.0, /usr/lib/libgloo.so.0": for people. */
  const char* (*description)(void);

  /* `address`: a numeric address of this host, which peers can reach. Null: failed. */
  hvd_gloo_device* (*open_device)(const char* address, hvd_gloo_error* error);
  /* After all of its groups. */
  void (*close_device)(hvd_gloo_device* device);

  hvd_gloo_group* (*open_group)(hvd_gloo_device* device, int32_t rank, int32_t size,
                                int64_t time_limit_ms, hvd_gloo_error* error);
  /* What `peer` needs to connect: bytes written to `out`, or 0 if `capacity` is too small. */
  size_t (*address_for)(hvd_gloo_group* group, int32_t peer, void* out, size_t capacity);
  /* addresses[r], lengths[r]: what rank r's address_for(this rank) said; the own entry is not read.
   */
  hvd_gloo_result (*connect)(hvd_gloo_group* group, const void* const* addresses,
                             const size_t* lengths, hvd_gloo_error* error);
  /* Ends the call that runs, and every later one, with `why`. Any thread; never blocks. */
  void (*abort)(hvd_gloo_group* group, const char* why);
  /* Not while a call runs. After a healthy end it waits a little for peers that still receive. */
  void (*close_group)(hvd_gloo_group* group);

  hvd_gloo_result (*allreduce)(hvd_gloo_group* group, const hvd_gloo_allreduce_args* args,
                               hvd_gloo_error* error);
  /* bytes[r]: the block of rank r. Blocks lie in `out` in the order of the ranks. */
  hvd_gloo_result (*allgather)(hvd_gloo_group* group, const void* in, void* out,
                               const uint64_t* bytes, hvd_gloo_error* error);
  /* `in` is read by the root alone; it may equal `out`. */
  hvd_gloo_result (*broadcast)(hvd_gloo_group* group, const void* in, void* out, uint64_t bytes,
                               int32_t root, hvd_gloo_error* error);
  /* Blocks lie in `in` and `out` in the order of the ranks. */
  hvd_gloo_result (*alltoall)(hvd_gloo_group* group, const void* in, const uint64_t* send_bytes,
                              void* out, const uint64_t* receive_bytes, hvd_gloo_error* error);
} hvd_gloo_plugin;

/* What libhorovod_gloo.so exports under HVD_GLOO_PLUGIN_ENTRY. */
typedef const hvd_gloo_plugin* (*hvd_gloo_plugin_entry)(void);

#ifdef __cplusplus
}
#endif
#endif
