// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that knows its version, and reports to a libcupti that it was asked.
extern "C" {
__attribute__((visibility("default"))) void (*fake_driver_call)(unsigned call) = nullptr;
__attribute__((visibility("default"))) int cuDriverGetVersion(int* version) {
  *version = 13000;
  if (fake_driver_call != nullptr) fake_driver_call(2);
  return 0;
}
}
