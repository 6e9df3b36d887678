// SPDX-License-Identifier: Apache-2.0
// OTF2, the trace format of Score-P, Vampir and Scalasca. Times are ns since the Unix epoch on each host's
// own clock. Why the records are those of MPI, and on which locations they lie:
// docs/decisions/0012-otf2-ranks-are-locations.md.
#include <string>
#include <vector>

#include "exporters/common/process_walk.h"
#include "exporters/exporter.h"
#include "exporters/otf2/archive.h"
#include "exporters/otf2/definitions.h"
#include "exporters/otf2/process_events.h"
#include "model/load_ahead.h"

namespace lockstep::exporters::otf2 {
namespace {

class Otf2Export {
 public:
  Otf2Export(model::TraceSource& source, Archive& archive) : source_(source), archive_(archive) {}

  Result<uint64_t> run(const Progress& progress) {
    LOCKSTEP_TRY(model::walk_processes(source_, "export", progress, run_, [&](const model::Trace& trace) {
      add(trace);
      return !archive_.failed();
    }));
    // After all processes, as only then the ranks are known that nobody recorded; and before the losses,
    // which count what could not be placed. Markers follow, and definitions come last: they name all of it.
    definitions_.complete(archive_);
    report_omitted();
    add_losses(run_, OTF2_UNDEFINED_LOCATION_GROUP);
    write_losses();
    definitions_.write(archive_, source_.name());
    return events_;
  }

 private:
  void add(const model::Trace& trace) {
    ProcessEvents process(trace, numbers_.of(trace), archive_, definitions_);
    events_ += process.write(unreported_, run_);
    add_losses(trace, process.group());
  }

  void add_losses(const model::Trace& trace, OTF2_LocationGroupRef group) {
    for (size_t i = 0; i < trace.losses.size(); ++i) {
      const std::string_view detail = trace.strings[trace.losses.detail[i]];
      std::string text = std::to_string(trace.losses.count[i]) + " " +
                         std::string(trace.strings[trace.losses.kind[i]]) + " (" +
                         std::string(trace.strings[trace.losses.stage[i]]) + ")";
      if (!detail.empty()) text += ": " + std::string(detail);
      losses_.push_back({group, fit_text(text)});
    }
  }

  void report_omitted() {
    auto lose = [&](std::string_view kind, uint64_t count, std::string_view detail) {
      run_.lose(model::kNoRow, "export", kind, count, detail);
    };
    lose("without_time", unreported_.without_time, "events left out, because their begin is unknown");
    lose("cut_short", unreported_.cut_short, "events drawn shorter, because too many overlapped");
    lose("without_record", unreported_.without_record,
         "operations drawn as a region alone, because OTF2 has no such collective or their communicator, "
         "root, peer or number is unknown");
    lose("unfinished", unreported_.unfinished,
         "operations drawn as a region alone, because they had not ended");
    lose("cut_text", definitions_.cut_texts(), "names cut, because they are long");
    lose("misplaced_member", definitions_.misplaced_members(),
         "members of communicators left out, because their rank is unknown or another member's");
    lose("large_comm", definitions_.large_comms(),
         "communicators with their recorded members alone, because they are too large");
  }

  void write_losses() {
    for (const LossText& loss : losses_) {
      OTF2_MarkerWriter* const markers = archive_.markers();
      if (markers == nullptr) return;
      const bool is_global = loss.group == OTF2_UNDEFINED_LOCATION_GROUP;
      // A marker needs a time, and losses have none: they stand at the begin of the run.
      OTF2_MarkerWriter_WriteMarker(markers, definitions_.first_time(), 0, Archive::kLoss,
                                    is_global ? OTF2_MARKER_SCOPE_GLOBAL : OTF2_MARKER_SCOPE_LOCATION_GROUP,
                                    is_global ? 0 : loss.group, loss.text.c_str());
    }
  }

  struct LossText {
    OTF2_LocationGroupRef group;
    std::string text;
  };
  model::TraceSource& source_;
  Archive& archive_;
  Definitions definitions_;
  common::ViewerNumbers numbers_;
  Omitted unreported_;
  model::Trace run_;  // losses
  std::vector<LossText> losses_;
  uint64_t events_ = 0;
};

Result<ExportResult> write(model::TraceSource& source, const std::string& path, const Progress& progress) {
  LOCKSTEP_TRY(common::check_not_input(source, path));
  LOCKSTEP_ASSIGN(auto archive, Archive::create(path));
  LOCKSTEP_ASSIGN(uint64_t events, Otf2Export(source, *archive).run(progress));
  LOCKSTEP_ASSIGN(uint64_t bytes, archive->finish());
  return ExportResult{events, bytes};
}

}  // namespace

extern const Exporter kExporter;
const Exporter kExporter{.name = "otf2",
                         .summary = "OTF2 archive for Vampir, Scalasca and otf2-print",
                         .extension = ".otf2",
                         .is_folder = true,
                         .write = write};

}  // namespace lockstep::exporters::otf2
