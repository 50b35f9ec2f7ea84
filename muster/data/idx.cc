#include "muster/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr size_t kMaxDimensions = 4;
// Deflate expands at most 1032-fold (zlib's technical note), so a header that promises more is wrong.
constexpr uint64_t kMaxExpansion = 1032;

// Reads the bytes of a file, unpacked if they are gzipped.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `into` as far as there are bytes and returns how many. DataLoss if the packed data are damaged.
  virtual absl::StatusOr<size_t> Read(uint8_t* into, size_t size) = 0;
  // Returns an upper bound for the bytes that can follow.
  virtual uint64_t MostBytes() const = 0;
};

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(std::string_view content) : rest_(content) {}

  absl::StatusOr<size_t> Read(uint8_t* into, size_t size) override {
    size = std::min(size, rest_.size());
    if (size > 0) std::memcpy(into, rest_.data(), size);
    rest_.remove_prefix(size);
    return size;
  }
  uint64_t MostBytes() const override { return rest_.size(); }

 private:
  std::string_view rest_;
};

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::string_view content, std::string name) : name_(std::move(name)), rest_(content) {
    MUSTER_CHECK(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK);  // 16: a gzip header, not a zlib one
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  absl::StatusOr<size_t> Read(uint8_t* into, size_t size) override {
    size_t done = 0;
    while (done < size && !ended_) {
      Feed();
      const size_t piece = std::min<size_t>(size - done, std::numeric_limits<uInt>::max());
      stream_.next_out = into + done;
      stream_.avail_out = static_cast<uInt>(piece);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      done += piece - stream_.avail_out;
      if (result == Z_STREAM_END) {
        ended_ = true;
        if (stream_.avail_in > 0 || !rest_.empty()) return Damaged("bytes follow its end");
      } else if (result == Z_BUF_ERROR) {
        return Damaged("it is cut short");
      } else if (result != Z_OK) {
        return Damaged(stream_.msg != nullptr ? stream_.msg : "unpacking failed");
      }
    }
    return done;
  }
  uint64_t MostBytes() const override { return (rest_.size() + stream_.avail_in) * kMaxExpansion; }

 private:
  // Needed because zlib counts its input in 32 bits.
  void Feed() {
    if (stream_.avail_in > 0 || rest_.empty()) return;
    const size_t piece = std::min<size_t>(rest_.size(), std::numeric_limits<uInt>::max());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream_.avail_in = static_cast<uInt>(piece);
    rest_.remove_prefix(piece);
  }
  absl::Status Damaged(const char* how) const {
    return absl::DataLossError(absl::StrCat(name_, ": the gzip data are damaged: ", how));
  }

  const std::string name_;
  std::string_view rest_;
  z_stream stream_ = {};
  bool ended_ = false;
};

std::unique_ptr<ByteSource> OpenSource(std::string_view content, const std::string& name) {
  if (content.substr(0, 2) == "\x1f\x8b") return std::make_unique<GzipSource>(content, name);
  return std::make_unique<PlainSource>(content);
}

absl::Status ReadExactly(ByteSource& source, const std::string& name, const char* what, uint8_t* into, size_t size) {
  ASSIGN_OR_RETURN(const size_t got, source.Read(into, size));
  if (got == size) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(name, ": the file is cut short: ", got, " of the ", size, " bytes of its ", what, " are there"));
}

absl::StatusOr<std::vector<size_t>> ReadShape(ByteSource& source, const std::string& name) {
  uint8_t magic[4];
  RETURN_IF_ERROR(ReadExactly(source, name, "magic number", magic, sizeof magic));
  if (magic[0] != 0 || magic[1] != 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": not an IDX file: it starts with ", int{magic[0]}, ", ",
                                                   int{magic[1]}, " where 0, 0 is expected"));
  }
  if (magic[2] != kUnsignedByte) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": IDX element type ", int{magic[2]}, " is not supported; accepted: 8 (unsigned bytes)"));
  }
  if (magic[3] < 1 || magic[3] > kMaxDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", int{magic[3]}, " IDX dimensions; accepted: 1 to ", kMaxDimensions));
  }
  uint8_t sizes[4 * kMaxDimensions];
  RETURN_IF_ERROR(ReadExactly(source, name, "dimensions", sizes, 4 * size_t{magic[3]}));
  std::vector<size_t> shape;
  for (const uint8_t* at = sizes; at < sizes + 4 * magic[3]; at += 4) {
    shape.push_back(size_t{at[0]} << 24 | size_t{at[1]} << 16 | size_t{at[2]} << 8 | at[3]);
  }
  return shape;
}

// Returns how many elements `shape` has, provided that the rest of the file can hold them.
absl::StatusOr<size_t> CheckedCount(const std::vector<size_t>& shape, uint64_t most, const std::string& name) {
  size_t count = 1;
  for (const size_t size : shape) {
    if (size == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": the IDX shape [", absl::StrJoin(shape, ", "), "] holds no elements"));
    }
    if (size > most / count) {
      return absl::DataLossError(absl::StrCat(name, ": the file is cut short or its header is wrong: shape [",
                                              absl::StrJoin(shape, ", "), "] needs more bytes than follow"));
    }
    count *= size;
  }
  return count;
}

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(std::string_view content, const std::string& name) {
  if (content.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": the file is empty"));
  const std::unique_ptr<ByteSource> source = OpenSource(content, name);
  IdxArray array;
  const uint64_t most = source->MostBytes();
  ASSIGN_OR_RETURN(array.shape, ReadShape(*source, name));
  // The bound was taken before the header was read: zlib may hold back unpacked bytes that its input no longer counts.
  ASSIGN_OR_RETURN(const size_t count, CheckedCount(array.shape, most, name));
  array.elements.resize(count);
  RETURN_IF_ERROR(ReadExactly(*source, name, "elements", array.elements.data(), count));
  uint8_t beyond;
  ASSIGN_OR_RETURN(const size_t extra, source->Read(&beyond, 1));
  if (extra > 0) {
    return absl::DataLossError(absl::StrCat(name, ": bytes follow the ", count, " elements of shape [",
                                            absl::StrJoin(array.shape, ", "), "]"));
  }
  return array;
}

absl::StatusOr<IdxArray> ReadIdx(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, files.ReadFile(path));
  return ParseIdx(content, path);
}

}  // namespace muster
