// HMAC-SHA256 (RFC 2104), by OpenSSL. Thread-safe: a function of its arguments.
#pragma once

#include <string>
#include <string_view>

namespace muster {

inline constexpr size_t kHmacBytes = 32;

// Returns kHmacBytes bytes. An empty key is allowed, and proves nothing.
std::string HmacSha256(std::string_view key, std::string_view message);

// Compares in a time that depends on the length alone, so that nobody learns a MAC by guessing it byte by byte.
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace muster
