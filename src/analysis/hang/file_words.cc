// SPDX-License-Identifier: Apache-2.0
// Words the advice about missing files for the input at hand. "Load the capture library" is of no use to
// somebody who gave Flight Recorder dumps, so each kind of input names its own setting.
#include "analysis/hang/file_words.h"

#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

FileWords own_words(const std::string& ranks) {
  return {
      .named = "the launcher named " + ranks,
      .look =
          "Check that the hosts of these ranks are up, that the capture library was loaded there, and that "
          "the run directory is shared.",
      .have =
          "Copy the files of these ranks into the run directory; if there are none, check that the capture "
          "library was loaded there.",
      .bring = "the files of these ranks: copy them into the run directory and ask again",
      .overwritten = "older records were overwritten",
      .keep_older = "a larger ring or all records: LOCKSTEP_RETAIN=stream, or lockstep trace --retain stream",
      .cut = "capture ended before the process did",
      .keep_all = "room on the disk, or a larger cap in LOCKSTEP_RETAIN=stream:CAP"};
}

FileWords words_of(const std::string& files, const std::string& setting, const std::string& ranks) {
  const std::string asked = setting.empty() ? "" : ": " + setting;
  const std::string have =
      "Give the " + files + " of these ranks together with the others; if there are none, ";
  return {.named = files + " name " + ranks,
          .look = "Check that the hosts of these ranks are up and that they were set to write " + files +
                  asked + '.',
          .have = have + "have each rank write its own" + asked + '.',
          .bring = "the " + files + " of these ranks, given together with the others",
          .overwritten = "older operations are not in the " + files,
          .keep_older = files + " that go further back" + asked,
          .cut = "the " + files + " end before the process did",
          .keep_all = "capture of all operations: lockstep trace"};
}

}  // namespace

FileWords file_words(const model::Job& job, size_t ranks) {
  const std::string all = wording::count(ranks, "rank");
  return job.files.empty() ? own_words(all) : words_of(job.files, job.setting, all);
}

}  // namespace lockstep::analysis::hang
