// How a message says which member goes to the wire under which number, once, as a member type beside its members: see
// struct Stamp in stamp.h. codec.h writes and reads by it, and a test compares it with the tables in docs/. Numbers are
// written to the wire: never renumber. Fields are written in the order of the list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// The last word of what the compiler calls `kArgument`, or T: "client" of &muster::Stamp::client.
template <auto kArgument>
constexpr std::string_view MemberName() {
  const std::string_view text = __PRETTY_FUNCTION__;  // "… [with auto kArgument = &muster::Stamp::client; …]"
  const std::string_view name = text.substr(0, text.find_first_of(";]", text.find("kArgument = ")));
  return name.substr(name.rfind(':') + 1);
}
template <typename T>
constexpr std::string_view TypeName() {
  const std::string_view text = __PRETTY_FUNCTION__;  // "… [with T = muster::Stamp; …]"
  const std::string_view name = text.substr(0, text.find_first_of(";]", text.find("T = ")));
  return name.substr(name.find_last_of(": ") + 1);
}

// A member by its number, or a member of a member, which is written as if it were the message's own.
template <uint32_t kTag, auto kMember, auto... kInner>
struct Field {
  static constexpr uint32_t kNumber = kTag;

  template <typename Message>
  static auto& In(Message& message) {
    return ((message.*kMember).*....*kInner);
  }
  // "client", "work.from"
  static std::string Name() {
    std::string name(MemberName<kMember>());
    (name.append(1, '.').append(MemberName<kInner>()), ...);
    return name;
  }
};

template <typename... Field>
struct FieldList {
  static constexpr size_t kSize = sizeof...(Field);

  // Calls visit(Field()) for each, in order.
  template <typename Visit>
  static void ForEach(const Visit& visit) {
    (visit(Field()), ...);
  }
};

// A reply without content.
struct EmptyReply {
  using Fields = FieldList<>;
};

// An enum whose unknown values a reader refuses, since what follows couldn't be read or done without knowing the value,
// has a specialisation: its number of values from 0 on, and what is said of others. Other enums take any value.
struct EnumValues {
  uint64_t count = 0;  // 0: any
  const char* refusal = "";
};
template <typename Enum>
inline constexpr EnumValues kAcceptedValues;

// The fields of a message. Types of other layers, which know of no wire, have a specialisation: model_fields.h.
template <typename Message>
inline constexpr auto kFieldsOf = typename Message::Fields();

}  // namespace muster
