// A stride for tests that try the same thing at each of many points.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MUSTER_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MUSTER_SANITIZED 1
#endif
#endif

namespace muster {

// These tests try every point. Under a sanitizer, which is some ten times slower, they try one in this many: a
// sanitizer looks for errors that don't depend on the exact point. A prime, so that it meets every kind of point.
#if defined(MUSTER_SANITIZED)
inline constexpr uint64_t kSanitizerStride = 13;
#else
inline constexpr uint64_t kSanitizerStride = 1;
#endif

}  // namespace muster
