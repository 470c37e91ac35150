// agent_session.h - the agent's event loop: messages of the launcher in, events of the ranks out.
// One thread; blocks in poll() only, with a deadline whenever something could fail to come.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launch/doctor/doctor_probe.h"
#include "launch/link/agent_message.h"
#include "launch/link/run_folder.h"
#include "launch/os/byte_queue.h"
#include "launch/os/poll_set.h"
#include "launch/os/signals.h"
#include "launch/ranks/local_workers.h"
#include "launch/ranks/termination.h"
#include "launch/ranks/worker_events.h"
#include "net/keys/key.h"

namespace hvd::launch {

class AgentSession final : private WorkerEvents {
 public:
  AgentSession(const Signals& signals, const EnvironmentList& environment)
      : signals_(signals), environment_(environment) {}

  // Returns when no rank is left and the launcher knows, or has gone.
  void run();

 private:
  void on_started(int32_t rank, int32_t pid) override;
  void on_output(int32_t rank, OutputStream stream, std::string_view bytes) override;
  void on_output_end(int32_t rank, OutputStream stream) override;
  void on_exit(const WorkerExit& exit) override;
  void on_message(int32_t rank, std::string_view bytes) override;

  void turn();
  void send(FrameKind kind, std::string_view payload);
  void flush();
  void read_commands();
  void take(const Frame& frame);
  Status prepare(const std::string& payload);
  Status keep_function(const std::string& function, EnvironmentList& environment);
  Status start();
  Status inquire(const std::string& payload);
  Status probe_host(const std::string& payload);
  void report(const Status& problem, int exit_code);
  void take_signals();
  void ask_to_leave();
  void reap();
  void signal_ranks(AgentSignal signal);
  void carry_out(TerminationAction action);
  void lose_launcher();
  void take_input(std::string_view bytes);
  void flush_input();
  bool is_done() const;
  void finish();
  void return_files();
  void flush_down_to(size_t most_bytes);

  const Signals& signals_;
  const EnvironmentList& environment_;  // of a login on this host
  PollSet polls_;
  FrameReader reader_{false};
  ByteQueue to_launcher_;
  bool has_launcher_ = true;
  bool is_told_to_leave_ = false;  // before anything was started
  bool is_paused_ = false;         // Ctrl-Z: the launcher does not speak until it goes on
  TimePoint heard_at_{};
  TimePoint next_heartbeat_{};

  std::optional<LocalStart> start_;
  std::optional<DescriptorLimit> limit_;
  std::optional<RunFolder> run_folder_;
  std::optional<LocalWorkers> workers_;
  std::optional<Termination> termination_;  // only of an agent that has lost its launcher
  Nanoseconds grace_{};

  std::optional<net::Key> probe_key_;  // of a doctor
  std::optional<ProbeServer> probes_;

  UniqueFd first_stdin_;  // rank 0 reads here
  UniqueFd input_end_;    // and we write here
  ByteQueue input_;
  bool input_has_ended_ = false;
};

}  // namespace hvd::launch
