// SHA-256 of bytes that come in pieces, by OpenSSL. Not thread-safe.
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
  // With the length before it, as 8 bytes, lowest first: so that ("ab", "c") and ("a", "bc") differ.
  void AddWithLength(std::string_view bytes);
  // 32 bytes. Once, as the last call.
  std::string Finish();

 private:
  struct Freed {
    void operator()(evp_md_ctx_st* context) const;
  };
  const std::unique_ptr<evp_md_ctx_st, Freed> context_;
};

}  // namespace muster
