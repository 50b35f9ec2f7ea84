#include "muster/checkpoint/safetensors_file.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/base/crc32c.h"
#include "muster/base/files/memory_file_system.h"

namespace muster::safetensors_file_test {
namespace {

using ::testing::HasSubstr;

ByteSpan Bytes(const std::string& text) { return AsBytes(text.data(), text.size()); }

std::string File(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&length), 8), header, data);
}

class TensorFileTest : public ::testing::Test {
 protected:
  TensorFileTest() { EXPECT_TRUE(files_.CreateDirectory("d").ok()); }

  absl::Status Open(const std::string& content) {
    EXPECT_TRUE(files_.WriteFile(kPath, content).ok());
    return TensorFileReader::Open(files_, kPath).status();
  }
  // Returns the message for a file that must be refused as damaged.
  std::string Refusal(const std::string& content) {
    const absl::Status status = Open(content);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kPath));
    return std::string(status.message());
  }

  static constexpr char kPath[] = "d/a.safetensors";
  MemoryFileSystem files_;
};

TEST_F(TensorFileTest, WritesTheBytesOfTheFormat) {
  const float w[] = {1, 2};
  const int64_t t = 7;
  const TensorView tensors[] = {{"w", DType::kFloat32, {2}, AsBytes(w, 2)}, {"t", DType::kInt64, {}, AsBytes(&t, 1)}};
  const auto summary = WriteTensorFile(files_, kPath, tensors, {{"who", "me"}}).value();
  std::string header =
      "{\"__metadata__\":{\"who\":\"me\"},\"t\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}";
  while (header.size() % 8 != 0) header += ' ';
  const std::string data =
      std::string(reinterpret_cast<const char*>(&t), 8) + std::string(reinterpret_cast<const char*>(w), 8);
  const std::string content = *files_.ReadFile(kPath);
  EXPECT_EQ(content, File(header, data));
  EXPECT_EQ(summary.bytes, content.size());
  EXPECT_EQ(summary.crc32c, Crc32c(Bytes(content)));
}

