#include "launch/job/audit.h"

#include <gmock/gmock.h>

namespace hvd::launch {
namespace {

using ::testing::HasSubstr;

net::Address at(const char* host) { return *net::parse_host(host, 7); }

TEST(LaunchAudit, SaysWhoJoinedFromWhereAndWhoWasRefused) {
  net::Visitors visitors;
  for (const int32_t rank : {0, 1, 2, 5}) visitors.note_admitted(rank, at("10.0.0.1"));
  visitors.note_admitted(3, at("fd00::2"));
  visitors.note_refused(at("10.0.0.8"));
  for (int i = 0; i < 3; ++i) visitors.note_refused(at("10.0.0.9"));

  EXPECT_EQ(
      audit_line({.visitors = &visitors, .tls = "1"}),
      "horovodrun: audit: ranks 0-2,5 from 10.0.0.1; rank 3 from fd00::2; key random for this "
      "job, through ssh; HOROVOD_TLS is 1; refused 4 connections (3 from 10.0.0.9, 1 from "
      "10.0.0.8) at the job's store; the ranks' own ports are not counted: see their logs\n");
}

TEST(LaunchAudit, SaysThatNothingHappened) {
  const net::Visitors visitors;

  EXPECT_THAT(audit_line({.visitors = &visitors, .tls = ""}),
              HasSubstr("nobody joined; key random for this job, through ssh; HOROVOD_TLS is not "
                        "set; nobody was refused"));
  EXPECT_THAT(audit_line({}), HasSubstr("one host, no port was open"));
}

TEST(LaunchAudit, OfHostsThatJoinSaysWhoKnockedAtTheirPort) {
  net::Visitors store;
  store.note_admitted(0, at("10.0.0.1"));
  net::Visitors joining;
  joining.note_refused(at("10.0.0.9"));

  EXPECT_EQ(
      audit_line({.visitors = &store, .joining = &joining}),
      "horovodrun: audit: rank 0 from 10.0.0.1; key random for this job, through connections that "
      "the key of --key-file opened; HOROVOD_TLS is not set; nobody was refused at the job's "
      "store, "
      "refused 1 connection (1 from 10.0.0.9) at the port of --join; the ranks' own ports are not "
      "counted: see their logs\n");
  EXPECT_THAT(audit_line({.joining = &joining}), HasSubstr("refused 1 connection"));
}

}  // namespace
}  // namespace hvd::launch
