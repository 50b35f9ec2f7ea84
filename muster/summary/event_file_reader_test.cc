#include "muster/summary/event_file_reader.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/crc32c.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/summary/event_file_writer.h"
#include "muster/summary/summary_values.h"
#include "muster/summary/testing/plain_protobuf.h"

namespace muster::event_file_reader_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

std::string Checksum(const std::string& of) { return RawBytes(MaskedCrc32c(AsBytes(of.data(), of.size()))); }

// Frames a record as in docs/summary_format.md.
std::string Record(const std::string& event) {
  const std::string length = RawBytes(uint64_t{event.size()});
  return absl::StrCat(length, Checksum(length), event, Checksum(event));
}

std::string Version() { return Record(DoubleField(1, 1.5) + BytesField(3, "brain.Event:2")); }

std::string Event(int64_t step, const std::string& summary) {
  return DoubleField(1, 1000.5) + NumberField(2, static_cast<uint64_t>(step)) + BytesField(5, summary);
}

std::string ScalarEvent(int64_t step, float value) {
  return Record(Event(step, BytesField(1, BytesField(1, "loss") + FloatField(2, value))));
}

// A value as TensorFlow 2 writes it, with the metadata that names the plugin.
std::string TensorEvent(const std::string& tensor) {
  const std::string metadata = BytesField(1, BytesField(1, "scalars"));
  return Record(Event(3, BytesField(1, BytesField(1, "loss") + BytesField(9, metadata) + BytesField(8, tensor))));
}

std::vector<std::string> Texts(const std::string& file) {
  std::vector<std::string> texts;
  for (const SummaryEvent& event : ReadEventFile(file)) texts.push_back(event.ToString());
  return texts;
}

TEST(EventFileReader, ReadsWhatTheWriterWrites) {
  MemoryFileSystem files;
  SimulatedClock clock(absl::FromUnixMillis(1700000000500));
  auto writer = EventFileWriter::Open(files, clock, "logs", {}).value();
  const std::vector<ScalarSummary> scalars = {{"loss", 0.5F}, {"accuracy", 0.25F}};
  ASSERT_TRUE(writer->AddSessionLog(SessionStatus::kStart, 7).ok());
  ASSERT_TRUE(writer->AddScalars(scalars, 7).ok());
  ValueHistogram histogram;
  histogram.num = 4;
  ASSERT_TRUE(writer->AddHistogram("weights", histogram, 8).ok());
  ASSERT_TRUE(writer->AddGraph("graph", 8).ok());
  ASSERT_TRUE(writer->AddSessionLog(SessionStatus::kCheckpoint, 9, "model.ckpt-9").ok());
  ASSERT_TRUE(writer->Close().ok());
  std::vector<std::string> texts;
  for (const SummaryEvent& event : ReadEventFiles(files, "logs")) texts.push_back(event.ToString());
  EXPECT_THAT(texts, ElementsAre("7: START", "7: loss=0.5 accuracy=0.25", "8: weights of 4",
                                 "8:", "9: CHECKPOINT model.ckpt-9"));
  EXPECT_EQ(ReadEventFiles(files, "logs")[1].wall_time, 1700000000.5);
  EXPECT_THAT(ReadEventFiles(files, "elsewhere"), IsEmpty());
}

TEST(EventFileReader, TheVersionIsNoEvent) {
  EXPECT_THAT(Texts(Version()), IsEmpty());
  EXPECT_THAT(Texts(Version() + ScalarEvent(1, 2)), ElementsAre("1: loss=2"));
}

TEST(EventFileReader, TensorsWithoutDimensionsAreScalars) {
  const std::string is_float = NumberField(1, 1), is_double = NumberField(1, 2), no_dimensions = BytesField(2, "");
  EXPECT_THAT(Texts(TensorEvent(is_float + no_dimensions + BytesField(4, RawBytes(0.5F)))), ElementsAre("3: loss=0.5"));
  EXPECT_THAT(Texts(TensorEvent(is_float + no_dimensions + FloatField(5, 0.5F))), ElementsAre("3: loss=0.5"));
  EXPECT_THAT(Texts(TensorEvent(is_float + BytesField(5, RawBytes(0.5F)))), ElementsAre("3: loss=0.5"));
  EXPECT_THAT(Texts(TensorEvent(is_double + BytesField(4, RawBytes(0.25)))), ElementsAre("3: loss=0.25"));
  EXPECT_THAT(Texts(TensorEvent(is_double + DoubleField(6, 0.25))), ElementsAre("3: loss=0.25"));
  EXPECT_THAT(Texts(TensorEvent(is_double + PackedDoubles(6, {0.25}))), ElementsAre("3: loss=0.25"));
}