TEST_F(TensorFileTest, EveryTypeAndShapeComesBack) {
  std::vector<std::string> bytes;
  std::vector<TensorView> tensors;
  const std::vector<std::vector<int64_t>> shapes = {{}, {0}, {3}, {2, 1, 3}, {0, 5}};
  for (const DType dtype : {DType::kBool, DType::kUInt8, DType::kFloat16, DType::kBFloat16, DType::kInt32,
                            DType::kFloat32, DType::kFloat64, DType::kInt64}) {
    for (const auto& shape : shapes) {
      const size_t size = *ElementCount(shape) * DTypeSize(dtype);
      bytes.emplace_back(size, static_cast<char>(bytes.size() + 1));
      tensors.push_back({absl::StrCat("t", tensors.size()), dtype, shape, {}});
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = Bytes(bytes[i]);
  const auto summary = WriteTensorFile(files_, kPath, tensors).value();
  auto reader = TensorFileReader::Open(files_, kPath).value();
  EXPECT_EQ(reader->tensors().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo* info = reader->Find(tensors[i].name);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->dtype, tensors[i].dtype);
    EXPECT_EQ(info->shape, tensors[i].shape);
    EXPECT_EQ(info->offset % DTypeSize(info->dtype), 0u) << "not aligned: " << info->name;
    std::string content(info->bytes, '\0');
    ASSERT_TRUE(reader->Read(info->name, AsMutableBytes(content.data(), content.size())).ok());
    EXPECT_EQ(content, bytes[i]);
  }
  EXPECT_TRUE(reader->Verify(summary.crc32c).ok());
  EXPECT_TRUE(absl::IsDataLoss(reader->Verify(summary.crc32c + 1)));
}

TEST_F(TensorFileTest, PiecesOfAnySizeGiveTheSameFile) {
  const std::string a = "0123456789ab", b = "xyz";
  const TensorView tensors[] = {{"a", DType::kFloat32, {3}, Bytes(a)}, {"b", DType::kUInt8, {3}, Bytes(b)}};
  const auto whole = WriteTensorFile(files_, kPath, tensors, {{"k", "v"}}).value();
  const std::string data = a + b;
  for (size_t piece = 1; piece <= data.size(); ++piece) {
    auto writer = TensorFileWriter::Create(files_, "d/pieces", {{"b", DType::kUInt8, {3}}, {"a", DType::kFloat32, {3}}},
                                           {{"k", "v"}})
                      .value();
    EXPECT_EQ(writer->tensors()[0].name, "a");
    for (size_t i = 0; i < data.size(); i += piece) ASSERT_TRUE(writer->Append(Bytes(data.substr(i, piece))).ok());
    const auto summary = writer->Finish().value();
    EXPECT_EQ(summary.crc32c, whole.crc32c);
    EXPECT_EQ(*files_.ReadFile("d/pieces"), *files_.ReadFile(kPath));
  }
}

TEST_F(TensorFileTest, TheWriterRefusesTooMuchTooLittleAndBadNames) {
  auto writer = TensorFileWriter::Create(files_, kPath, {{"a", DType::kUInt8, {3}}}).value();
  ASSERT_TRUE(writer->Append(Bytes("12")).ok());
  EXPECT_TRUE(absl::IsOutOfRange(writer->Append(Bytes("34"))));
  EXPECT_TRUE(absl::IsFailedPrecondition(writer->Finish().status()));
  const auto refusal = [&](std::vector<TensorSpec> tensors) {
    return std::string(TensorFileWriter::Create(files_, kPath, std::move(tensors)).status().message());
  };
  EXPECT_THAT(refusal({{"a"}, {"a", DType::kInt64}}), HasSubstr("two tensors are called a"));
  EXPECT_THAT(refusal({{""}}), HasSubstr("can't have the name ''"));
  EXPECT_THAT(refusal({{"__metadata__"}}), HasSubstr("can't have the name '__metadata__'"));
  EXPECT_THAT(refusal({{"a\xff"}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal({{"a", DType::kFloat32, {2, -1}}}), HasSubstr("extent -1 is negative"));
  EXPECT_THAT(refusal({{"a", DType::kFloat32, {1 << 30, 1 << 30}}}), HasSubstr("more than 2^59 elements"));
  const std::string bytes = "1234";
  const TensorView wrong[] = {{"a", DType::kFloat32, {2}, Bytes(bytes)}};
  EXPECT_THAT(std::string(WriteTensorFile(files_, kPath, wrong).status().message()),
              HasSubstr("tensor a has 4 bytes for shape [2]"));
}

TEST_F(TensorFileTest, AFullDiskAndAFailedSyncAreErrors) {
  const std::string bytes(100, 'x');
  const TensorView tensors[] = {{"a", DType::kUInt8, {100}, Bytes(bytes)}};
  for (const uint64_t room : {0, 7, 8, 20, 150}) {
    files_.FillAfter(room);
    EXPECT_TRUE(absl::IsResourceExhausted(WriteTensorFile(files_, kPath, tensors).status())) << room;
    EXPECT_FALSE(TensorFileReader::Open(files_, kPath).ok()) << room;
  }
  files_.Unfill();
  files_.FailSync(1);
  EXPECT_TRUE(absl::IsUnavailable(WriteTensorFile(files_, kPath, tensors).status()));
  EXPECT_TRUE(absl::IsNotFound(WriteTensorFile(files_, "nowhere/a", tensors).status()));
}

TEST_F(TensorFileTest, ReadsPartsOfATensorAndRefusesWhatIsNotThere) {
  const std::string bytes = "0123456789";
  const TensorView tensors[] = {{"a", DType::kUInt8, {10}, Bytes(bytes)}};
  ASSERT_TRUE(WriteTensorFile(files_, kPath, tensors).ok());
  auto reader = TensorFileReader::Open(files_, kPath).value();
  std::string part(4, '\0');
  const MutableByteSpan into = AsMutableBytes(part.data(), part.size());
  EXPECT_TRUE(reader->ReadRange("a", 3, into).ok());
  EXPECT_EQ(part, "3456");
  EXPECT_TRUE(reader->ReadRange("a", 6, into).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(reader->ReadRange("a", 7, into)));
  EXPECT_TRUE(absl::IsInvalidArgument(reader->ReadRange("a", ~uint64_t{0}, into)));
  EXPECT_TRUE(absl::IsInvalidArgument(reader->Read("a", into)));
  EXPECT_TRUE(absl::IsNotFound(reader->Read("b", into)));
  ASSERT_TRUE(files_.Truncate(kPath, 70).ok());
  EXPECT_TRUE(absl::IsDataLoss(reader->ReadRange("a", 6, into)));
}

TEST_F(TensorFileTest, RefusesDamagedHeaders) {
  const std::string ok = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  EXPECT_TRUE(Open(File(ok, "xy")).ok());
  EXPECT_TRUE(Open(File(ok + "     ", "xy")).ok());
  EXPECT_TRUE(Open(File("{}", "")).ok());
  EXPECT_THAT(Refusal(""), HasSubstr("only 0 bytes"));
  EXPECT_THAT(Refusal("1234567"), HasSubstr("only 7 bytes"));
  EXPECT_THAT(Refusal(File(ok, "xy").substr(0, 20)), HasSubstr("a header of 53 bytes in a file of 20"));
  EXPECT_THAT(Refusal(std::string(8, '\xff')), HasSubstr("a header of 18446744073709551615"));
  EXPECT_THAT(Refusal(File("", "")), HasSubstr("doesn't begin with {"));
  EXPECT_THAT(Refusal(File(" {}", "")), HasSubstr("doesn't begin with {"));
  EXPECT_THAT(Refusal(File("{", "")), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal(File("{}x", "")), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal(File(ok, "xyz")), HasSubstr("its tensors have 2 bytes, the file has 3"));
  EXPECT_THAT(Refusal(File(ok, "x")), HasSubstr("its tensors have 2 bytes, the file has 1"));
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                           "xy")),
              HasSubstr("key 'a' is given twice"));
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xy")),
              HasSubstr("key 'dtype' is given twice"));
  EXPECT_THAT(Refusal(File(R"({"__metadata__":{"a":1}})", "")), HasSubstr("__metadata__ 'a' isn't a string"));
  EXPECT_THAT(Refusal(File(R"({"__metadata__":[]})", "")), HasSubstr("__metadata__ isn't an object"));
  EXPECT_THAT(Refusal(File(R"({"a":[[[[[]]]]]})", "")), HasSubstr("nested deeper"));
  EXPECT_THAT(Refusal(File("{\"\xff\":1}", "")), HasSubstr("not JSON"));
}

