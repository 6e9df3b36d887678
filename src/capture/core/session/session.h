// SPDX-License-Identifier: Apache-2.0
// The one capture session of a library in a process: opened by the first user, closed at process exit, never
// reopened.
//
//   idle -> running -> closed          (exit handlers ran; file whole, or its segment waits for an adopter)
//              |  '-> (no more chunks: disk full, size cap, storage that does not answer; events are
//                  counted and dropped)
//              '----> forked           (in a child that did not exec: nothing is ever written again)
//   idle -> failed | off               (no file could be made, or LOCKSTEP_MODE=off)
//
// Threads: everything here may be called by any thread. One lock guards definitions of the process, another
// the growth of the file, so that neither holds up the other; the event path takes neither. A keeper thread
// prepares chunks, refreshes the heartbeat, takes clock anchors and looks for control requests; it touches
// memory alone, so it goes on while storage does not. A writer thread puts what is recorded into the file,
// and fetches requests from it. Both sleep up to 50 ms when nothing happens, and block all signals.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/core/file/process_file.h"
#include "capture/core/losses.h"
#include "capture/core/own_thread.h"
#include "capture/core/session/config.h"
#include "capture/core/session/control.h"
#include "format/definitions.h"

namespace lockstep::capture {

enum class Phase : uint32_t { kIdle, kRunning, kClosed, kForked, kFailed, kOff };

// What is known of a communicator when it begins. -1, 0 and empty are unknown; `name` lives during the call.
struct CommInfo {
  uint64_t comm_id = 0;
  const char* name = nullptr;
  int32_t rank = -1, ranks = -1, nodes = -1;
  uint32_t api_version = 0;
  int32_t device = -1;
  char pci[16] = {};
  unsigned char uuid[16] = {};
};
// What was said of a declared group beside its members. Texts may be nullptr; a description that is not was
// said.
struct GroupDeclaration {
  const char *name = nullptr, *description = nullptr;
  int32_t start = -1, stride = -1, rank = -1;
};

// A capture library's part in a change of what is recorded: `record` is called by `open`, on its caller's
// thread, before anything is recorded, and later on the keeper's thread; `apply_pending` on every nap of the
// keeper.
struct Steering {
  void (*record)(const Recording& recording) = nullptr;
  void (*apply_pending)() = nullptr;
};

class Session {
 public:
  static Session& get();
  // Opens the session on first use. True while it is running.
  bool open(format::Source source, Steering steering = {});
  bool running() const { return phase_.load(std::memory_order_acquire) == Phase::kRunning; }
  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  // One line about the outcome of opening, for the host's logger; nullptr after it was fetched once.
  const char* take_message(bool* is_warning);

  ProcessFile& file() { return file_; }
  const Config& config() const { return config_; }
  uint32_t process_tag() const { return process_tag_; }
  int32_t pid() const { return pid_; }

  // Comm index for contexts; format::kNoComm when it could not be recorded (counted).
  uint32_t add_comm(const CommInfo& info);
  void end_comm(uint32_t comm);
  void identify_comm(uint32_t comm, uint64_t comm_id, const char* name);
  void add_group(uint32_t comm, const GroupDeclaration& declared);
  void add_group_ranks(uint32_t comm, const int32_t* ranks, uint32_t count);
  void add_note(const char* key, const char* value);
  // A definition as large as `bytes`, a multiple of format::kUnitBytes, its head included: of that, `ticks`
  // alone is taken, 0 for now.
  void add_definition(format::Def kind, uint32_t id, const format::DefHead* definition, size_t bytes);
  // A NameDef of the process. The text is cut to format::kMaxKernelNameBytes with its NUL.
  void add_name(format::Def kind, uint32_t id, const char* text);
  // The events that NCCL is asked for now; whether it still has to be told.
  void set_event_mask(uint32_t mask, bool waiting);
  // Number of comms so far; an index below it was issued here.
  uint32_t comms() const { return comms_.load(std::memory_order_relaxed); }

  // A new thread has taken its first chunks: more are prepared soon, should others follow.
  void thread_registered();

  // Losses of no particular thread log.
  void lose(Loss kind);
  // Why there is no place for a chunk, while the session is open.
  Loss loss_of_no_place() const;
  // Process exit: what is recorded goes into the file, and it is marked closed, if storage lets that be done
  // in a second. Later events are counted as such.
  void close();
  static void watch_forks();

 private:
  bool start_locked(format::Source source);
  void look_at_control();
  void add_mode_locked(format::ModeReason reason);
  // Room for a definition of the process, cleared; nullptr when there is none (counted).
  char* room_locked(size_t bytes);
  template <class Definition>
  Definition* define_locked();
  // The model of the first GPU that is used.
  void note_gpu(const CommInfo& info);
  void publish_message();
  static void* keeper(void* self);
  void keep();
  void prepare_chunks(uint32_t ahead);
  void beat();
  static void after_fork_in_child();

  std::atomic<Phase> phase_{Phase::kIdle};
  ProcessFile file_;
  Config config_{};
  Control control_;
  Steering steering_{};
  uint32_t process_tag_ = 0;
  int32_t pid_ = 0;
  std::atomic<uint32_t> comms_{0};
  std::atomic<bool> has_gpu_{false};
  Bell keeper_bell_;
  char* meta_ = nullptr;
  uint32_t meta_used_ = 0, meta_no_ = 0;
  char message_[1600] = {};
  bool message_is_warning_ = false;
  std::atomic<bool> message_ready_{false};
};

}  // namespace lockstep::capture
