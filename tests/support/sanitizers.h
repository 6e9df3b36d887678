// SPDX-License-Identifier: Apache-2.0
// Which sanitizer a test is built with.
#pragma once

namespace lockstep::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true, kSanitized = true;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadSanitizer = false, kSanitized = true;
#else
inline constexpr bool kThreadSanitizer = false, kSanitized = false;
#endif

}  // namespace lockstep::test
