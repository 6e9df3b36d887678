// SPDX-License-Identifier: Apache-2.0
// A call and the task that NCCL makes of it are one operation; some operations have only one of the two (a
// call of a rank alone in its communicator, a task of a replayed graph). Whoever counts without joining them,
// because joining takes the whole file, counts both and takes the greater: neither falls while a process
// runs, so the greater does not either, which counters need. The greater of the bytes is not always that of
// the kind there is more of. NCCL's own count of an AllGather or a Broadcast is one of bytes, and the type
// that it reports with it says so.
#pragma once

namespace lockstep::format {

// Operations and their bytes, in both ways of counting. For one thread at a time.
template <class Count, class Bytes = Count>
struct Counted {
  Count calls = 0, tasks = 0;
  Bytes call_bytes = 0, task_bytes = 0;

  constexpr Count operations() const { return calls > tasks ? calls : tasks; }
  constexpr Bytes bytes() const { return call_bytes > task_bytes ? call_bytes : task_bytes; }

  void add_call(Bytes bytes) {
    calls += 1;
    call_bytes += bytes;
  }
  void add_task(Bytes bytes) {
    tasks += 1;
    task_bytes += bytes;
  }
  void add(const Counted& other) {
    calls += other.calls;
    tasks += other.tasks;
    call_bytes += other.call_bytes;
    task_bytes += other.task_bytes;
  }
};

}  // namespace lockstep::format
