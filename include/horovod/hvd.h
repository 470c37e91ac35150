/* hvd.h - the C interface of the Horovod core: the only header that front ends and adapters see.
 *
 * Conventions
 *  - Every function may be called from any thread and never throws, exits or aborts on bad input.
 *  - A function that can fail returns hvd_status; hvd_last_error() then has the text, for this
 * thread.
 *  - Structs start with struct_size, set by the HVD_*_INIT macros or hvd_*_init() functions.
 *  - Nothing changes owner, except where a function is called *_alloc / *_free or *_take.
 *  - Buffers given to a submission stay valid and untouched until it is complete.
 *  - A time-out is in nanoseconds; HVD_FOREVER waits as long as every peer lives, 0 only looks.
 *  - Ranks are global ranks, also in calls that name a process set.
 */
#ifndef HOROVOD_HVD_H_
#define HOROVOD_HVD_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HVD_API __attribute__((visibility("default")))
#else
#define HVD_API
#endif

#define HVD_ABI_VERSION 1u
#define HVD_FOREVER INT64_MAX

/* Values are never renumbered; the texts live in src/base/status_codes.def. */
typedef enum hvd_status {
  HVD_OK = 0,
  HVD_UNKNOWN_ERROR = 1,
  HVD_PRECONDITION_ERROR = 2,
  HVD_ABORTED = 3,
  HVD_INVALID_ARGUMENT = 4,
  HVD_IN_PROGRESS = 5,
  HVD_TIMED_OUT = 6, /* the caller's deadline passed; the operation goes on */
  HVD_PEER_LOST = 7, /* a rank died or froze */
  HVD_STALLED = 8,   /* the stall limit was reached */
  HVD_SHUT_DOWN = 9, /* this or another rank has shut down */
  HVD_OUT_OF_MEMORY = 10,
  HVD_CORRUPTED = 11, /* shared memory or a message holds what no rank can have written */
  HVD_REMOVED = 12    /* init: an elastic job goes on without this worker */
} hvd_status;

typedef enum hvd_kind {
  HVD_ALLREDUCE = 0,
  HVD_ALLGATHER = 1,
  HVD_BROADCAST = 2,
  HVD_JOIN = 3,
  HVD_ADASUM = 4, /* reported only; submit HVD_ALLREDUCE with HVD_OP_ADASUM */
  HVD_ALLTOALL = 5,
  HVD_BARRIER = 6,
  HVD_REDUCESCATTER = 7
} hvd_kind;

typedef enum hvd_dtype {
  HVD_UINT8 = 0,
  HVD_INT8 = 1,
  HVD_UINT16 = 2,
  HVD_INT16 = 3,
  HVD_INT32 = 4,
  HVD_INT64 = 5,
  HVD_FLOAT16 = 6,
  HVD_FLOAT32 = 7,
  HVD_FLOAT64 = 8,
  HVD_BOOL = 9,
  HVD_BFLOAT16 = 10
} hvd_dtype;

typedef enum hvd_reduce_op {
  HVD_OP_AVERAGE = 0,
  HVD_OP_SUM = 1,
  HVD_OP_ADASUM = 2,
  HVD_OP_MIN = 3,
  HVD_OP_MAX = 4,
  HVD_OP_PRODUCT = 5
} hvd_reduce_op;

/* Who makes an operation advance. */
typedef enum hvd_progress {
  HVD_PROGRESS_DEFAULT = 0,   /* what the engine was started with */
  HVD_PROGRESS_AUTO = 1,      /* waiters drive; the background thread where nobody does */
  HVD_PROGRESS_WAITER = 2,    /* only calls into this library */
  HVD_PROGRESS_BACKGROUND = 3 /* the background thread, from submission on */
} hvd_progress;

typedef uint64_t hvd_handle; /* 0 is never a valid handle */

/* ---- information that needs no init ------------------------------------------------------- */

HVD_API uint32_t hvd_abi_version(void);
HVD_API const char* hvd_version(void);
HVD_API const char* hvd_status_name(hvd_status status);
/* Text of the last failure in this thread; valid until the next failing call of this thread. */
HVD_API const char* hvd_last_error(void);

