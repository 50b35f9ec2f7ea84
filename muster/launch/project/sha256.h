// SHA-256 of bytes that arrive in pieces, by OpenSSL. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace muster {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::string_view bytes);
  // Adds the length first, as 8 bytes, lowest first, so that ("ab", "c") and ("a", "bc") differ.
  void AddWithLength(std::string_view bytes);
  // Returns 32 bytes. Must be the last call, made once.
  std::string Finish();

 private:
  struct Freed {
    void operator()(evp_md_ctx_st* context) const;
  };
  const std::unique_ptr<evp_md_ctx_st, Freed> context_;
};

}  // namespace muster
