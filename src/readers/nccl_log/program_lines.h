// SPDX-License-Identifier: Apache-2.0
// What programs, frameworks, launchers and kernels print of failures (program_lines.def), and what a program
// itself raised.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "readers/nccl_log/catalogue.h"

namespace lockstep::readers::nccl_log {

// What a line says. Views into it.
struct ProgramLine {
  enum class Says : uint8_t {
    kNothing,
    kKind,     // of program_lines.def
    kWarning,  // the words of a warning of NCCL, which an exception repeats, or which lost its head
    kRaised,   // what ended the program, if it did not follow from another rank's end
  };
  Says says = Says::kNothing;
  LineKind kind = LineKind::kUnknown;
  Captures captures;
  std::string_view prefix, text;  // a launcher's mark; the words
  std::string_view
      last_warning;  // of kKind: NCCL's last one, which the line repeats and which may not be the cause
};

// "size count type redop root time algbw busbw #wrong time algbw busbw #wrong": a row of nccl-tests.
using TestRow = std::array<std::string_view, 13>;
std::optional<TestRow> test_row_of(std::string_view line);

// One file after the other; bounded memory; any bytes. One thread.
class ProgramParser {
 public:
  void begin_file() { *this = ProgramParser(); }
  // Whether the next line counts whatever words it has.
  bool follows() const {
    return !last_errors_.empty() || !tracebacks_.empty() || in_absent_ || lines_ < test_rows_end_;
  }
  // `number`: of the line in its file.
  ProgramLine line(std::string_view text, uint64_t number);
  // At the end of a file, the last frame of a traceback that ends before the words of its exception; empty:
  // none. `mark`: the launcher's; `number`: of its line.
  std::string_view cut_off(std::string& mark, uint64_t& number) const;
  // The last frame of a stack whose beginning is not in the file; empty: none.
  std::string_view lone_frame(uint64_t& number) const;
  // The first exception that stands without a traceback, and does not follow from another rank's end; empty:
  // none. `mark`, `number`: as above.
  std::string_view lone_exception(std::string& mark, uint64_t& number) const;

 private:
  static constexpr size_t kFrameMost = 240;
  static constexpr uint64_t kTracebackLines = 500;
  static constexpr size_t kTracebacksMost = 64;
  static constexpr uint64_t kLastErrorLines = 16;  // of other processes between
  static constexpr size_t kLastErrorsMost = 8;

  // What a library's exception says of its cause stands on the next line of the same mark.
  struct LastError {
    std::string prefix;
    uint64_t line = 0;
  };

  bool last_error(std::string_view text, ProgramLine& line);
  bool traceback(std::string_view text, ProgramLine& line);
  void frame(std::string_view text, const std::string& mark);
  void exception_alone(std::string_view text);
  bool absent_rank(std::string_view text, ProgramLine& line);
  bool culprits(std::string_view text, ProgramLine& line);
  bool test_row(std::string_view text, ProgramLine& line);

  uint64_t lines_ = 0;
  std::vector<LastError> last_errors_;
  std::string error_prefix_;                    // of the line that came last
  std::map<std::string, uint64_t> tracebacks_;  // by launcher's mark: the line that began it
  std::string frame_, frame_mark_;              // the last frame of a traceback that is open, and its mark
  uint64_t number_ = 0, frame_number_ = 0;      // in the file, of the line that is read and of that frame
  uint64_t frame_line_ = 0;                     // and the last line of it
  std::string lone_frame_;                      // the last one outside a traceback
  uint64_t lone_frame_number_ = 0;              // and its line in the file
  std::string lone_exception_, lone_mark_;      // the first one outside a traceback, and its launcher's mark
  uint64_t lone_exception_number_ = 0;          // and its line in the file
  bool is_end_cut_ = false;                     // the line behind it may be half of an exception's name
  bool in_absent_ = false;                      // Horovod's list of ranks that it waits for is being read
  uint64_t test_rows_end_ = 0;                  // rows of nccl-tests may stand above this line
  std::string absent_mark_;                     // and the launcher's mark before its heading
  std::string world_size_;                      // that the analyser of Flight Recorder dumps printed last
  std::array<std::string, 2> list_;             // what `culprits` puts together
};

}  // namespace lockstep::readers::nccl_log
