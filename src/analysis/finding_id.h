// SPDX-License-Identifier: Apache-2.0
// Every finding that there is (findings.def) and every class of them (finding_classes.def), and what is known
// of them without a job. Code compares values; the texts are for what people and programs read: JSON, pages,
// `lockstep explain`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::analysis {

enum class FindingId : uint16_t {
#define FINDING(name, id, finding_class, severity, meaning) k##name,
#include "analysis/findings.def"
#undef FINDING
};

// In the order of causes: finding_classes.def.
enum class FindingClass : uint8_t {
#define CLASS(name, text, family, callers, names_culprit) k##name,
#include "analysis/finding_classes.def"
#undef CLASS
};

enum class Severity : uint8_t {
  kNote,      // worth knowing; changes nothing
  kWarning,   // the job is slower than it need be, or may be
  kCritical,  // the job stands still or has lost a part
};

// What kind of answer a class is: nothing moves, it is slow, it cannot be known, or it is set up badly. The
// verdict joins findings of each family by a rule of its own.
enum class Family : uint8_t { kStall, kSlow, kDoubt, kSetup };

// Who called the operation in question.
// Findings of one wait contradict each other if one says that all have called it and another that some have
// not.
enum class Callers : uint8_t { kOpen, kSomeAbsent, kAll };

struct FindingFacts {
  std::string_view id;  // "never-joined", "host-late.growing"
  FindingClass finding_class;
  Severity severity;         // unless whoever draws it knows more
  std::string_view meaning;  // "a rank has not called an operation that the others are in"
};

// Of a class as a whole, whatever job it is found in.
struct ClassFacts {
  std::string_view text;  // "never-joined"
  Family family;
  Callers callers;
  bool names_culprit;  // its ranks are who is to blame
};

// By FindingId.
inline constexpr FindingFacts kFindings[] = {
#define FINDING(name, id, finding_class, severity, meaning) \
  {id, FindingClass::k##finding_class, Severity::severity, meaning},
#include "analysis/findings.def"
#undef FINDING
};

// By FindingClass.
inline constexpr ClassFacts kClasses[] = {
#define CLASS(name, text, family, callers, names_culprit) \
  {text, Family::k##family, Callers::k##callers, names_culprit},
#include "analysis/finding_classes.def"
#undef CLASS
};

constexpr const FindingFacts& facts(FindingId id) { return kFindings[static_cast<size_t>(id)]; }
constexpr std::string_view id_text(FindingId id) { return facts(id).id; }
constexpr FindingClass class_of(FindingId id) { return facts(id).finding_class; }
constexpr const ClassFacts& facts(FindingClass of) { return kClasses[static_cast<size_t>(of)]; }
constexpr std::string_view class_text(FindingClass of) { return facts(of).text; }

// It tells of a process that ended, and its ranks are those that noticed.
constexpr bool is_of_another(FindingId id) {
  switch (id) {
    case FindingId::kRankDeadRemote:
    case FindingId::kRankDeadRas:
    case FindingId::kRankDeadLocal:
    case FindingId::kRankDeadConnection:
    case FindingId::kRankDeadException:
    case FindingId::kRankDeadGloo:
    case FindingId::kRankDeadStore:
      return true;
    default:
      return false;
  }
}

// "note", "warning", "critical"
constexpr std::string_view severity_text(Severity severity) {
  constexpr std::string_view kTexts[] = {"note", "warning", "critical"};
  return kTexts[static_cast<size_t>(severity)];
}

}  // namespace lockstep::analysis
