#include "muster/launch/engines/kubernetes/yaml/overlay.h"

#include <algorithm>

namespace muster {
namespace {

// Returns which key names the items of both lists; "" if none does.
std::string KeyOfItems(const OrderedJson& a, const OrderedJson& b) {
  for (const char* key : {"mountPath", "name", "containerPort"}) {
    const auto has_key = [key](const OrderedJson& item) { return item.is_object() && item.contains(key); };
    if (!a.empty() && !b.empty() && std::all_of(a.begin(), a.end(), has_key) &&
        std::all_of(b.begin(), b.end(), has_key))
      return key;
  }
  return "";
}

}  // namespace

void MergeOverlay(OrderedJson& into, const OrderedJson& overlay) {
  if (into.is_object() && overlay.is_object()) {
    for (const auto& [key, value] : overlay.items()) {
      if (value.is_null())
        into.erase(key);
      else if (into.contains(key))
        MergeOverlay(into[key], value);
      else
        into[key] = value;
    }
    return;
  }
  const std::string key = into.is_array() && overlay.is_array() ? KeyOfItems(into, overlay) : "";
  if (key.empty()) {
    into = overlay;
    return;
  }
  for (const OrderedJson& item : overlay) {
    const auto same =
        std::find_if(into.begin(), into.end(), [&](const OrderedJson& other) { return other[key] == item[key]; });
    if (same == into.end())
      into.push_back(item);
    else
      MergeOverlay(*same, item);
  }
}

}  // namespace muster
