#include "muster/launch/project/sha256.h"

#include <openssl/evp.h>

#include <cstdint>

#include "muster/base/check.h"

namespace muster {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  MUSTER_CHECK(context_ != nullptr);
  MUSTER_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::Freed::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

void Sha256::Add(std::string_view bytes) {
  MUSTER_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::AddWithLength(std::string_view bytes) {
  std::string length(8, '\0');
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>((static_cast<uint64_t>(bytes.size()) >> (8 * i)) & 0xFF);
  Add(length);
  Add(bytes);
}

std::string Sha256::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  MUSTER_CHECK(EVP_DigestFinal_ex(context_.get(), digest, &size) == 1);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

}  // namespace muster