TEST_F(TensorFileTest, RefusesTensorsThatContradictThemselvesOrEachOther) {
  const auto tensor = [](const std::string& fields) { return absl::StrCat("{\"a\":{", fields, "}}"); };
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":[2])"), "xy")), HasSubstr("needs dtype, shape and data_"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":8,"shape":[2],"data_offsets":[0,2])"), "xy")), HasSubstr("dtype isn't"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":2,"data_offsets":[0,2])"), "xy")), HasSubstr("shape isn't"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":[-2],"data_offsets":[0,2])"), "xy")), HasSubstr("extent -2"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":[2.0],"data_offsets":[0,2])"), "xy")), HasSubstr("extent 2"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":[3],"data_offsets":[0,2])"), "xy")),
              HasSubstr("its shape [3] is not of 2 bytes"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[2,0])"), "xy")), HasSubstr("[2,0]"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[0,2,2])"), "xy")), HasSubstr("[0,2,2]"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[1,3])"), "xyz")),
              HasSubstr("begins at 1 of the data, where 0 is next"));
  EXPECT_THAT(Refusal(File(tensor(R"("dtype":"U8","shape":[576460752303423488,576460752303423488],)"
                                  R"("data_offsets":[0,0])"),
                           "")),
              HasSubstr("more than 2^59 elements"));
  EXPECT_THAT(Refusal(File(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                           R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                           "xyz")),
              HasSubstr("tensor 'b' begins at 1 of the data, where 2 is next"));
  const absl::Status unknown = Open(File(tensor(R"("dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2])"), "xy"));
  EXPECT_TRUE(absl::IsUnimplemented(unknown));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("tensor 'a': element type 'F8_E4M3'; muster knows I64, F64"));
}

TEST_F(TensorFileTest, AnyDamagedByteIsFoundAndNoneCrashes) {
  const std::string bytes = "0123456789ab";
  const TensorView tensors[] = {{"a", DType::kFloat32, {3}, Bytes(bytes)}, {"b", DType::kUInt8, {12}, Bytes(bytes)}};
  const auto summary = WriteTensorFile(files_, kPath, tensors, {{"k", "v"}}).value();
  const std::string good = *files_.ReadFile(kPath);
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int mask : {0x01, 0x10, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ mask);
      ASSERT_TRUE(files_.WriteFile(kPath, bad).ok());
      auto reader = TensorFileReader::Open(files_, kPath);
      EXPECT_FALSE(reader.ok() && (*reader)->Verify(summary.crc32c).ok()) << at;
    }
    ASSERT_TRUE(files_.WriteFile(kPath, good.substr(0, at)).ok());
    EXPECT_TRUE(absl::IsDataLoss(TensorFileReader::Open(files_, kPath).status())) << "cut at " << at;
  }
}

}  // namespace
}  // namespace muster::safetensors_file_test
