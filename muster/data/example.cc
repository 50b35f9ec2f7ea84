#include "muster/data/example.h"

#include <utility>

namespace muster {

const Array* Example::Find(std::string_view name) const {
  for (const Feature& feature : features) {
    if (feature.name == name) return &feature.value;
  }
  return nullptr;
}

Array* Example::Find(std::string_view name) { return const_cast<Array*>(std::as_const(*this).Find(name)); }

}  // namespace muster
