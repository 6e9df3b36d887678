// SPDX-License-Identifier: Apache-2.0
// One batch for each process that has rows, loaded as it is asked for and one ahead: a consumer that stops
// early has read little more than it took. Losses of the run come at the end, when all processes have been
// seen.
#include "library/arrow_stream.h"

#include <cerrno>
#include <new>
#include <optional>
#include <string>

#include "library/arrow_batch.h"
#include "model/load_ahead.h"

namespace lockstep::library {
namespace {

using exporters::common::TableContext;
using exporters::common::TableLayout;

class Stream {
 public:
  Stream(input::Input input, const TableLayout& table)
      : input_(std::move(input)), table_(table), processes_(std::in_place, *input_.source) {}

  void schema(ArrowSchema* out) const { make_schema(table_.columns, out); }

  // A batch of the next process with rows; one that is released already at the end.
  Result<void> next(ArrowArray* out) {
    *out = {};
    while (processes_) {
      auto current = processes_->next();
      if (!current) {
        // No load is under way any more, so the losses of the run may be asked for.
        processes_.reset();
        input_.source->run_losses(run_);
        // A run of which nothing can be read is an error; a process that cannot be read is a loss at the end.
        if (!has_any_)
          return failure_ ? *failure_
                          : Error{ErrorCode::kNotFound, "holds no process", input_.source->name()};
        if (fill(numbers_.of_run(run_), out)) return {};
        break;
      }
      if (current->result && current->trace->processes.size() > 0) {
        has_any_ = true;
        if (fill(numbers_.of(*current->trace), out)) return {};
        continue;
      }
      if (!current->result && !failure_) failure_ = current->result.error();
      run_.lose(model::kNoRow, "export", "unreadable_process", 1,
                current->result ? "empty" : current->result.error().message());
    }
    return {};
  }

  std::string last_error;

 private:
  bool fill(const TableContext& context, ArrowArray* out) const {
    const auto rows = static_cast<uint32_t>(table_.rows(context.trace));
    if (rows == 0) return false;
    BatchBuilder batch(table_.columns, rows);
    for (uint32_t row = 0; row < rows; ++row) {
      batch.begin_row();
      for (const exporters::common::TableColumn& column : table_.columns) column.write(context, row, batch);
      batch.end_row();
    }
    std::move(batch).finish(out);
    return true;
  }

  input::Input input_;
  const TableLayout& table_;
  model::Trace run_;  // what belongs to no process
  exporters::common::TableNumbers numbers_;
  std::optional<model::LoadAhead> processes_;  // none: all are through
  std::optional<Error> failure_;
  bool has_any_ = false;
};

Stream& of(ArrowArrayStream* stream) { return *static_cast<Stream*>(stream->private_data); }

// No exception may cross the C interface, which wants an errno value. Out of memory there is no text: making
// one could fail again.
template <class Work>
int guarded(ArrowArrayStream* stream, Work&& work) noexcept {
  try {
    if (Result<void> done = work(of(stream)); !done) {
      of(stream).last_error = done.error().message();
      return EIO;
    }
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::exception& failed) {
    of(stream).last_error.assign(failed.what());
    return EIO;
  } catch (...) {
    of(stream).last_error = "failed for an unknown reason";
    return EIO;
  }
}

}  // namespace

void open_stream(input::Input input, const TableLayout& table, ArrowArrayStream* stream) {
  auto made = std::make_unique<Stream>(std::move(input), table);
  *stream = {};
  stream->get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
    return guarded(self, [&](Stream& of_table) -> Result<void> {
      of_table.schema(out);
      return {};
    });
  };
  stream->get_next = [](ArrowArrayStream* self, ArrowArray* out) {
    return guarded(self, [&](Stream& of_table) { return of_table.next(out); });
  };
  stream->get_last_error = [](ArrowArrayStream* self) -> const char* {
    return of(self).last_error.empty() ? nullptr : of(self).last_error.c_str();
  };
  stream->release = [](ArrowArrayStream* self) {
    delete static_cast<Stream*>(self->private_data);
    // The interface knows a released stream by this.
    self->release = nullptr;
  };
  stream->private_data = made.release();
}

}  // namespace lockstep::library
