#include "muster/base/dtype.h"

#include <gmock/gmock.h>

namespace muster::dtype_test {
namespace {

using ::testing::HasSubstr;

struct Case {
  DType dtype;
  int number;
  const char* name;
  size_t size;
  bool floating;
};

// The numbers are on the wire and the names are in files: changing one breaks data that is already written.
constexpr Case kCases[] = {{DType::kFloat32, 1, "float32", 4, true}, {DType::kFloat64, 2, "float64", 8, true},
                           {DType::kFloat16, 3, "float16", 2, true}, {DType::kBFloat16, 4, "bfloat16", 2, true},
                           {DType::kInt64, 5, "int64", 8, false},    {DType::kUInt8, 6, "uint8", 1, false},
                           {DType::kInt32, 7, "int32", 4, false},    {DType::kBool, 8, "bool", 1, false}};

TEST(DTypeTest, NumbersNamesAndSizes) {
  for (const Case& c : kCases) {
    EXPECT_EQ(static_cast<int>(c.dtype), c.number);
    EXPECT_EQ(DTypeName(c.dtype), c.name);
    EXPECT_EQ(DTypeSize(c.dtype), c.size);
    EXPECT_EQ(IsFloatingPoint(c.dtype), c.floating);
    ASSERT_TRUE(ParseDType(c.name).ok());
    EXPECT_EQ(*ParseDType(c.name), c.dtype);
  }
}

TEST(DTypeTest, AnUnknownNameIsNamedWithWhatIsAccepted) {
  const absl::Status status = ParseDType("float8").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'float8'; accepted: float32, float64"));
  EXPECT_FALSE(ParseDType("").ok());
  EXPECT_FALSE(ParseDType("Float32").ok());
}

}  // namespace
}  // namespace muster::dtype_test
