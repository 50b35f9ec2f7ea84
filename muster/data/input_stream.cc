#include "muster/data/input_stream.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr std::array<const char*, 2> kPositionKeys = {"epoch=", "offset="};

// "epoch=3 offset=150": the numbers; nothing if it is another text.
absl::StatusOr<DataPosition> ParsePosition(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  std::array<int64_t, 2> numbers = {};
  bool good = words.size() == numbers.size();
  for (size_t i = 0; good && i < numbers.size(); ++i) {
    absl::string_view word = words[i];
    good = absl::ConsumePrefix(&word, kPositionKeys[i]) && absl::SimpleAtoi(word, &numbers[i]) && numbers[i] >= 0;
  }
  if (!good) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a position in the input"));
  return DataPosition{.epoch = numbers[0], .offset = numbers[1]};
}

// What the order of the rows of a shard depends on.
std::string DescribeOrder(size_t rows, const BatcherOptions& options) {
  return absl::StrCat("rows=", rows, " shard=", options.shard, "/", options.shards,
                      options.shuffle ? absl::StrCat(" seed=", options.seed) : " unshuffled");
}

constexpr char kOf[] = " of ";

}  // namespace

InputStream::InputStream(const LabelledRows& data, const InputStreamOptions& options, Batcher batcher)
    : rows_(data.size()), options_(options), batcher_(std::make_unique<Batcher>(std::move(batcher))) {}

absl::StatusOr<std::unique_ptr<InputStream>> InputStream::Create(const LabelledRows& data,
                                                                 const InputStreamOptions& options) {
  ASSIGN_OR_RETURN(Batcher batcher, Batcher::Create(data, options.batches));
  return std::unique_ptr<InputStream>(new InputStream(data, options, std::move(batcher)));
}

absl::StatusOr<bool> InputStream::Next(Batch& into) {
  if (!std::exchange(begun_, true) && options_.prefetch > 0) {
    prefetcher_ = std::make_unique<Prefetcher>(std::move(batcher_), PrefetcherOptions{.depth = options_.prefetch});
    prefetcher_->Start();
  }
  ASSIGN_OR_RETURN(const bool got, prefetcher_ ? prefetcher_->Next(into) : batcher_->Next(into));
  if (got) position_ = into.next;
  return got;
}

void InputStream::Stop() {
  if (prefetcher_) prefetcher_->Stop();
}

std::string InputStream::SavePosition() const {
  return absl::StrCat(kPositionKeys[0], position_.epoch, " ", kPositionKeys[1], position_.offset, kOf,
                      DescribeOrder(rows_, options_.batches));
}

absl::Status InputStream::RestorePosition(const std::string& saved) {
  if (begun_)
    return absl::FailedPreconditionError("the position in the input must be restored before the first batch is drawn");
  const std::pair<absl::string_view, absl::string_view> pieces = absl::StrSplit(saved, absl::MaxSplits(kOf, 1));
  ASSIGN_OR_RETURN(DataPosition position, ParsePosition(pieces.first));
  if (const std::string ours = DescribeOrder(rows_, options_.batches); pieces.second != ours) {
    LogWarning("the input was saved with ", pieces.second, " and now has ", ours, ": epoch ", position.epoch,
               " is begun anew");
    position.offset = 0;
  }
  RETURN_IF_ERROR(batcher_->Seek(position));
  position_ = batcher_->position();
  return absl::OkStatus();
}

}  // namespace muster