typedef struct hvd_capabilities {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t dtypes;     /* bit per hvd_dtype */
  uint32_t reduce_ops; /* bit per hvd_reduce_op */
  uint32_t kinds;      /* bit per hvd_kind */
  int32_t max_ranks_per_host;
  const char* simd;    /* kernels chosen on this machine, e.g. "avx2" */
  const char* engines; /* comma separated, e.g. "native" */
} hvd_capabilities;
HVD_API hvd_status hvd_get_capabilities(hvd_capabilities* out);

/* Version of the NCCL that would be used, e.g. 22005 for 2.20.5; 0: none. Loads it. */
HVD_API int32_t hvd_nccl_version(void);
/* GPUs that this process sees; 0: no driver or no device, hvd_last_error has the reason. Loads the
 * driver. */
HVD_API int32_t hvd_device_count(void);

/* ---- life cycle --------------------------------------------------------------------------- */

/* Where this process stands. All -1 (HVD_TOPOLOGY_INIT): taken from the environment. */
typedef struct hvd_topology {
  int32_t rank, size, local_rank, local_size, cross_rank, cross_size;
} hvd_topology;
#define HVD_TOPOLOGY_INIT \
  { -1, -1, -1, -1, -1, -1 }

/* A store that all ranks of the job already share (torchrun's, a batch system's), for jobs on
 * several hosts that horovodrun did not start: addresses travel through it, and unless
 * HOROVOD_KEY_FILE names a key the ranks agree on one through it. Who can only read it learns
 * nothing of that key; who can write to it can join the job. Called by the thread that calls
 * hvd_init, before it returns. Both return 0 on success, 1 when the time is over, anything else on
 * failure.
 */
typedef struct hvd_exchange {
  void* context;
  int32_t (*set)(void* context, const char* key, const void* value, size_t bytes);
  /* Waits for the key. Writes at most `capacity` bytes to `buffer` and the true size to `bytes`; a
   * larger value is asked for again with a larger buffer. */
  int32_t (*get)(void* context, const char* key, void* buffer, size_t capacity, size_t* bytes,
                 int64_t timeout_ns);
} hvd_exchange;

typedef struct hvd_init_options {
  uint32_t struct_size;
  int32_t progress; /* hvd_progress; DEFAULT: HOROVOD_PROGRESS or automatic */
  hvd_topology topology;
  const char* job_id; /* names the job on this host; NULL: from the environment */
  uint64_t epoch;     /* 0: counts this process's inits in the job */
  /* Ranks of the static process sets, one set after the other; equal on all ranks. They get the ids
   * 1, 2, ... in this order. One that equals the global set or an earlier one is left out. */
  const int32_t* process_set_ranks;
  const int32_t* process_set_sizes;
  int32_t process_set_count;
  int32_t dynamic_process_sets; /* 1: allow add/remove, as HOROVOD_DYNAMIC_PROCESS_SETS does */
  hvd_exchange exchange;        /* all NULL: from the environment */
  /* The ranks of the job are those of this communicator: the address of an MPI_Comm of the MPI
   * library that the process has initialized. NULL: none. It is copied, and may be freed after. */
  const void* mpi_comm;
  /* Or these ranks of MPI_COMM_WORLD, equal on all of them; no effect without MPI. */
  const int32_t* mpi_ranks;
  int32_t mpi_rank_count;
  int32_t reserved;
  /* Takes a value out of the store of `exchange` (and gets its context) when nobody needs it any
   * longer. NULL: values stay. */
  void (*exchange_remove)(void* context, const char* key);
} hvd_init_options;
HVD_API void hvd_init_options_init(hvd_init_options* options);

/* May block until all ranks of the job have come, at most HOROVOD_GLOO_TIMEOUT_SECONDS.
 * A second init without shutdown succeeds and changes nothing. options may be NULL. */
HVD_API hvd_status hvd_init(const hvd_init_options* options);
/* Lets agreed operations finish, fails the others on every rank, frees everything but buffers in
 * use (hvd_buffer_alloc), which stay until the process ends. Idempotent. */
HVD_API hvd_status hvd_shutdown(void);
HVD_API int32_t hvd_is_initialized(void);

