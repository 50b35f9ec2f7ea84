#include "muster/transport/hmac.h"

#include "muster/base/check.h"
#include "openssl/crypto.h"
#include "openssl/evp.h"
#include "openssl/hmac.h"

namespace muster {

std::string HmacSha256(std::string_view key, std::string_view message) {
  std::string mac(kHmacBytes, '\0');
  unsigned int length = 0;
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                   reinterpret_cast<unsigned char*>(mac.data()), &length);
  MUSTER_CHECK(done != nullptr && length == kHmacBytes);
  return mac;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace muster
