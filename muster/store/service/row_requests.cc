#include "muster/store/service/row_requests.h"

#include <span>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena/arena_rows.h"

namespace muster {
namespace {

// The limit of one reply, so that a request of a few bytes a row can't take all memory.
constexpr uint64_t kMaxGatheredBytes = uint64_t{1} << 30;

absl::Status RowError(const StoreModel& model, const PlacedSlice& slice, int64_t row, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("row ", row, " of shard ", slice.shard, " of variable '",
                                                 model.variable(slice).name, "' ", what, ": the shard has ",
                                                 slice.shape[0], " rows"));
}

std::span<const int64_t> NumbersIn(const RowsRequest& request, ByteSpan bulk) {
  return {reinterpret_cast<const int64_t*>(bulk.data()), request.rows};
}

absl::Status CheckNumbers(const StoreModel& model, const PlacedSlice& slice, std::span<const int64_t> rows) {
  for (const int64_t row : rows)
    if (row < 0 || row >= slice.shape[0]) return RowError(model, slice, row, "is out of range");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRowsRequest(const StoreModel& model, StoreMethod method, const RowsRequest& request,
                              size_t bulk_bytes) {
  if (request.slice >= model.slices.size())
    return absl::InvalidArgumentError(
        absl::StrCat("a request for rows names slice ", request.slice, " of ", model.slices.size()));
  const VariableSpec& variable = model.variable(model.slices[request.slice]);
  if (variable.kind != VariableKind::kRows)
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", variable.name, "' is no table of rows: it is pulled and pushed as a whole"));
  const bool push = method == StoreMethod::kPushRows;
  const uint64_t gradient_bytes = push ? variable.row_elements() * DTypeSize(SlotDType(variable.dtype)) : 0;
  const uint64_t bytes_per_row = sizeof(int64_t) + gradient_bytes;
  // Divided, because the product may be too large for 64 bits.
  if (request.rows > bulk_bytes / bytes_per_row || request.rows * bytes_per_row != bulk_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat(push ? "a push" : "a look-up", " of ", request.rows, " rows of variable '", variable.name, "' ",
                     DescribeType(variable), " (", bytes_per_row, " bytes each) came with ", bulk_bytes, " bytes"));
  if (!push && request.rows > kMaxGatheredBytes / (variable.row_elements() * DTypeSize(variable.dtype)))
    return absl::InvalidArgumentError(absl::StrCat("a look-up of ", request.rows, " rows of variable '", variable.name,
                                                   "' ", DescribeType(variable),
                                                   " has more than 1 GiB; ask for fewer rows at once"));
  return absl::OkStatus();
}

size_t GatheredBytes(const StoreModel& model, const RowsRequest& request) {
  const VariableSpec& variable = model.variable(model.slices[request.slice]);
  return request.rows * variable.row_elements() * DTypeSize(variable.dtype);
}

absl::Status GatherRows(Arena& arena, const RowsRequest& request, ByteSpan bulk, MutableByteSpan into) {
  const std::span<const int64_t> rows = NumbersIn(request, bulk);
  RETURN_IF_ERROR(CheckNumbers(arena.model(), arena.model().slices[request.slice], rows));
  ArenaRows(arena).Gather(static_cast<int>(request.slice), {.rows = rows, .places = {}}, into);
  return absl::OkStatus();
}

absl::Status PushRows(Arena& arena, const RowsRequest& request, double learning_rate, ByteSpan bulk) {
  const StoreModel& model = arena.model();
  const PlacedSlice& slice = model.slices[request.slice];
  const std::span<const int64_t> rows = NumbersIn(request, bulk);
  RETURN_IF_ERROR(CheckNumbers(model, slice, rows));
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i] <= rows[i - 1]) return RowError(model, slice, rows[i], "is not in ascending order");
  if (!request.last && !rows.empty() && rows[0] * model.variable(slice).row_elements() < kStripeElements)
    return RowError(model, slice, rows[0], "may only come in the last request of a push");
  const ArenaPush push = {.client = static_cast<int>(request.stamp.client),
                          .sequence = request.stamp.sequence,
                          .generation = request.generation,
                          .learning_rate = learning_rate,
                          .gradient_scale = request.scale};
  // The generation can't change meanwhile: only this process loads values, on this loop.
  MUSTER_CHECK(ArenaRows(arena).Push(static_cast<int>(request.slice), push,
                                     {rows, bulk.data() + rows.size_bytes(), request.last}));
  return absl::OkStatus();
}

}  // namespace muster