/* -1 before init and after shutdown. */
HVD_API int32_t hvd_rank(void);
HVD_API int32_t hvd_size(void);
HVD_API int32_t hvd_local_rank(void);
HVD_API int32_t hvd_local_size(void);
HVD_API int32_t hvd_cross_rank(void);
HVD_API int32_t hvd_cross_size(void);
HVD_API int32_t hvd_is_homogeneous(void);
/* 1: MPI brought the ranks of this job together and supports any number of threads; 0: one at a
 * time; -1: MPI is not used, or there is no job. */
HVD_API int32_t hvd_mpi_threads(void);

/* ---- elastic jobs -------------------------------------------------------------------------- */

/* In an elastic job (horovodrun --min-np) the launcher says who is in the world. hvd_init asks it
 * and waits as long as the launcher lives; hvd_shutdown and hvd_init take the process from one
 * world, called epoch, to the next. A worker that has no place in the next world, or is asked to
 * leave before it had one, gets HVD_REMOVED from hvd_init and should end with exit code 0. */

/* 1: this process was started by an elastic launcher. */
HVD_API int32_t hvd_elastic_is_active(void);
/* The world that this process is in or was in last; 0: none yet, or not elastic. */
HVD_API uint64_t hvd_elastic_epoch(void);

typedef enum hvd_elastic_change {
  HVD_ELASTIC_REMOVED = 1,
  HVD_ELASTIC_ADDED = 2 /* both: 3 */
} hvd_elastic_change;

typedef struct hvd_elastic_news {
  uint32_t struct_size;
  uint32_t changes;     /* bits of hvd_elastic_change */
  int64_t timestamp_ns; /* of the newest change that this process has no part in yet; 0: none */
  int32_t is_asked_to_leave; /* 1: finish the step, report HVD_ELASTIC_LEAVING, exit with 0 */
  int32_t reserved;
} hvd_elastic_news;
/* What has changed outside. Never blocks; costs a system call. All zero in other jobs. */
HVD_API hvd_status hvd_elastic_look(hvd_elastic_news* out);

typedef enum hvd_elastic_report_kind {
  HVD_ELASTIC_COMMITTED = 1, /* number: of the last commit */
  HVD_ELASTIC_LEAVING = 2,   /* a planned leave: exit code 0 follows, which is not the job's end */
  HVD_ELASTIC_DONE = 3       /* the training function has returned */
} hvd_elastic_report_kind;

typedef struct hvd_elastic_report {
  uint32_t struct_size;
  int32_t kind; /* hvd_elastic_report_kind */
  int64_t number;
} hvd_elastic_report;
/* Tells the launcher something. Without effect in other jobs. */
HVD_API hvd_status hvd_elastic_tell(const hvd_elastic_report* report);

/* ---- submissions -------------------------------------------------------------------------- */

/* Called at completion, once, by whatever thread steps the engine: keep it short and don't wait in
 * it. It may submit. The handle is valid in the call; status and text come as arguments. */
typedef void (*hvd_callback)(void* context, hvd_handle handle, hvd_status status,
                             const char* message);
/* Asked for an output whose size is known only after negotiation. NULL return: out of memory. */
typedef void* (*hvd_allocate)(void* context, const int64_t* shape, int32_t ndim, size_t bytes);

typedef struct hvd_request {
  uint32_t struct_size;
  int32_t kind;
  int32_t dtype;
  int32_t reduce_op;  /* allreduce, reducescatter */
  int32_t wire_dtype; /* -1, or HVD_FLOAT16 / HVD_BFLOAT16 for float32 sums */
  int32_t process_set;
  int32_t root_rank; /* broadcast; global rank */
  int32_t device;    /* -1: host memory; else the GPU all buffers of the operation lie on */
  int32_t progress;  /* hvd_progress */
  int32_t ndim;
  const int64_t* shape; /* of the input */
  const void* input;
  void* output;          /* may equal input. NULL: `allocate`, or kept by the handle */
  const int32_t* splits; /* alltoall: rows for each rank of the set; NULL: even */
  int32_t splits_count;
  int32_t reserved;
  double prescale, postscale;
  const char* name; /* NULL: matched by order among the unnamed operations of this kind */
  hvd_allocate allocate;
  void* allocate_context;
  hvd_callback on_complete;
  void* callback_context;
  /* device >= 0: the stream (CUstream or cudaStream_t; NULL is the default one) whose work so far
   * makes the buffers ready. Submitting records an event on it and never blocks. Where struct_size
   * ends before this field: NULL. */
  void* stream;
} hvd_request;
/* Fills in defaults: no wire type, set 0, factors 1, host memory, everything else zero. */
HVD_API void hvd_request_init(hvd_request* request);

