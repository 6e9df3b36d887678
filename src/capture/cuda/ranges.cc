// SPDX-License-Identifier: Apache-2.0
// NVTX ranges are pushed and popped all the time, and a pop names nothing. So each thread keeps a stack of
// what is open, by its log, of fixed size: what lies deeper is counted and not recorded, and its pops are
// known by their depth. The ranges of NCCL's own domain are left out: capture of NCCL records these calls
// itself.
#include "capture/cuda/ranges.h"

#include <pthread.h>
#include <string.h>

#include <atomic>

#include "capture/core/clock.h"
#include "capture/core/locked.h"
#include "capture/core/log/thread_log.h"
#include "capture/core/session/session.h"
#include "capture/cuda/nvtx_abi.h"
#include "format/definitions.h"
#include "format/records.h"

namespace lockstep::capture::cuda {
namespace {

constexpr size_t kMostBytes = format::kMaxRangeNameBytes - 1;
constexpr size_t kMostText = 1 << 20;
constexpr const char kNcclDomain[] = "NCCL";
// Numbers of domains: 1 to kMostDomains are recorded; and two in which nothing is.
constexpr Domain kDomainOfNccl = kMostDomains + 1, kDomainBeyond = kMostDomains + 2;

std::atomic<bool> g_are_wanted{false};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // of what follows, while it is added to
char g_domain_names[kMostDomains][format::kMaxRangeNameBytes];
std::atomic<uint32_t> g_domains{0};
char g_texts[kMostText];  // one behind another, each with its NUL
size_t g_text_bytes = 0;
KeyTable<uint64_t, const char*> g_known_texts;

// What a thread has pushed. By log, of which each belongs to one thread at a time; all zero at load, so that
// it costs no memory until it is used.
struct Stack {
  struct Open {
    uint64_t range;  // 0: not recorded
    uint32_t domain;
  };
  struct InDomain {
    uint32_t level;
    uint32_t beyond;  // of these, the innermost, which found no room
    uint32_t name;    // the domain's in this log; 0: not asked for yet
  };
  uint32_t owner;
  uint32_t open_count;
  Open open[kMostOpen];
  InDomain domains[kMostDomains + 1];

  // The thread before may have left ranges open. Names are the log's, and stay.
  void adopt(uint32_t new_owner) {
    owner = new_owner;
    open_count = 0;
    for (InDomain& domain : domains) domain.level = domain.beyond = 0;
  }
  // Domains are nested each for itself, so the innermost range of one need not lie on top.
  uint64_t take_innermost(Domain domain) {
    uint32_t at = open_count;
    while (at > 0 && open[at - 1].domain != domain) --at;
    if (at == 0) return 0;
    const uint64_t range = open[at - 1].range;
    memmove(&open[at - 1], &open[at], (open_count - at) * sizeof(Open));
    --open_count;
    return range;
  }
};
Stack g_stacks[format::kMaxLogs];

Stack* stack_of(const ThreadLog* log) {
  Stack* stack = &g_stacks[log->number() - 1];
  if (__builtin_expect(stack->owner != log->owner(), 0)) stack->adopt(log->owner());
  return stack;
}

// A domain is what the program passes: one that was not made here is refused before it indexes a table.
bool is_recorded(Domain domain) { return domain <= g_domains.load(std::memory_order_acquire); }

// Counts a range that is not recorded, for its domain.
void lose_range(ThreadLog* log, Domain domain) {
  // NCCL's own are left out by design: no loss.
  if (domain != kDomainOfNccl)
    log->lose(domain == kDomainBeyond ? kLoss_shape_table_full : kLoss_unknown_context);
}

// Names are numbers of a log, so each log asks once for each domain.
uint32_t number_of(ThreadLog* log, Domain domain) {
  if (domain == 0) return 0;
  uint32_t* number = &stack_of(log)->domains[domain].name;
  if (__builtin_expect(*number == 0, 0)) {
    const char* name = g_domain_names[domain - 1];
    *number = log->range_name(name, strlen(name));
  }
  return *number;
}

uint64_t open_range(ThreadLog* log, Domain domain, RangeName name, format::RangeKind kind) {
  if (name.is_cut) log->lose(kLoss_clamped);
  const uint32_t name_number = log->range_name(name.text, name.bytes);
  const uint32_t domain_number = number_of(log, domain);
  auto* record = log->reserve<format::RangeRecord>();
  if (record == nullptr) return 0;
  record->name = name_number;
  record->domain = domain_number;
  record->range = kind;
  record->reserved0 = 0;
  record->reserved1 = 0;
  // Last: what naming costs is not in the range.
  record->head.start = read_ticks();
  return log->publish(record, format::Kind::kRange, 0, 0);
}

uint64_t hash_of(RangeName name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < name.bytes; ++i)
    hash = (hash ^ static_cast<unsigned char>(name.text[i])) * 0x100000001b3;
  return (hash ^ hash >> 29) * 0x9e3779b97f4a7c15;
}

bool is_text(RangeName name, const char* text) {
  return strncmp(text, name.text, name.bytes) == 0 && text[name.bytes] == 0;
}

// Bytes of UTF-8 that a character takes; written to `out`.
size_t write_utf8(uint32_t c, char* out) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = '?';  // no character
  const size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  if (bytes == 1) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  for (size_t i = bytes - 1; i > 0; --i, c >>= 6) out[i] = static_cast<char>(0x80 | (c & 0x3f));
  constexpr uint8_t kFirst[] = {0, 0, 0xc0, 0xe0, 0xf0};
  out[0] = static_cast<char>(kFirst[bytes] | c);
  return bytes;
}

}  // namespace

