#include "launch/doctor/doctor.h"

#include <sys/wait.h>

#include <csignal>

#include "base/text.h"
#include "launch/doctor/doctor_report.h"
#include "launch/doctor/engine_comparison.h"
#include "launch/doctor/gpu_trial.h"
#include "launch/link/remote_host.h"
#include "launch/os/exit_status.h"
#include "launch/os/now.h"
#include "launch/output/flush.h"
#include "net/keys/key.h"

namespace hvd::launch {
namespace {

using State = RemoteHost::State;

// Python may be slow to start on a busy host; a probe has its own, shorter bound.
constexpr std::chrono::seconds kFactsTime{60};
constexpr std::chrono::seconds kProbeTime{15};

void say(Terminal& terminal, std::string_view text) {
  terminal.out().append(text);
  flush_all(terminal, nullptr, Deadline::never());
}

class Doctor final : private WorkerEvents {
 public:
  Doctor(const Prepared& prepared, const Signals& signals) : signals_(signals) {
    for (const HostPlan& plan : prepared.plan.hosts) {
      plans_.push_back(plan);
      // This machine is asked in the same way, without ssh.
      if (plan.is_local) plans_.back().agent_command = {"/proc/self/exe", "--agent"};
      findings_.hosts.push_back({.name = plan.name, .is_local = plan.is_local});
    }
  }

  Status connect(const Prepared& prepared, const DescriptorLimit& limit) {
    HVD_TRY_ASSIGN(const net::Key key, net::Key::random());
    const std::string bytes(reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size());
    const std::string inquiry = encode_frame(
        FrameKind::kInquire, encode(Inquiry{bytes, prepared.options.network_interfaces}));
    remote_.reserve(plans_.size());
    for (const HostPlan& plan : plans_) {
      HVD_TRY_ASSIGN(RemoteHost host, RemoteHost::connect(plan, prepared.plan.environment, inquiry,
                                                          signals_, limit));
      remote_.push_back(std::move(host));
    }
    return Status::ok();
  }

  // False: a signal said stop.
  bool ask_for_facts(std::chrono::seconds start_timeout) {
    const TimePoint give_up_at = now() + std::max(start_timeout, kFactsTime);
    const TimePoint connected_by = now() + start_timeout;
    return run_until(give_up_at, [&] {
      if (now() >= connected_by) give_up_on_strangers(start_timeout);
      bool is_done = true;
      for (const RemoteHost& host : remote_)
        is_done = is_done && host.state() != State::kConnecting;
      return is_done;
    });
  }

  bool probe_all() {
    for (size_t from = 0; from < remote_.size(); ++from) {
      for (size_t to = 0; to < remote_.size(); ++to) {
        if (from == to || !findings_.hosts[from].facts || !findings_.hosts[to].facts) continue;
        if (!probe(from, to)) return false;
      }
    }
    return true;
  }

  DoctorFindings take_findings() {
    for (size_t i = 0; i < remote_.size(); ++i) {
      if (findings_.hosts[i].facts) continue;
      findings_.hosts[i].failure =
          remote_[i].why().empty() ? "it did not answer in time" : remote_[i].why();
    }
    return std::move(findings_);
  }

 private:
  void on_started(int32_t, int32_t) override {}
  void on_output(int32_t, OutputStream, std::string_view) override {}
  void on_output_end(int32_t, OutputStream) override {}
  void on_exit(const WorkerExit&) override {}
  void on_answer(std::string_view name, uint8_t kind, std::string_view payload) override {
    if (kind == static_cast<uint8_t>(FrameKind::kFacts)) {
      auto facts = decode_facts(payload);
      for (DoctorHost& host : findings_.hosts) {
        if (facts && host.name == name) host.facts = *std::move(facts);
      }
    } else if (auto result = decode_probe(payload)) {
      probed_ = *std::move(result);
    }
  }