/* Asynchronous. On failure nothing was submitted. */
HVD_API hvd_status hvd_submit(const hvd_request* request, hvd_handle* out);
/* One operation of `count` tensors, all or nothing: same kind, op, factors and set in each request;
 * names, dtypes and shapes differ. Completion callback: that of the first request. */
HVD_API hvd_status hvd_submit_group(const hvd_request* requests, size_t count, hvd_handle* out);
/* Submit and wait in one call: the quickest form. Needs `output` or `allocate` where one is
 * produced. HVD_TIMED_OUT: the operation goes on and its buffers must stay valid until shutdown. */
HVD_API hvd_status hvd_run(const hvd_request* request, int64_t timeout_ns);
HVD_API hvd_status hvd_run_group(const hvd_request* requests, size_t count, int64_t timeout_ns);

/* A submission that repeats every step: validated and looked up once. */
typedef struct hvd_prepared hvd_prepared;
HVD_API hvd_status hvd_prepare(const hvd_request* requests, size_t count, hvd_prepared** out);
HVD_API hvd_status hvd_prepared_submit(hvd_prepared* prepared, hvd_handle* out);
HVD_API hvd_status hvd_prepared_run(hvd_prepared* prepared, int64_t timeout_ns);
/* Other buffers of the same shape for tensor `index`; not while it is in flight. */
HVD_API hvd_status hvd_prepared_set_buffers(hvd_prepared* prepared, size_t index, const void* input,
                                            void* output);
/* The stream that makes the next submission's buffers ready; see hvd_request. */
HVD_API hvd_status hvd_prepared_set_stream(hvd_prepared* prepared, void* stream);
HVD_API void hvd_prepared_free(hvd_prepared* prepared);

/* Reports the state it finds (HVD_IN_PROGRESS or the final status), then makes one step that does
 * not block. The first poll of a submission always finds HVD_IN_PROGRESS. */
HVD_API hvd_status hvd_poll(hvd_handle handle);
HVD_API hvd_status hvd_wait(hvd_handle handle, int64_t timeout_ns);
/* Waits for all; returns the first failure in array order. */
HVD_API hvd_status hvd_wait_many(const hvd_handle* handles, size_t count, int64_t timeout_ns);
/* After completion: work that `stream` of the operation's device gets from now on finds the
 * results. Needed only with HOROVOD_ENABLE_ASYNC_COMPLETION=1, where an operation is complete once
 * it is in a stream; never blocks. Nothing to do for host memory. */
HVD_API hvd_status hvd_order(hvd_handle handle, void* stream);
/* Forgets the handle. A pending operation goes on; its buffers must stay valid until shutdown or
 * its callback. Outputs that the handle kept are freed. */
HVD_API hvd_status hvd_release(hvd_handle handle);

typedef struct hvd_output {
  uint32_t struct_size;
  int32_t dtype;
  int32_t ndim;
  int32_t received_splits_count;
  const int64_t* shape; /* valid until the handle is released */
  void* data;
  size_t bytes;
  const int32_t* received_splits; /* alltoall */
  int32_t last_joined_rank;       /* join; -1 otherwise */
  int32_t device;                 /* where data lies; -1: host memory */
} hvd_output;
/* After completion: what tensor `index` produced. */
HVD_API hvd_status hvd_get_output(hvd_handle handle, size_t index, hvd_output* out);
/* The caller becomes the owner of an output kept by the handle; free it with hvd_output_free. */
HVD_API hvd_status hvd_output_take(hvd_handle handle, size_t index, void** out);
HVD_API void hvd_output_free(void* data);

HVD_API hvd_status hvd_barrier(int32_t process_set, int64_t timeout_ns);
/* Blocks until all ranks have joined; meanwhile this rank contributes zeros to allreduces. */
HVD_API hvd_status hvd_join(int32_t* last_joined_rank, int64_t timeout_ns);

/* ---- buffers in shared memory: reduced where they lie -------------------------------------- */

