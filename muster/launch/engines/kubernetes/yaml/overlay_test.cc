#include "muster/launch/engines/kubernetes/yaml/overlay.h"

#include <gtest/gtest.h>

namespace muster::overlay_test {
namespace {

OrderedJson Merged(const char* into, const char* overlay) {
  OrderedJson merged = OrderedJson::parse(into);
  MergeOverlay(merged, OrderedJson::parse(overlay));
  return merged;
}

TEST(OverlayTest, MapsAreMergedAndNullTakesAway) {
  EXPECT_EQ(Merged(R"({"a": {"x": 1, "y": 2}, "b": 3})", R"({"a": {"y": null, "z": {"w": 4}}, "b": [5]})").dump(),
            R"({"a":{"x":1,"z":{"w":4}},"b":[5]})");
}

TEST(OverlayTest, ListsOfNamedMapsAreMergedByName) {
  EXPECT_EQ(
      Merged(R"([{"name": "muster", "image": "a"}])", R"([{"name": "muster", "tty": true}, {"name": "b"}])").dump(),
      R"([{"name":"muster","image":"a","tty":true},{"name":"b"}])");
  EXPECT_EQ(Merged(R"([{"name": "v", "mountPath": "/a"}])", R"([{"name": "v", "mountPath": "/b"}])").dump(),
            R"([{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/b"}])")
      << "one volume may be mounted twice";
}

TEST(OverlayTest, OtherListsTakeThePlace) {
  EXPECT_EQ(Merged(R"(["a", "b"])", R"(["c"])").dump(), R"(["c"])");
  EXPECT_EQ(Merged(R"([{"key": "a"}])", R"([{"key": "b"}])").dump(), R"([{"key":"b"}])");
  EXPECT_EQ(Merged(R"([])", R"([{"name": "b"}])").dump(), R"([{"name":"b"}])");
}

}  // namespace
}  // namespace muster::overlay_test