  bool probe(size_t from, size_t to) {
    probed_.reset();
    remote_[from].ask(
        FrameKind::kProbe,
        encode(ProbeOrder{findings_.hosts[to].name, findings_.hosts[to].facts->probe_addresses}));
    const bool goes_on = run_until(now() + kProbeTime, [&] {
      return probed_.has_value() || remote_[from].state() == State::kLost;
    });
    if (!probed_) probed_ = ProbeResult{.address = {}, .failure = "no answer in time"};
    findings_.probes[{from, to}] = *probed_;
    return goes_on;
  }

  void give_up_on_strangers(std::chrono::seconds start_timeout) {
    for (RemoteHost& host : remote_) {
      if (host.state() == State::kConnecting && !host.has_greeted()) {
        host.give_up(concat("no answer within ", start_timeout.count(), " s (--start-timeout)"));
      }
    }
  }

  template <typename Done>
  bool run_until(TimePoint give_up_at, Done&& is_done) {
    while (!is_done() && now() < give_up_at && !is_interrupted_) {
      polls_.clear();
      for (RemoteHost& host : remote_) host.watch(polls_, *this, true);
      polls_.watch(signals_.poll_fd(), POLLIN, [this] { take_signals(); });
      polls_.wake_by(give_up_at);
      polls_.wait();
      for (RemoteHost& host : remote_) host.on_time(now(), std::chrono::hours(24));
    }
    return !is_interrupted_;
  }

  void take_signals() {
    while (const auto event = signals_.next()) {
      int wait_status = 0;
      for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
        for (RemoteHost& host : remote_) host.take_end(pid, wait_status);
      }
      is_interrupted_ = is_interrupted_ || event->number == SIGINT || event->number == SIGTERM ||
                        event->number == SIGHUP;
    }
  }

  const Signals& signals_;
  std::vector<HostPlan> plans_;
  std::vector<RemoteHost> remote_;
  DoctorFindings findings_;
  PollSet polls_;
  std::optional<ProbeResult> probed_;
  bool is_interrupted_ = false;
};

}  // namespace

Result<Prepared> prepare_doctor(Options options, const EnvironmentList& environment) {
  // One per slot: every host that was named takes part, whatever -np says.
  HVD_TRY(read_config_file(options));
  HVD_TRY_ASSIGN(const FoundHosts found, [&] {
    Options asked = options;
    asked.num_proc = std::max(asked.num_proc, 1);
    return find_hosts(asked, environment);
  }());
  options.num_proc = static_cast<int32_t>(total_slots(found.hosts));
  return prepare_job(std::move(options), environment);
}

Result<int> run_doctor(const Prepared& prepared, Terminal& terminal) {
  HVD_TRY_ASSIGN(const Signals signals, Signals::take_over());
  HVD_TRY_ASSIGN(const DescriptorLimit limit,
                 DescriptorLimit::make_room(static_cast<int32_t>(prepared.plan.hosts.size())));
  Doctor doctor(prepared, signals);
  HVD_TRY(doctor.connect(prepared, limit));
  const bool is_complete = doctor.ask_for_facts(prepared.plan.start_timeout) && doctor.probe_all();
  DoctorFindings findings = doctor.take_findings();
  signals.restore();  // what follows is a program that Ctrl-C may end
  say(terminal, doctor_report(findings));
  // mpirun would wait long for a host that cannot be reached.
  if (is_complete && is_usable(findings)) {
    if (const auto engines = compare_engines(prepared)) say(terminal, describe(*engines));
  }
  GpuTrial gpus;
  if (is_complete && prepared.options.tries_gpus) {
    gpus = try_gpus(prepared);
    say(terminal, describe(gpus));
  }
  say(terminal, doctor_advice(findings));
  if (!is_complete) return 128 + SIGINT;
  return is_usable(findings) && gpus.failure.empty() ? 0 : 1;
}

}  // namespace hvd::launch
