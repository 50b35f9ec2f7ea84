#include "muster/store/client/row_client.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/optim/kernels/add_gradient.h"
#include "muster/optim/kernels/clip.h"
#include "muster/optim/kernels/half.h"
#include "muster/optim/update_rule.h"
#include "muster/store/arena/arena_layout.h"
#include "muster/store/client/direct_updates.h"

namespace muster {
namespace {

// Copies one row of gradients to where sums are collected.
void CopyRow(DType dtype, const std::byte* from, std::byte* to, size_t width) {
  if (SlotDType(dtype) == dtype) {
    std::memcpy(to, from, width * DTypeSize(dtype));
  } else {
    FloatsFromHalves(dtype, from, reinterpret_cast<float*>(to), width);
  }
}

absl::Status CheckIndices(const VariableSpec& variable, std::span<const int64_t> indices) {
  const int64_t rows = variable.shape[0];
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= rows)
      return absl::InvalidArgumentError(absl::StrCat("row ", indices[i], " (index ", i, " of ", indices.size(),
                                                     ") is out of range: variable '", variable.name, "' has ", rows,
                                                     " rows"));
  return absl::OkStatus();
}

// A batch goes in several requests, so that the ps works on one while the next is on its way, in memory that stays in
// its cache: larger ones leave the cache, and smaller ones each cost as much as their rows (`./dev bench sparse`).
constexpr size_t kRequestBytes = 512 << 10;
constexpr size_t kMaxRequests = 64;  // per shard: channels take some more at a time

size_t RowsAtOnce(size_t rows, size_t row_bytes) {
  return std::max({size_t{1}, kRequestBytes / row_bytes, (rows + kMaxRequests - 1) / kMaxRequests});
}

// Returns where the piece of a push that ends with row `end` of the list begins: it should have about `at_once` rows,
// share no stripe with the piece before it, and leave that piece the first stripe's rows.
size_t BeginOfPiece(std::span<const int64_t> rows, size_t end, int64_t width, size_t at_once) {
  if (end <= at_once) return 0;
  for (size_t first = end - at_once; first > 0; --first) {
    const int64_t last_before = ((rows[first - 1] + 1) * width - 1) / kStripeElements;
    if (last_before < rows[first] * width / kStripeElements) return first;
  }
  return 0;
}

}  // namespace

absl::StatusOr<RowClient::Table> RowClient::Open(const std::string& name, std::span<const int64_t> indices, DType dtype,
                                                 size_t bytes) {
  const ModelBinding& binding = client_.binding();
  const auto found = std::find_if(binding.variables.begin(), binding.variables.end(),
                                  [&name](const VariableSpec& variable) { return variable.name == name; });
  if (found == binding.variables.end())
    return absl::NotFoundError(absl::StrCat("the model has no variable '", name, "'"));
  if (found->kind != VariableKind::kRows)
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", name, "' is no table of rows: it is pulled and pushed as a whole"));
  Table table{.spec = &*found,
              .row_bytes = found->row_elements() * DTypeSize(found->dtype),
              .gradient_bytes = found->row_elements() * DTypeSize(SlotDType(found->dtype))};
  if (dtype != found->dtype || bytes != indices.size() * table.row_bytes)
    return absl::InvalidArgumentError(absl::StrCat(indices.size(), " rows of variable '", name, "' ",
                                                   DescribeType(*found), " are ", indices.size(), " x ",
                                                   found->row_elements(), " ", DTypeName(found->dtype), ", not ",
                                                   bytes / DTypeSize(dtype), " ", DTypeName(dtype)));
  if (indices.size() > std::numeric_limits<uint32_t>::max())
    return absl::InvalidArgumentError(absl::StrCat(indices.size(), " rows at once; accepted: at most 4294967295"));
  RETURN_IF_ERROR(CheckIndices(*found, indices));
  const int index = static_cast<int>(found - binding.variables.begin());
  size_t shards = 0;
  std::vector<uint32_t> slices_of_ps(client_.num_ps(), 0);
  for (const PlacedSlice& slice : binding.placement.slices) {
    const uint32_t number = slices_of_ps[slice.ps]++;
    if (slice.variable != index) continue;
    if (shards == shards_.size()) shards_.emplace_back();
    shards_[shards].ps = slice.ps;
    shards_[shards].slice = number;
    shards_[shards].rows.clear();
    shards_[shards].places.clear();
    ++shards;
  }
  shards_.resize(shards);
  table.split = RowSplit(found->table.partition, found->shape[0], static_cast<int64_t>(shards));
  return table;
}

