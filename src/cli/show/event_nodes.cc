// SPDX-License-Identifier: Apache-2.0
// Builds and folds the nodes of an operation's tree. A deep trace has thousands of similar events for one
// operation, and a reader looks for the one that did not end. So siblings beyond a limit become one node that
// counts them, while open ones keep their own as far as the limit goes.
#include "cli/show/event_nodes.h"

#include <algorithm>

#include "model/event_kind.h"

namespace lockstep::cli::show {

std::string comma(const std::string& text, const std::string& more) {
  if (text.empty() || more.empty()) return text + more;
  return text + ", " + more;
}

EventNode event_node(const model::Trace& trace, uint8_t kind, uint32_t thread, int64_t begin_ns,
                     int64_t end_ns) {
  EventNode made;
  made.event = model::event_name(kind);
  if (thread < trace.threads.size()) {
    made.tid = trace.threads.tid[thread];
    made.thread = trace.strings[trace.threads.name[thread]];
  }
  made.begin_ns = begin_ns;
  made.end_ns = end_ns;
  // Without an end it still goes on, or its end was lost: both read as never ended.
  made.open = end_ns == 0;
  return made;
}

void add_state(EventNode& into, const char* name, int64_t ns) {
  if (ns != 0) into.states.push_back({name, ns});
}

void widen(EventNode& node, int64_t begin_ns, int64_t end_ns) {
  // 0 is unknown, and earlier than nothing.
  if (begin_ns != 0 && (node.begin_ns == 0 || begin_ns < node.begin_ns)) node.begin_ns = begin_ns;
  node.end_ns = std::max(node.end_ns, end_ns);
  if (end_ns == 0) ++node.open;
}

void add_folded(EventNode& into, std::vector<EventNode> siblings, size_t most) {
  if (siblings.size() <= most) {
    for (EventNode& made : siblings) into.children.push_back(std::move(made));
    return;
  }
  EventNode all;
  all.event = siblings.front().event;
  all.tid = siblings.front().tid;
  all.thread = siblings.front().thread;
  // A node counts itself by default; this one counts only what is folded into it.
  all.count = 0;
  const EventNode* longest = nullptr;
  // Without its end or begin an event has no length, so it is never the longest.
  auto length = [](const EventNode& made) {
    return made.end_ns == 0 || made.begin_ns == 0 ? 0 : made.end_ns - made.begin_ns;
  };
  size_t alone = 0;
  for (EventNode& made : siblings) {
    if (made.open > 0 && alone < most) {
      into.children.push_back(std::move(made));
      ++alone;
      continue;
    }
    ++all.count;
    widen(all, made.begin_ns, made.end_ns);
    // -1 stands for several threads: none of them may be named for all.
    if (made.tid != all.tid) {
      all.tid = -1;
      all.thread.clear();
    }
    if (longest == nullptr || length(made) > length(*longest)) longest = &made;
  }
  all.detail = "longest: " + longest->detail;
  into.children.push_back(std::move(all));
}

}  // namespace lockstep::cli::show
