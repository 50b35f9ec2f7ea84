#include "muster/data/stages/dataset_stage.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/ahead_stream.h"
#include "muster/data/stages/row_feed.h"
#include "muster/data/stages/stack_rows.h"

namespace muster {

absl::StatusOr<int64_t> PlaceReader::Take(int64_t most) {
  if (numbers_.empty()) return absl::InvalidArgumentError("a number is missing");
  const int64_t number = numbers_.front();
  if (number < 0 || number > most) return absl::InvalidArgumentError(absl::StrCat("there is no place ", number));
  numbers_ = numbers_.subspan(1);
  return number;
}

absl::StatusOr<bool> StageStream::Draw(Example& into, size_t&) { return Next(into); }
absl::Status StageStream::Make(Example&, size_t) { return absl::OkStatus(); }
absl::Status StageStream::SeekEpoch(int64_t) { return absl::OkStatus(); }

absl::Status SequentialStream::Begin(int64_t epoch) {
  read_ = 0;
  return Rewind(epoch);
}

absl::StatusOr<bool> SequentialStream::Next(Example& into) {
  ASSIGN_OR_RETURN(const bool got, Read(into));
  if (got) ++read_;
  return got;
}

void SequentialStream::Tell(Place& place) const { place.numbers.push_back(read_); }

absl::Status SequentialStream::Seek(PlaceReader& place) {
  ASSIGN_OR_RETURN(const int64_t wanted, place.Take());
  while (read_ < wanted) {
    ASSIGN_OR_RETURN(const bool got, Pass());
    if (!got) {
      return absl::OutOfRangeError(
          absl::StrCat(wanted, " examples had been handed out, but now there are only ", read_));
    }
    ++read_;
  }
  return absl::OkStatus();
}

absl::Status RowReader::ReadBatch(std::span<const size_t> rows, Example& into, Example& scratch) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    RETURN_IF_ERROR(Read(rows[i], scratch));
    if (i == 0) PrepareStack(scratch, rows.size(), into);
    RETURN_IF_ERROR(StackRow(scratch, i, into));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StageStream>> DatasetStage::MakeStream() const {
  ASSIGN_OR_RETURN(std::shared_ptr<const RowReader> reader, OpenReader());
  const int threads = reader->threads();
  std::unique_ptr<StageStream> stream = MakeRowStream(*this, std::move(reader));
  return threads > 1 ? MakeAheadStream(std::move(stream), AheadOptions::ForThreads(threads)) : std::move(stream);
}

absl::StatusOr<std::shared_ptr<const RowReader>> DatasetStage::OpenReader() const {
  MUSTER_CHECK(indexed());  // otherwise the stage overrides this
  return absl::InternalError("no rows to read by number");
}

void DatasetStage::FillOrder(int64_t, size_t rows, std::vector<size_t>& order) const {
  order.resize(rows);
  std::iota(order.begin(), order.end(), size_t{0});
}

std::string DatasetStage::Describe(bool elements_only) const {
  if (before() == nullptr) return Name();
  const std::string stages = before()->Describe(elements_only);
  return elements_only && !ChangesElements() ? stages : absl::StrCat(stages, ".", Name());
}

absl::Status DatasetStage::CheckAll() const {
  if (before() != nullptr) RETURN_IF_ERROR(before()->CheckAll());
  const absl::Status mistake = Check();
  if (mistake.ok()) return mistake;
  const std::string name = Name();
  return AsWrongConfiguration(absl::Status(
      mistake.code(), absl::StrCat(name.substr(0, name.find('(')), ": ", mistake.message(), " (in ", Describe(), ")")));
}

}  // namespace muster