void RowClient::SumGradients(const Table& table, const RowsIn& gradients) {
  const auto width = static_cast<size_t>(table.spec->row_elements());
  const DType dtype = table.spec->dtype;
  const size_t sum_bytes = table.gradient_bytes;
  // Rows in the order of the shards, and within a shard in its own order.
  const auto shard_rows = static_cast<uint64_t>(table.split.RowsOf(0));
  const auto order = order_.Sort(gradients.indices.size(), shard_rows * shards_.size(), [&](size_t i) {
    const RowSplit::Place place = table.split.PlaceOf(gradients.indices[i]);
    return static_cast<uint64_t>(place.shard) * shard_rows + static_cast<uint64_t>(place.row);
  });
  if (gradients_.size() < order.size() * sum_bytes) gradients_.resize(order.size() * sum_bytes);
  gradient_rows_ = 0;
  size_t shard = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const std::byte* from = gradients.values.data() + order[i].place * table.row_bytes;
    if (i > 0 && order[i].key == order[i - 1].key) {
      AddGradient(dtype, MutableByteSpan(gradients_).subspan((gradient_rows_ - 1) * sum_bytes, sum_bytes),
                  {from, table.row_bytes});
      continue;
    }
    for (; shard < order[i].key / shard_rows; ++shard) shards_[shard + 1].first_gradient = gradient_rows_;
    CopyRow(dtype, from, gradients_.data() + gradient_rows_++ * sum_bytes, width);
    shards_[shard].rows.push_back(static_cast<int64_t>(order[i].key % shard_rows));
  }
  shards_[0].first_gradient = 0;
}

void RowClient::Address(const Table& table, const RowsOut& rows) {
  if (shards_.size() == 1) return shards_[0].rows.assign(rows.indices.begin(), rows.indices.end());
  for (size_t i = 0; i < rows.indices.size(); ++i) {
    const RowSplit::Place place = table.split.PlaceOf(rows.indices[i]);
    Shard& shard = shards_[place.shard];
    shard.rows.push_back(place.row);
    shard.places.push_back(static_cast<uint32_t>(i));
  }
}

double RowClient::Squares(const Table& table) const {
  const OptimizerSpec& optimizer = client_.binding().optimizer;
  if (optimizer.non_finite == NonFinite::kApply && optimizer.RuleFor(table.spec->name).clip.kind != ClipKind::kNorm)
    return 0;
  return SumOfSquares(SlotDType(table.spec->dtype), gradients(table));
}

absl::StatusOr<bool> RowClient::IsFinite(const Table& table, double squares) const {
  const NonFinite policy = client_.binding().optimizer.non_finite;
  if (policy == NonFinite::kApply || std::isfinite(squares)) return true;
  const std::string what =
      absl::StrCat("a gradient of rows of variable '", table.spec->name, "' has NaN, infinity or overflows");
  if (policy == NonFinite::kStop) return absl::InvalidArgumentError(absl::StrCat(what, " (NonFinite::kStop)"));
  LogWarning(what, ": dropped");
  return false;
}

StoreCall RowClient::MakeCall(StoreMethod method, const StoreNumbers& numbers, const Shard& shard, size_t first,
                              size_t end, RowsRequest request) const {
  request.stamp = client_.MakeStamp(shard.ps, numbers.sequence);
  request.slice = shard.slice;
  request.generation = numbers.generation;
  request.global_step = numbers.global_step;
  request.rows = end - first;
  StoreCall call{.ps = shard.ps, .method = method, .control = Encode(request)};
  if (end > first) call.bulk.push_back(AsBytes(shard.rows.data() + first, end - first));
  return call;
}

