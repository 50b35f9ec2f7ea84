// Tests our tensor files against the Python package safetensors, whose format they claim to have.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/safetensors_file.h"

namespace muster::safetensors_python_test {
namespace {

const std::string kPython = SourceFolder() + "/.venv/bin/python";

class SafetensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system((kPython + " -c 'import safetensors.numpy, numpy' 2>/dev/null").c_str()) != 0)
      GTEST_SKIP() << kPython << " doesn't have safetensors and numpy: './dev setup' installs them";
  }
  std::string Path(const std::string& name) { return scratch_ / name; }
  // Runs `script` in the directory; the script itself asserts.
  void Python(const std::string& script) {
    const std::string file = Path("script.py");
    const std::string text = "import numpy as np, safetensors, safetensors.numpy as st\n" + script;
    ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), file, AsBytes(text.data(), text.size())).ok());
    EXPECT_EQ(std::system(("cd " + scratch_.path() + " && " + kPython + " script.py").c_str()), 0) << text;
  }

  const ScratchFolder scratch_;
};

TEST_F(SafetensorsTest, PythonReadsOursAndWritesTheSameBytes) {
  const float w[] = {0.5f, -1, 2, 3, 4, 5};
  const double d[] = {1e300};
  const int64_t t[] = {-7, 8};
  const int32_t i[] = {9};
  const uint8_t u[] = {1, 2, 3};
  const uint8_t b[] = {1, 0};
  const uint16_t h[] = {0x3c00};  // 1.0 as float16
  const TensorView tensors[] = {{"conv/weight", DType::kFloat32, {2, 3}, AsBytes(w, 6)},
                                {"d", DType::kFloat64, {}, AsBytes(d, 1)},
                                {"t", DType::kInt64, {2}, AsBytes(t, 2)},
                                {"i \"quoted\" \xc3\xa4", DType::kInt32, {1}, AsBytes(i, 1)},
                                {"u", DType::kUInt8, {3, 1}, AsBytes(u, 3)},
                                {"b", DType::kBool, {2}, AsBytes(b, 2)},
                                {"h", DType::kFloat16, {1}, AsBytes(h, 1)},
                                {"empty", DType::kFloat32, {0, 4}, {}}};
  ASSERT_TRUE(WriteTensorFile(PosixFileSystem(), Path("ours"), tensors, {{"format", "np"}}).ok());
  Python(R"(
read = st.load_file('ours')
assert sorted(read) == sorted(['conv/weight', 'd', 't', 'i "quoted" ä', 'u', 'b', 'h', 'empty']), sorted(read)
assert read['conv/weight'].dtype == np.float32 and read['conv/weight'].tolist() == [[.5, -1, 2], [3, 4, 5]]
assert read['d'].dtype == np.float64 and read['d'].shape == () and read['d'] == 1e300
assert read['t'].dtype == np.int64 and read['t'].tolist() == [-7, 8]
assert read['i "quoted" ä'].dtype == np.int32 and read['u'].tolist() == [[1], [2], [3]]
assert read['b'].dtype == np.bool_ and read['b'].tolist() == [True, False]
assert read['h'].dtype == np.float16 and read['h'].tolist() == [1.0]
assert read['empty'].shape == (0, 4)
with safetensors.safe_open('ours', framework='np') as f: assert f.metadata() == {'format': 'np'}, f.metadata()
assert st.save(read, {'format': 'np'}) == open('ours', 'rb').read()
)");
}

TEST_F(SafetensorsTest, WeReadWhatPythonWrites) {
  Python(R"(
st.save_file({'w': np.arange(6, dtype=np.float32).reshape(2, 3), 's': np.array(5, dtype=np.int64),
              'mask': np.array([True, False]), 'none': np.zeros((3, 0), np.float64)}, 'theirs', {'step': '100', 'b': 'ü'})
)");
  auto reader = TensorFileReader::Open(PosixFileSystem(), Path("theirs")).value();
  EXPECT_EQ(reader->metadata(), (TensorFileMetadata{{"step", "100"}, {"b", "\xc3\xbc"}}));
  EXPECT_EQ(reader->tensors().size(), 4u);
  std::vector<float> w(6);
  ASSERT_TRUE(reader->Read("w", AsMutableBytes(w.data(), 6)).ok());
  EXPECT_EQ(w, (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(reader->Find("w")->shape, (std::vector<int64_t>{2, 3}));
  int64_t s = 0;
  ASSERT_TRUE(reader->Read("s", AsMutableBytes(&s, 1)).ok());
  EXPECT_EQ(s, 5);
  EXPECT_EQ(reader->Find("mask")->dtype, DType::kBool);
  EXPECT_EQ(reader->Find("none")->shape, (std::vector<int64_t>{3, 0}));
}

}  // namespace
}  // namespace muster::safetensors_python_test
