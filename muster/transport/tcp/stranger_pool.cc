#include "muster/transport/tcp/stranger_pool.h"

#include <utility>

namespace muster {

std::optional<uint64_t> StrangerPool::WhoMakesRoom(const std::string& address, bool full,
                                                   HasGreeted has_greeted) const {
  const auto count = counts_.find(address);
  if (count != counts_.end() && count->second >= most_per_address_) return Oldest(&address, has_greeted);
  if (full || size() >= most_) return Oldest(nullptr, has_greeted);
  return std::nullopt;
}

std::optional<uint64_t> StrangerPool::Oldest(const std::string* address, HasGreeted has_greeted) const {
  std::optional<uint64_t> oldest;
  for (const auto& [id, its_address] : addresses_) {
    if (address != nullptr && its_address != *address) continue;
    if (!has_greeted(id)) return id;
    if (!oldest) oldest = id;
  }
  return oldest;
}

void StrangerPool::Add(uint64_t id, std::string address) {
  ++counts_[address];
  addresses_.emplace(id, std::move(address));
}

bool StrangerPool::Remove(uint64_t id) {
  const auto found = addresses_.find(id);
  if (found == addresses_.end()) return false;
  const auto count = counts_.find(found->second);
  if (--count->second == 0) counts_.erase(count);
  addresses_.erase(found);
  return true;
}

}  // namespace muster
