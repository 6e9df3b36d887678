// SPDX-License-Identifier: Apache-2.0
// Reads what Lockstep or another tool recorded of a job, and says what is wrong with it:
// liblockstep-diagnose.so. C99.
//
//   const char *paths[] = {"trace.db"};
//   char *error = NULL, *json = NULL;
//   lockstep_run *run = lockstep_open(paths, 1, &error);
//   int outcome = run ? lockstep_diagnose(run, &json, &error) : LOCKSTEP_FAILED;
//   ...
//   lockstep_free(json); lockstep_free(error); lockstep_close(run);
//
// Nothing is written to the input, and nothing is printed. Every file is taken as hostile: damage ends in an
// error or in a verdict that names it.
//
// Texts are UTF-8, end in 0 and belong to the caller, who gives them to lockstep_free(); free() of another C
// library will not do. Paths are taken byte for byte. Times in texts and tables are ns since the Unix epoch
// or durations with their unit, each on its own host's clock.
//
// Errors: where something fails, `*error` says what, where and what to do, if `error` is not NULL; where
// nothing does, it is set to NULL. No call throws, aborts for wrong input or keeps global state.
//
// Threads: a run belongs to one thread at a time; different runs may be used at once. A call works on several
// threads of its own while it runs; a stream of a table keeps one, which reads ahead, until its release(). No
// call can be cancelled.
//
// Everything that this header names stays as it is under its name: later versions add calls, tables and
// columns.
#ifndef LOCKSTEP_DIAGNOSE_H
#define LOCKSTEP_DIAGNOSE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The exit codes of `lockstep diagnose`, which scripts rely on; other calls return the first or
// LOCKSTEP_FAILED.
//
// HEALTHY: no problem found, or none so far while the job runs.
// PROBLEM: the verdict names one. CANNOT_TELL: what was recorded does not suffice for an answer, and the
// verdict says what is missing.
#define LOCKSTEP_HEALTHY 0
#define LOCKSTEP_PROBLEM 1
#define LOCKSTEP_FAILED 2 /* wrong use, or nothing that can be read: `*error` says what */
#define LOCKSTEP_CANNOT_TELL 3

// The Arrow C data and stream interfaces, as their page has them
// (https://arrow.apache.org/docs/format/CDataInterface.html); a program that has them already keeps its own,
// by the guards that the page names. The layout is frozen there, so both are the same.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
// Whoever holds a struct last calls its release(), once; one whose release is NULL is empty.
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
#endif

// Opaque. It holds the paths and nothing that was read: a call on a job that still runs says how things are
// then, and two calls in a row may differ. It keeps no file open.
typedef struct lockstep_run lockstep_run;

// "0.1.0", for as long as the library is loaded.
const char* lockstep_version(void);

// Names a run by what `lockstep diagnose` takes: run directories, trace.dbs, dumps, traces, logs, archives,
// in any mix. `paths` is copied. What is wrong with them is told by the calls below, which read them anew
// each. NULL: no path, an empty one, or no memory. Every run that is not NULL needs one lockstep_close().
lockstep_run* lockstep_open(const char* const* paths, size_t count, char** error);
void lockstep_close(lockstep_run* run);  // NULL is allowed

// The verdict: `*json` is what `lockstep diagnose --json` prints, to the byte (docs/schemas has its schema).
// Returns its exit code; with LOCKSTEP_FAILED there is no text. It reads everything that the paths name and
// takes as long as that does.
int lockstep_diagnose(lockstep_run* run, char** json, char** error);

// `*html` is the page that `lockstep report` writes, whole: one file with scripts, styles and data in it,
// which loads nothing. It makes a diagnosis of its own and costs as much as one. 0, or LOCKSTEP_FAILED: also
// where this library was built without the page.
int lockstep_report(lockstep_run* run, char** html, char** error);

// A table as record batches, one for each process that has rows: "processes", "comms", "ops", "kernels",
// "marks", "ranges" or "losses", with the cells of `lockstep convert -f csv`. Columns are int64, uint64 or
// large_utf8, all nullable; the metadata "meaning" of each says what it is. Of runs of one format.
//
// The stream outlives the run; it belongs to one thread at a time, and its release() ends it. It reads as it
// is asked, one process ahead, so a whole run need not fit into memory. Its errors are EIO, with the text
// that get_last_error() gives, and ENOMEM. A process that cannot be read is left out, and counted in
// "losses". A batch, and each column that a consumer takes out of it, lives until its own release(), on any
// thread.
//
// 0 or LOCKSTEP_FAILED; then `stream` is not to be used.
int lockstep_table(lockstep_run* run, const char* table, struct ArrowArrayStream* stream, char** error);

void lockstep_free(char* text);  // NULL is allowed

#ifdef __cplusplus
}
#endif
#endif