absl::Status RowClient::GatherDirect(DirectApply& direct, const RowsOut& rows) {
  const uint64_t generation = client_.NextNumbers().generation;
  for (const Shard& shard : shards_)
    if (!shard.rows.empty())
      RETURN_IF_ERROR(direct.GatherRows(shard.ps, static_cast<int>(shard.slice),
                                        {.rows = shard.rows, .places = shard.places, .generation = generation},
                                        rows.values));
  return absl::OkStatus();
}

absl::Status RowClient::PushDirect(DirectApply& direct, const Table& table, double scale) {
  const StoreNumbers numbers = client_.NextNumbers();
  for (const Shard& shard : shards_)
    RETURN_IF_ERROR(
        direct.PushRows(shard.ps, static_cast<int>(shard.slice),
                        {.sequence = numbers.sequence, .generation = numbers.generation, .scale = scale},
                        {shard.rows, gradients(table).data() + shard.first_gradient * table.gradient_bytes}));
  return absl::OkStatus();
}

absl::Status RowClient::Gather(const std::string& variable, const RowsOut& rows) {
  ASSIGN_OR_RETURN(const Table table, Open(variable, rows.indices, rows.dtype, rows.values.size()));
  Address(table, rows);
  ASSIGN_OR_RETURN(DirectApply * direct, client_.direct_->Use(/*changes=*/false));
  if (direct != nullptr) return GatherDirect(*direct, rows);
  const StoreNumbers numbers = client_.NextNumbers();
  std::vector<StoreCall> calls;
  for (Shard& shard : shards_) {
    if (shards_.size() > 1) shard.received.resize(shard.rows.size() * table.row_bytes);
    const MutableByteSpan into = shards_.size() == 1 ? rows.values : MutableByteSpan(shard.received);
    const size_t at_once = RowsAtOnce(shard.rows.size(), table.row_bytes);
    for (size_t first = 0; first < shard.rows.size(); first += at_once) {
      const size_t end = std::min(first + at_once, shard.rows.size());
      calls.push_back(MakeCall(StoreMethod::kGatherRows, numbers, shard, first, end, {}));
      calls.back().into = {into.subspan(first * table.row_bytes, (end - first) * table.row_bytes)};
    }
  }
  RETURN_IF_ERROR(client_.ps_calls().Ask(calls));
  if (shards_.size() == 1) return absl::OkStatus();
  for (const Shard& shard : shards_)
    for (size_t i = 0; i < shard.places.size(); ++i)
      std::memcpy(rows.values.data() + shard.places[i] * table.row_bytes, shard.received.data() + i * table.row_bytes,
                  table.row_bytes);
  return absl::OkStatus();
}

absl::StatusOr<bool> RowClient::Push(const std::string& variable, const RowsIn& rows) {
  ASSIGN_OR_RETURN(const Table table, Open(variable, rows.indices, rows.dtype, rows.values.size()));
  SumGradients(table, rows);
  const double squares = Squares(table);
  ASSIGN_OR_RETURN(const bool finite, IsFinite(table, squares));
  if (!finite) return false;
  const double scale = ClipScale(client_.binding().optimizer.RuleFor(variable).clip, squares);
  ASSIGN_OR_RETURN(DirectApply * direct, client_.direct_->Use(/*changes=*/true));
  if (direct != nullptr) {
    RETURN_IF_ERROR(PushDirect(*direct, table, scale));
    return true;
  }
  const StoreNumbers numbers = client_.NextNumbers();
  std::vector<StoreCall> calls;
  for (const Shard& shard : shards_) {
    // From the back, so that every ps gets the first stripe last: it counts the push.
    size_t end = shard.rows.size();
    bool last = false;
    while (!last) {
      const size_t first = BeginOfPiece(shard.rows, end, table.spec->row_elements(),
                                        RowsAtOnce(shard.rows.size(), table.gradient_bytes));
      last = first == 0;
      calls.push_back(MakeCall(StoreMethod::kPushRows, numbers, shard, first, end, {.scale = scale, .last = last}));
      if (end > first)
        calls.back().bulk.push_back(gradients(table).subspan((shard.first_gradient + first) * table.gradient_bytes,
                                                             (end - first) * table.gradient_bytes));
      end = first;
    }
  }
  RETURN_IF_ERROR(client_.ps_calls().Ask(calls));
  return true;
}

}  // namespace muster
