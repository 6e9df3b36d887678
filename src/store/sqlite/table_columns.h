// SPDX-License-Identifier: Apache-2.0
// Walks the columns of a model table or row: visit(type_name, name, text, member) for each COLUMN of its .def
// file, so that the schema, the writer and the reader of trace.db follow the model by themselves.
#pragma once
#include <string_view>

#include "model/trace.h"

namespace lockstep::store::sqlite {

// Specialised for every row struct; `each` takes the struct or its table (the members have the same names).
template <class Row>
struct Columns;

template <>
struct Columns<model::Process> {
  static constexpr std::string_view kSqlName = "process";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/process.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::ClockAnchor> {
  static constexpr std::string_view kSqlName = "clock_anchor";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/clock_anchor.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Comm> {
  static constexpr std::string_view kSqlName = "comm";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/comm.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Thread> {
  static constexpr std::string_view kSqlName = "thread";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/thread.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Shape> {
  static constexpr std::string_view kSqlName = "shape";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/shape.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Call> {
  static constexpr std::string_view kSqlName = "call";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/call.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Task> {
  static constexpr std::string_view kSqlName = "task";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/task.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Channel> {
  static constexpr std::string_view kSqlName = "channel";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/channel.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::ProxyOp> {
  static constexpr std::string_view kSqlName = "proxy_op";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/proxy_op.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::ProxyStep> {
  static constexpr std::string_view kSqlName = "proxy_step";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/proxy_step.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::ProxyCtrl> {
  static constexpr std::string_view kSqlName = "proxy_ctrl";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/proxy_ctrl.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::NetEvent> {
  static constexpr std::string_view kSqlName = "net_event";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/net_event.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Mark> {
  static constexpr std::string_view kSqlName = "mark";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/mark.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Op> {
  static constexpr std::string_view kSqlName = "op";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/op.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Split> {
  static constexpr std::string_view kSqlName = "split";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/split.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Launch> {
  static constexpr std::string_view kSqlName = "launch";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/launch.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Kernel> {
  static constexpr std::string_view kSqlName = "gpu_kernel";  // RPD has a view `kernel`
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/kernel.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Range> {
  static constexpr std::string_view kSqlName = "nvtx_range";  // RANGE is a word of SQL
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/range.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Histogram> {
  static constexpr std::string_view kSqlName = "histogram";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/histogram.def"
#undef COLUMN
  }
};

template <>
struct Columns<model::Loss> {
  static constexpr std::string_view kSqlName = "loss";
  template <class Object, class Visit>
  static void each(Object& object, Visit&& visit) {
#define COLUMN(type, name, text) visit(#type, #name, text, object.name);
#include "model/tables/loss.def"
#undef COLUMN
  }
};

}  // namespace lockstep::store::sqlite
