#include "wire/request.h"

#include <gtest/gtest.h>

namespace hvd::wire {
namespace {

Request with_names(const std::vector<std::string>& names) {
  Request request;
  for (const std::string& name : names) request.tensors.push_back({.name = name});
  return request;
}

TEST(Request, KindNamesFollowThePublicCodes) {
  const struct {
    int code;
    const char* upper;
    const char* lower;
  } cases[kKindCount] = {
      {0, "ALLREDUCE", "allreduce"},
      {1, "ALLGATHER", "allgather"},
      {2, "BROADCAST", "broadcast"},
      {3, "JOIN", "join"},
      {4, "ADASUM", "adasum"},
      {5, "ALLTOALL", "alltoall"},
      {6, "BARRIER", "barrier"},
      {7, "REDUCESCATTER", "reducescatter"},
      {8, "PROCESS_SET_ADD", "process_set_add"},
      {9, "PROCESS_SET_REMOVE", "process_set_remove"},
  };

  for (const auto& c : cases) {
    EXPECT_EQ(kind_name(static_cast<Kind>(c.code)), c.upper);
    EXPECT_EQ(kind_lower_name(static_cast<Kind>(c.code)), c.lower);
  }
}

TEST(Request, ShapeTextListsDimensions) {
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text({5}), "[5]");
  EXPECT_EQ(shape_text({2, 0, -3}), "[2, 0, -3]");
}

TEST(Request, ElementCountIsTheProductOfTheShape) {
  TensorSpec tensor{.name = "", .dtype = DType::kFloat64, .shape = {}};
  EXPECT_EQ(tensor.element_count(), 1u);
  tensor.shape = {4, 0, 7};
  EXPECT_EQ(tensor.element_count(), 0u);
  tensor.shape = {4, 5, 1 << 20};
  EXPECT_EQ(tensor.element_count(), 20u << 20);
  EXPECT_EQ(tensor.bytes(), 160u << 20);
}

TEST(Request, DisplayNameTellsTensorsGroupsAndUnnamedApart) {
  const struct {
    std::vector<std::string> names;
    const char* expected;
  } cases[] = {
      {{"fc1.grad"}, "'fc1.grad'"},
      {{""}, "'allreduce.noname.7'"},
      {{}, "#7"},
      {{"a", "b"}, "group ['a', 'b'] (2)"},
      {{"a", "b", "c", "d"}, "group ['a', 'b', ...] (4)"},
      {{"", ""}, "group 'allreduce.noname.7' (2)"},
      {{"", "b"}, "group ['', 'b'] (2)"},
  };

  for (const auto& c : cases) EXPECT_EQ(display_name(with_names(c.names), 7), c.expected);
}

TEST(Request, DisplayNameShortensVeryLongNames) {
  const std::string shown = display_name(with_names({std::string(5000, 'x')}), 0);

  EXPECT_EQ(shown, "'" + std::string(256, 'x') + "...'");
}

}  // namespace
}  // namespace hvd::wire
