// Messages as bytes: protocol buffers, written with protozero after the fields that a message declares (fields.h).
#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "muster/transport/messages/fields.h"
#include "protozero/pbf_reader.hpp"
#include "protozero/pbf_writer.hpp"

namespace muster {

// Nested messages are written in place.
class MessageWriter {
 public:
  explicit MessageWriter(std::string& out) : pbf_(out) {}

  template <typename Message>
  void WriteFields(const Message& message) {
    kFieldsOf<Message>.ForEach([&](auto field) { Write(field.kNumber, field.In(message)); });
  }

 private:
  MessageWriter(protozero::pbf_writer& outer, uint32_t tag) : pbf_(outer, tag) {}

  template <typename T>
  void Write(uint32_t tag, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      pbf_.add_string(tag, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      pbf_.add_double(tag, value);
    } else if constexpr (std::is_enum_v<T>) {
      pbf_.add_uint64(tag, static_cast<uint64_t>(value));
    } else if constexpr (std::is_integral_v<T>) {
      pbf_.add_uint64(tag, static_cast<uint64_t>(static_cast<int64_t>(value)));
    } else {
      MessageWriter(pbf_, tag).WriteFields(value);
    }
  }
  template <typename T>
  void Write(uint32_t tag, const std::vector<T>& values) {
    if constexpr (std::is_integral_v<T>) {
      pbf_.add_packed_uint64(tag, values.begin(), values.end());
    } else if constexpr (std::is_floating_point_v<T>) {
      pbf_.add_packed_double(tag, values.begin(), values.end());
    } else {
      for (const T& value : values) Write(tag, value);
    }
  }

  protozero::pbf_writer pbf_;
};

// A value that an enum with accepted values doesn't have.
template <typename Enum>
struct UnknownValue final : protozero::exception {
  const char* what() const noexcept override { return kAcceptedValues<Enum>.refusal; }
};

// What a message may take in memory, so that a short one can't fill it: an element of a list takes up to eight times
// the bytes that it has on the wire (a number of one byte becomes eight), a little list of anything some more.
class DecodedSize {
 public:
  explicit DecodedSize(size_t wire_bytes) : left_(kAtLeast + kPerByte * wire_bytes) {}
  // Throws if that is too much.
  void Take(size_t bytes) {
    if (bytes > left_) throw TooManyElements();
    left_ -= bytes;
  }

 private:
  static constexpr size_t kPerByte = 8;
  static constexpr size_t kAtLeast = size_t{64} << 10;
  struct TooManyElements final : public protozero::exception {
    const char* what() const noexcept override { return "lists with more elements than its bytes can mean"; }
  };

  size_t left_;
};

// Hands each field to the member whose number it carries; others are skipped, so that a later version may add fields.
class MessageReader {
 public:
  // `size` must outlive it.
  MessageReader(protozero::pbf_reader pbf, DecodedSize& size) : pbf_(pbf), size_(size) {}

  template <typename Message>
  void ReadFields(Message& message) {
    while (pbf_.next()) {
      bool known = false;
      kFieldsOf<Message>.ForEach([&](auto field) {
        if (known || pbf_.tag() != field.kNumber) return;
        known = true;
        Read(field.In(message));
      });
      if (!known) pbf_.skip();
    }
  }

 private:
  // protozero takes another type of field for a bug of ours and asserts; here it is a peer's mistake.
  void Expect(protozero::pbf_wire_type type) const {
    if (pbf_.wire_type() != type) throw protozero::unknown_pbf_wire_type_exception();
  }
  void Read(std::string& value) {
    Expect(protozero::pbf_wire_type::length_delimited);
    value = pbf_.get_string();
  }
  void Read(double& value) {
    Expect(protozero::pbf_wire_type::fixed64);
    value = pbf_.get_double();
  }
  template <typename T>
  void Read(T& value) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      Expect(protozero::pbf_wire_type::varint);
      const uint64_t number = pbf_.get_uint64();
      if constexpr (std::is_enum_v<T>) {
        constexpr uint64_t kCount = kAcceptedValues<T>.count;
        if (kCount > 0 && number >= kCount) throw UnknownValue<T>();
      }
      value = static_cast<T>(number);
    } else {
      Expect(protozero::pbf_wire_type::length_delimited);
      MessageReader(pbf_.get_message(), size_).ReadFields(value);
    }
  }
  template <typename T>
  void Read(std::vector<T>& values) {
    Expect(protozero::pbf_wire_type::length_delimited);
    if constexpr (std::is_integral_v<T>) {
      for (uint64_t value : pbf_.get_packed_uint64()) values.push_back(static_cast<T>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      for (double value : pbf_.get_packed_double()) values.push_back(value);
    } else {
      size_.Take(sizeof(T));
      if constexpr (std::is_same_v<T, std::string>) {
        values.push_back(pbf_.get_string());
      } else {
        MessageReader(pbf_.get_message(), size_).ReadFields(values.emplace_back());
      }
    }
  }

  protozero::pbf_reader pbf_;
  DecodedSize& size_;
};

// Into memory that was used before.
template <typename Message>
void EncodeTo(std::string& bytes, const Message& message) {
  bytes.clear();
  bytes.reserve(96);  // most messages have fewer: one allocation instead of several that grow
  MessageWriter(bytes).WriteFields(message);
}

template <typename Message>
std::string Encode(const Message& message) {
  std::string bytes;
  EncodeTo(bytes, message);
  return bytes;
}

// InvalidArgument if the bytes aren't such a message, ResourceExhausted if there is no memory for it. A message without
// fields is any bytes.
template <typename Message>
[[nodiscard]] absl::Status Decode(const std::string& bytes, Message& message) {
  if constexpr (requires { message.Clear(); }) {
    message.Clear();
  } else {
    message = Message();
  }
  if constexpr (kFieldsOf<Message>.kSize > 0) {
    try {
      DecodedSize size(bytes.size());
      MessageReader(protozero::pbf_reader(bytes), size).ReadFields(message);
    } catch (const protozero::exception& error) {
      return absl::InvalidArgumentError(std::string("malformed control message: ") + error.what());
    } catch (const std::bad_alloc&) {
      message = Message();
      return absl::ResourceExhaustedError("no memory for a control message");
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
