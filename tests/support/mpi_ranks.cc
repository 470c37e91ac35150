#include "tests/support/mpi_ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

#include "mpi/group.h"
#include "mpi/join.h"
#include "mpi/process.h"
#include "mpi/take_leave.h"

namespace hvd::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(200);

// MPI in this process, and a group per number of ranks.
class World {
 public:
  static World& instance() {
    static World* const world = new World;  // NOLINT: never destroyed, so that exit finds it
    return *world;
  }
  Status start() {
    if (process_ != nullptr) return Status::ok();
    HVD_TRY_ASSIGN(process_, mpi::Process::start(process_environment()));
    // Registered behind what the library registers, and so run before it.
    std::atexit([] { instance().finish(); });
    HVD_TRY_ASSIGN(size_, process_->api().size(process_->api().world()));
    HVD_TRY_ASSIGN(rank_, process_->api().rank(process_->api().world()));
    return Status::ok();
  }
  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t next_epoch() { return ++epoch_; }

  Result<mpi::Group*> group_of(int size) {
    auto& group = groups_[size];
    if (group == nullptr) {
      std::vector<int32_t> ranks(static_cast<size_t>(size));
      std::iota(ranks.begin(), ranks.end(), 0);
      HVD_TRY_ASSIGN(const mpi::Comm comm, mpi::comm_of_ranks(process_->api(), ranks));
      HVD_TRY_ASSIGN(group, mpi::Group::open(process_->api(), comm, Deadline::after(kPatience)));
    }
    return group.get();
  }

 private:
  void finish() {
    std::vector<mpi::Group*> groups;
    for (const auto& [size, group] : groups_) groups.push_back(group.get());
    mpi::take_leave(process_->api(), groups, EXIT_FAILURE);
  }

  std::unique_ptr<mpi::Process> process_;
  int rank_ = 0, size_ = 1;
  uint64_t epoch_ = 0;
  std::map<int, std::unique_ptr<mpi::Group>> groups_;
};

}  // namespace

bool runs_under_mpi() { return std::getenv("HVD_TEST_MPI") != nullptr; }

void run_mpi_ranks(int size, const topology::HostMap& hosts,
                   const std::function<void(TestRank&)>& function, const ThreadOptions& options) {
  World& world = World::instance();
  const Status started = world.start();
  ASSERT_TRUE(started) << started.message();
  const uint64_t epoch = world.next_epoch();
  if (size > world.size() || world.rank() >= size) return;
  auto group = world.group_of(size);
  ASSERT_TRUE(group) << group.status().message();
  const auto host = static_cast<size_t>(hosts.host_of[static_cast<size_t>(world.rank())]);
  const Environment environment = [&](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "HOROVOD_HOSTNAME") return hosts.names[host];
    return process_environment()(name);
  };
  auto joined =
      mpi::join(**group, environment, mpi::Carrier::kMpi, epoch, Deadline::after(kPatience));
  ASSERT_TRUE(joined) << joined.status().message();
  engine::EngineOptions engine_options;
  engine_options.topology = joined->topology;
  engine_options.settings = options.settings;
  engine_options.process_sets = options.process_sets;
  engine_options.epoch = epoch;
  engine_options.hosts = std::move(joined->network.hosts);
  engine_options.mesh = std::move(joined->network.mesh);
  auto engine = engine::Engine::start(std::move(engine_options));
  ASSERT_TRUE(engine) << "rank " << world.rank() << ": " << engine.status().message();
  TestRank rank(world.rank(), size, **engine);
  function(rank);
}

}  // namespace hvd::testing
