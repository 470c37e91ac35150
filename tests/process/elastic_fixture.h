// elastic_fixture.h - an elastic job of real processes whose workers are this program
// (elastic_worker.h). Nothing sleeps: tests wait for what the workers and the launcher say.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/process/launched_job.h"
#include "tests/support/elastic_worker.h"

namespace hvd::test {

class ElasticJobs : public ::testing::Test {
 protected:
  std::string stop_file() const { return directory_ / "stop"; }
  void stop() const { std::ofstream(stop_file()) << "now"; }
  void write_hosts(const std::string& text) const {
    std::ofstream(directory_ / "hosts.new") << text;
    std::filesystem::rename(directory_ / "hosts.new", directory_ / "hosts");
  }
  std::string hosts_file() const { return directory_ / "hosts"; }
  std::string log_file() const { return directory_ / "log"; }
  std::string log_text() const {
    std::ifstream file(log_file());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // The command of a worker, behind the options.
  std::vector<std::string> command(std::vector<std::string> options,
                                   std::vector<std::string> more = {}) const {
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    for (const std::string& word : {self, std::string(testing::kElasticFlag), stop_file()}) {
      options.push_back(word);
    }
    for (std::string& word : more) options.push_back(std::move(word));
    return options;
  }

  // Waits until every rank of that world has said so.
  static bool wait_for_world(LaunchedJob& job, int epoch, int size) {
    for (int rank = 0; rank < size; ++rank) {
      if (!job.wait_for(concat("epoch ", epoch, " rank ", rank, " of ", size, " is ")))
        return false;
    }
    return true;
  }
  static pid_t process(const LaunchedJob& job, int epoch, int rank, int size) {
    const auto found =
        job.numbers_after(concat("epoch ", epoch, " rank ", rank, " of ", size, " is "));
    return found.empty() ? -1 : found.front();
  }

  TemporaryDirectory directory_;
};

}  // namespace hvd::test
