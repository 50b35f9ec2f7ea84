// Values that hooks give to one step, by name (TensorFlow's feed_dict of SessionRunArgs). Used by the training thread.
#pragma once

#include <cxxabi.h>

#include <any>
#include <cstdlib>
#include <map>
#include <string>
#include <typeinfo>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace muster {

class Feeds {
 public:
  // AlreadyExists: the name has a value already.
  [[nodiscard]] absl::Status Add(const std::string& name, std::any value) {
    if (values_.try_emplace(name, std::move(value)).second) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("'", name, "' is fed by two hooks in one run; feed it by one of them"));
  }

  // NotFound: no hook has fed it in this run. InvalidArgument: its value has another type.
  template <typename T>
  absl::StatusOr<T> Get(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return absl::NotFoundError(absl::StrCat("no hook has fed '", name, "' in this run"));
    if (const T* const value = std::any_cast<T>(&found->second)) return *value;
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' was fed as ", NameOf(found->second.type()), " and is read as ", NameOf(typeid(T))));
  }

 private:
  static std::string NameOf(const std::type_info& type) {
    int failed = 0;
    char* const readable = abi::__cxa_demangle(type.name(), nullptr, nullptr, &failed);
    std::string name = failed == 0 ? readable : type.name();
    std::free(readable);
    return name;
  }

  std::map<std::string, std::any> values_;
};

}  // namespace muster