TEST(EventFileReader, OtherTensorsAreNone) {
  const std::string one_of_one = BytesField(2, BytesField(2, NumberField(1, 1)));
  EXPECT_THAT(Texts(TensorEvent(NumberField(1, 1) + one_of_one + FloatField(5, 0.5F))), ElementsAre("3:"));
  EXPECT_THAT(Texts(TensorEvent(NumberField(1, 7) + BytesField(8, "a text"))), ElementsAre("3:"));
  EXPECT_THAT(Texts(TensorEvent(NumberField(1, 1) + BytesField(4, "abc"))), ElementsAre("3:"));
  EXPECT_THAT(Texts(TensorEvent(NumberField(1, 2) + PackedDoubles(6, {1, 2}))), ElementsAre("3:"));
  std::string text;
  AppendText(text, "notes", "words");
  EXPECT_THAT(Texts(Record(Event(3, text))), ElementsAre("3:"));
}

TEST(EventFileReader, AFileIsReadAsFarAsItIsWhole) {
  const std::string whole = Version() + ScalarEvent(1, 1);
  const std::string last = ScalarEvent(2, 2);
  for (size_t bytes = 0; bytes < last.size(); ++bytes)
    EXPECT_THAT(Texts(whole + last.substr(0, bytes)), ElementsAre("1: loss=1")) << "cut after " << bytes;
  for (size_t at = 0; at < last.size(); ++at) {
    std::string damaged = last;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THAT(Texts(whole + damaged + ScalarEvent(3, 3)), ElementsAre("1: loss=1")) << "damaged at " << at;
  }
  EXPECT_THAT(Texts(whole + Record("no protobuf \xff\xff") + ScalarEvent(3, 3)), ElementsAre("1: loss=1"));
  EXPECT_THAT(Texts(""), IsEmpty());
  const std::string length = RawBytes(~uint64_t{0});
  EXPECT_THAT(Texts(whole + length + Checksum(length)), ElementsAre("1: loss=1")) << "a length beyond any file";
}

TEST(EventFileReader, FieldsOfAnotherTypeArePassedOver) {
  const std::string strange = NumberField(1, 5) + DoubleField(2, 1) + NumberField(5, 1) + NumberField(7, 1) +
                              BytesField(99, "later") + NumberField(2, 4);
  EXPECT_THAT(Texts(Record(strange)), ElementsAre("4:"));
}

TEST(EventFileReader, LargeFilesAreReadInPieces) {
  MemoryFileSystem files;
  std::string file = Version();
  std::string image = BytesField(1, BytesField(1, "image") + BytesField(4, BytesField(4, std::string(5 << 20, 'x'))));
  for (int64_t step = 1; step <= 3; ++step) absl::StrAppend(&file, Record(Event(step, image)), ScalarEvent(step, 0.5F));
  ASSERT_TRUE(files.CreateDirectory("logs").ok());
  const auto read = [&files](const std::string& content) {
    EXPECT_TRUE(files.WriteFile("logs/events.out.tfevents.1", content).ok());
    std::vector<std::string> texts;
    EXPECT_EQ(ReadEventFile(files, "logs/events.out.tfevents.1",
                            [&texts](const SummaryEvent& event) { texts.push_back(event.ToString()); }),
              absl::OkStatus());
    return texts;
  };
  EXPECT_THAT(read(file), ElementsAre("1:", "1: loss=0.5", "2:", "2: loss=0.5", "3:", "3: loss=0.5"));
  EXPECT_THAT(read(file.substr(0, file.size() - 1)), ElementsAre("1:", "1: loss=0.5", "2:", "2: loss=0.5", "3:"));
  EXPECT_THAT(read(file.substr(0, 6 << 20)), ElementsAre("1:", "1: loss=0.5")) << "cut in the second image";
  EXPECT_THAT(read(""), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(ReadEventFile(files, "logs/none", [](const SummaryEvent&) {})));
}

}  // namespace
}  // namespace muster::event_file_reader_test
