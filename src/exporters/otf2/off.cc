// SPDX-License-Identifier: Apache-2.0
// Stands for the exporter in a build without libotf2.
#include "exporters/exporter.h"

namespace lockstep::exporters::otf2 {

extern const Exporter kExporter;
const Exporter kExporter{
    .name = "otf2",
    .summary = "OTF2 archive for Vampir, Scalasca and otf2-print",
    .extension = ".otf2",
    .is_folder = true,
    .off = "it was built without libotf2; install libopen-trace-format2-dev and build again"};

}  // namespace lockstep::exporters::otf2
