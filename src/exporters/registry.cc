// SPDX-License-Identifier: Apache-2.0
#include "exporters/exporter.h"

namespace lockstep::exporters {

#define EXPORTER(folder)           \
  namespace folder {               \
  extern const Exporter kExporter; \
  }
#include "exporters/exporters.def"
#undef EXPORTER

namespace {
constexpr const Exporter* kExporters[] = {
#define EXPORTER(folder) &folder::kExporter,
#include "exporters/exporters.def"
#undef EXPORTER
};
}  // namespace

std::span<const Exporter* const> all() { return kExporters; }

const Exporter* find(std::string_view name) {
  for (const Exporter* exporter : kExporters) {
    if (exporter->name == name) return exporter;
  }
  return nullptr;
}

}  // namespace lockstep::exporters
