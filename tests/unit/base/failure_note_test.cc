#include "base/failure_note.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "base/text.h"

namespace hvd {
namespace {

const FailureNote kNote{.rank = 3, .code = StatusCode::kPeerLost, .text = "rank 3 has ended"};

TEST(FailureNote, IsReadAsItWasWritten) {
  const UniqueFd file = *make_failure_note();

  EXPECT_EQ(read_failure_note(file.get()), std::nullopt);
  FailureNoteWriter(failure_note_place(file.get())).write(kNote);

  EXPECT_EQ(read_failure_note(file.get()), kNote);
}

TEST(FailureNote, TheLastOneCountsUntilItIsCleared) {
  const UniqueFd file = *make_failure_note();
  const FailureNoteWriter writer(failure_note_place(file.get()));
  writer.write({.rank = 1, .code = StatusCode::kStalled, .text = "a text that is longer"});

  writer.write(kNote);
  EXPECT_EQ(read_failure_note(file.get()), kNote);
  writer.clear();
  EXPECT_EQ(read_failure_note(file.get()), std::nullopt);
}

TEST(FailureNote, ALongTextIsCut) {
  const UniqueFd file = *make_failure_note();

  FailureNoteWriter(failure_note_place(file.get()))
      .write({.rank = 0, .code = StatusCode::kCorrupted, .text = std::string(5000, 'x')});

  EXPECT_EQ(read_failure_note(file.get())->text, std::string(kMaxFailureTextBytes, 'x'));
}

TEST(FailureNote, AnotherFileUnderTheSameNumberIsLeftAlone) {
  const UniqueFd file = *make_failure_note();
  const FailureNoteWriter writer(failure_note_place(file.get()));
  const UniqueFd others = *make_failure_note();
  ASSERT_EQ(::write(others.get(), "data", 4), 4);
  ASSERT_EQ(::dup2(others.get(), file.get()), file.get());

  writer.write(kNote);
  writer.clear();

  std::string kept(5, '\0');
  EXPECT_EQ(::pread(others.get(), kept.data(), kept.size(), 0), 4);
  EXPECT_EQ(kept.substr(0, 4), "data");
}

TEST(FailureNote, APlaceThatIsNoneIsIgnored) {
  const UniqueFd file = *make_failure_note();

  for (const std::string& place :
       {std::string(), std::string("x"), concat(file.get()), concat(file.get(), ":1:1"),
        failure_note_place(file.get()) + "x", std::string("99999999999:1:1")}) {
    FailureNoteWriter(place).write(kNote);
    EXPECT_EQ(read_failure_note(file.get()), std::nullopt) << place;
  }
}

TEST(FailureNote, WhatIsNoNoteIsNotTakenForOne) {
  const UniqueFd file = *make_failure_note();
  ASSERT_EQ(::write(file.get(), "something that a program wrote", 30), 30);

  EXPECT_EQ(read_failure_note(file.get()), std::nullopt);
  EXPECT_EQ(read_failure_note(-1), std::nullopt);
}

}  // namespace
}  // namespace hvd
