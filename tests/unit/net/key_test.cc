#include "net/keys/key.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "net/keys/hmac.h"

namespace hvd::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class KeyFile {
 public:
  explicit KeyFile(std::string_view content, mode_t mode = 0600) {
    std::string name = testing::TempDir() + "hvd-key-XXXXXX";
    UniqueFd fd(mkstemp(name.data()));
    EXPECT_TRUE(fd.valid());
    EXPECT_EQ(write(fd.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
    EXPECT_EQ(fchmod(fd.get(), mode), 0);
    path_ = name;
  }
  ~KeyFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const std::string kDigits = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F";

bool counts_up(const Key& key) {
  for (size_t i = 0; i < kKeyBytes; ++i) {
    if (key.bytes()[i] != i) return false;
  }
  return true;
}

std::string raw_bytes() {
  std::string raw;
  for (char c = 0; c < 32; ++c) raw += c;
  return raw;
}

TEST(Key, ComesFromDigitsOrBytesInAFile) {
  for (const std::string& content : {kDigits, kDigits + "\n", raw_bytes()}) {
    const KeyFile file(content);

    const auto key = Key::from_file(file.path());

    ASSERT_TRUE(key) << key.status().message();
    EXPECT_TRUE(counts_up(*key));
  }
}

TEST(Key, RefusesAFileThatOthersMayRead) {
  for (const mode_t mode : {0644, 0640, 0604, 0620}) {
    const KeyFile file(kDigits, mode);

    const auto key = Key::from_file(file.path());

    ASSERT_FALSE(key);
    EXPECT_THAT(key.status().message(), HasSubstr(file.path()));
    EXPECT_THAT(key.status().message(), HasSubstr("0600"));
  }
}

TEST(Key, RefusesAFileOfSomebodyElse) {
  const KeyFile file(kDigits);
  if (chown(file.path().c_str(), 12345, static_cast<gid_t>(-1)) != 0) {
    GTEST_SKIP() << "only root can give files away";
  }

  const auto key = Key::from_file(file.path());

  ASSERT_FALSE(key);
  EXPECT_THAT(key.status().message(), HasSubstr("user 12345"));
}

TEST(Key, RefusesContentThatIsNoKeyWithoutShowingIt) {
  for (const std::string content : {"", "secret", "zz0102030405060708090a0b0c0d0e0f10"}) {
    const KeyFile file(content);

    const auto key = Key::from_file(file.path());

    ASSERT_FALSE(key);
    EXPECT_THAT(key.status().message(), HasSubstr("expected 32 bytes or 64"));
    if (!content.empty()) {
      EXPECT_THAT(key.status().message(), Not(HasSubstr(content)));
    }
  }
  EXPECT_FALSE(Key::from_file("/nonexistent/key"));
  EXPECT_FALSE(Key::from_file("/dev/zero"));
  EXPECT_FALSE(Key::from_file(KeyFile(std::string(5000, 'a')).path()));
}

TEST(Key, CanBeReadTwiceFromAMemoryFileAndIsNotInherited) {
  UniqueFd fd(memfd_create("key", 0));
  ASSERT_EQ(write(fd.get(), kDigits.data(), kDigits.size()), static_cast<ssize_t>(kDigits.size()));

  for (int i = 0; i < 2; ++i) {
    const auto key = Key::from_descriptor(fd.get(), Deadline::after(std::chrono::seconds(5)));

    ASSERT_TRUE(key) << key.status().message();
    EXPECT_TRUE(counts_up(*key));
  }
  EXPECT_EQ(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Key, ComesThroughAPipeThatStaysOpen) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  ASSERT_EQ(write(writer.get(), raw_bytes().data(), 32), 32);

  const auto key = Key::from_descriptor(reader.get(), Deadline::after(std::chrono::seconds(5)));

  ASSERT_TRUE(key) << key.status().message();
  EXPECT_TRUE(counts_up(*key));
}

TEST(Key, DoesNotWaitForeverForAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);

  const auto key =
      Key::from_descriptor(reader.get(), Deadline::after(std::chrono::milliseconds(10)));

  EXPECT_EQ(key.status().code(), StatusCode::kTimedOut);
}

TEST(Key, SaysWhenTheDescriptorIsClosed) {
  const auto key = Key::from_descriptor(987, Deadline::never());

  EXPECT_THAT(key.status().message(), HasSubstr("descriptor 987: it is not open"));
}

TEST(Key, IsDifferentEachTime) {
  const Key a = *Key::random(), b = *Key::random();

  EXPECT_FALSE(equal_in_constant_time(a.bytes(), b.bytes()));
}

TEST(Key, DerivesKeysThatDependOnLabelAndSalt) {
  const Key key = *Key::random();
  const uint8_t salt[] = {1, 2, 3};

  EXPECT_TRUE(equal_in_constant_time(key.derive("a", salt).bytes(), key.derive("a", salt).bytes()));
  EXPECT_FALSE(
      equal_in_constant_time(key.derive("a", salt).bytes(), key.derive("b", salt).bytes()));
  EXPECT_FALSE(equal_in_constant_time(key.derive("a", salt).bytes(), key.derive("a", {}).bytes()));
}

}  // namespace
}  // namespace hvd::net