HVD_API hvd_status hvd_buffer_alloc(size_t bytes, void** out); /* 256-byte aligned, zeroed */
HVD_API hvd_status hvd_buffer_free(void* data);
HVD_API int32_t hvd_buffer_contains(const void* data, size_t bytes); /* 1: lies in one */

/* ---- process sets -------------------------------------------------------------------------- */

#define HVD_PROCESS_SET_ERROR_INIT (-1)
#define HVD_PROCESS_SET_ERROR_DYNAMIC (-2)
#define HVD_PROCESS_SET_ERROR_UNKNOWN_SET (-3)
#define HVD_PROCESS_SET_ERROR_FOREIGN_SET (-4)
#define HVD_PROCESS_SET_ERROR_SHUTDOWN (-5)
#define HVD_PROCESS_SET_ERROR_EXISTING_SET (-6)
#define HVD_PROCESS_SET_ERROR_ARGUMENT (-7) /* of meet: key or ranks; members disagree on them */
#define HVD_PROCESS_SET_ERROR_TIMED_OUT (-8)
#define HVD_PROCESS_SET_ERROR_FULL (-9)

/* Collective over all ranks, same order everywhere. The id (> 0), or a negative code from above. */
HVD_API int32_t hvd_process_set_add(const int32_t* ranks, int32_t count);
HVD_API int32_t hvd_process_set_remove(int32_t id);
HVD_API int32_t hvd_process_set_rank(int32_t id); /* this process's rank in the set, or a code */
HVD_API int32_t hvd_process_set_size(int32_t id);
HVD_API int32_t hvd_process_set_included(int32_t id); /* 0, 1 or a code */
HVD_API int32_t hvd_process_set_count(void);
/* Writes up to `capacity` ids in ascending order; returns how many there are, or a code. */
HVD_API int32_t hvd_process_set_ids(int32_t* ids, int32_t capacity);
HVD_API int32_t hvd_process_set_ranks(int32_t id, int32_t* ranks, int32_t capacity);

/* A set that its members open among themselves: only they call, in any order relative to other
 * calls, with the same key (any text of at most 4096 bytes) and the same ranks (in any order).
 * Needs no permission for dynamic sets. May block until all members have come; refused in
 * callbacks. Returns the id (2048 or more, equal on all members), for use like any other, or a
 * negative code, with the reason in hvd_last_error. Non-members do not know the set: it is no part
 * of hvd_process_set_count and hvd_process_set_ids. A key gathers one set of overlapping ranks at a
 * time; once its set is open, the key may be used again. */
HVD_API int32_t hvd_process_set_meet(const char* key, const int32_t* ranks, int32_t count,
                                     int64_t timeout_ns);
/* Every member leaves by itself; refused in callbacks. Its agreed operations finish first (at most
 * 10 s), its others end with HVD_ABORTED; so do, on members that stay, those that would need this
 * one. The memory is free when the last member has left. */
HVD_API hvd_status hvd_process_set_leave(int32_t id);

/* ---- observation --------------------------------------------------------------------------- */

/* Rank 0 writes the file; the others accept the call. Needs HOROVOD_TIMELINE at init. */
HVD_API hvd_status hvd_timeline_start(const char* path, int32_t mark_cycles);
HVD_API hvd_status hvd_timeline_stop(void);

typedef struct hvd_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t operations, bytes, failed_operations;
  uint64_t cache_hits, cache_misses, cache_evictions, cache_entries;
  uint64_t agreed_in_lockstep, agreed_by_log; /* how the order was found */
  uint64_t small_operations, streamed_operations, shared_operations;
  uint64_t parks, wakes_sent, late_rings, rescued_wakes, background_runs;
  uint64_t stall_warnings;
} hvd_stats;
HVD_API hvd_status hvd_get_stats(hvd_stats* out);

/* The last operations of this rank, oldest first, one line each. Returns the length needed without
 * the final zero; writes at most `capacity` bytes. */
HVD_API size_t hvd_recent_operations(char* text, size_t capacity);

/* Asks the other ranks of this host to send this process `signal_number` whenever a stall report
 * names it as a rank that others wait for; once per report. Install the handler first. 0: no more.
 * Also before init; holds for every later init of this process. */
HVD_API hvd_status hvd_set_stall_signal(int32_t signal_number);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* HOROVOD_HVD_H_ */
