#include "muster/train/watch/link_notice.h"

#include <string_view>

#include "muster/base/log.h"

namespace muster {

void LinkNotice::Check(size_t ps, const char* link) {
  if (ps >= said_.size()) said_.resize(ps + 1);
  // Between two connections there is nothing to log. Workers that need no connection, or are their own ps, have logged
  // that.
  const std::string_view now = link;
  if (now != "tcp" && now != "shared memory") return;
  if (said_[ps] == now) return;
  LogInfo("talks with ps:", ps, now == "tcp" ? " over TCP" : " through shared memory");
  said_[ps] = now;
}

}  // namespace muster