RangeName range_name_of(const char* text) {
  if (text == nullptr) return {};
  size_t bytes = strnlen(text, kMostBytes + 1);
  const bool is_cut = bytes > kMostBytes;
  if (is_cut) {
    bytes = kMostBytes;
    // Not inside a character: those that continue one begin with the bits 10. At most three steps back: no
    // character has more than four bytes, and the text may be no UTF-8.
    while (bytes > kMostBytes - 3 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  }
  return {text, bytes, is_cut};
}

RangeName range_name_of(const wchar_t* text, char (&buffer)[256]) {
  static_assert(sizeof buffer == format::kMaxRangeNameBytes);
  RangeName name{buffer, 0, false};
  for (; text != nullptr && *text != 0; ++text) {
    char bytes[4];
    const size_t count = write_utf8(static_cast<uint32_t>(*text), bytes);
    name.is_cut = name.bytes + count > kMostBytes;
    if (name.is_cut) break;
    memcpy(buffer + name.bytes, bytes, count);
    name.bytes += count;
  }
  return name;
}

Domain make_domain(RangeName name) {
  if (!Session::get().running() || name.bytes == 0) return kDomainBeyond;
  if (is_text(name, kNcclDomain)) return kDomainOfNccl;
  if (name.is_cut) Session::get().lose(kLoss_clamped);
  Locked locked(&g_lock);
  const uint32_t count = g_domains.load(std::memory_order_relaxed);
  // A walk over at most kMostDomains names: domains are made once, and the program keeps their number.
  for (uint32_t i = 0; i < count; ++i) {
    if (is_text(name, g_domain_names[i])) return i + 1;
  }
  if (count == kMostDomains) return kDomainBeyond;
  memcpy(g_domain_names[count], name.text, name.bytes);
  g_domains.store(count + 1, std::memory_order_release);
  return count + 1;
}

const char* register_range_text(RangeName name) {
  if (!Session::get().running()) return nullptr;
  if (name.is_cut) Session::get().lose(kLoss_clamped);
  const uint64_t hash = hash_of(name);
  Locked locked(&g_lock);
  const char* const* known = g_known_texts.find(hash, hash);
  if (known != nullptr && is_text(name, *known)) return *known;
  if (name.bytes + 1 > kMostText - g_text_bytes) {
    Session::get().lose(kLoss_shape_table_full);
    return nullptr;
  }
  char* text = g_texts + g_text_bytes;
  memcpy(text, name.text, name.bytes);
  g_text_bytes += name.bytes + 1;
  // Of two texts with one hash the first is found again; the other gets a new copy each time.
  if (known == nullptr) g_known_texts.add(hash, hash, text);
  return text;
}

void record_ranges(bool wanted) { g_are_wanted.store(wanted, std::memory_order_relaxed); }

int push_range(Domain domain, RangeName name) {
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return nvtx::kNotTracked;
  if (__builtin_expect(!is_recorded(domain), 0)) {
    lose_range(log, domain);
    return nvtx::kNotTracked;
  }
  Stack* stack = stack_of(log);
  Stack::InDomain& in_domain = stack->domains[domain];
  const auto level = static_cast<int>(in_domain.level++);
  // Also behind one that found no room: it is popped first.
  if (__builtin_expect(stack->open_count == kMostOpen || in_domain.beyond > 0, 0)) {
    ++in_domain.beyond;
    log->lose(kLoss_clamped);
    return level;
  }
  // Unwanted ones are on the stack, too: their pops come, perhaps once ranges are wanted again.
  const bool wanted = g_are_wanted.load(std::memory_order_relaxed);
  const uint64_t range = wanted ? open_range(log, domain, name, format::RangeKind::kNested) : 0;
  stack->open[stack->open_count++] = {range, static_cast<uint32_t>(domain)};
  return level;
}

int pop_range(Domain domain) {
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr || !is_recorded(domain)) return nvtx::kNotTracked;
  Stack* stack = stack_of(log);
  Stack::InDomain& in_domain = stack->domains[domain];
  if (__builtin_expect(in_domain.level == 0, 0)) {
    // Of what was pushed before ranges were wanted nothing is known.
    if (g_are_wanted.load(std::memory_order_relaxed)) log->lose(kLoss_unknown_handle);
    return nvtx::kFailed;
  }
  const auto level = static_cast<int>(--in_domain.level);
  if (__builtin_expect(in_domain.beyond > 0, 0)) {
    --in_domain.beyond;
  } else {
    end_range(stack->take_innermost(domain));
  }
  return level;
}

uint64_t start_range(Domain domain, RangeName name) {
  if (!g_are_wanted.load(std::memory_order_relaxed)) return 0;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return 0;
  if (__builtin_expect(!is_recorded(domain), 0)) {
    lose_range(log, domain);
    return 0;
  }
  return open_range(log, domain, name, format::RangeKind::kFree);
}

void end_range(uint64_t range) {
  if (range == 0) return;
  ThreadLog* log = ThreadLog::get();
  if (log == nullptr) return;
  if (format::handle_kind(range) != static_cast<uint32_t>(format::Kind::kRange))
    return log->lose(kLoss_unknown_handle);
  format::RecordHead* head = log->find(range);
  const uint64_t now = read_ticks();
  if (__builtin_expect(head == nullptr, 0)) {
    if (ThreadLog::log_for_late(range) == nullptr) return;
    log->append_late_stop(range, now);
    return;
  }
  if (__builtin_expect(head->stop_after != 0, 0)) return log->lose(kLoss_repeated_stop);
  const uint32_t after = ticks_after(head->start, now);
  if (__builtin_expect(after == format::kSaturated, 0))
    log->append_state(range, format::kStateStop, now, 0, 0);
  ThreadLog::store_stop(head, after);
}

}  // namespace lockstep::capture::cuda
