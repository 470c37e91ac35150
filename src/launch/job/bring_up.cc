#include "launch/job/bring_up.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "launch/os/now.h"

namespace hvd::launch {
namespace {

using State = RemoteHost::State;

constexpr size_t kNamedHosts = 3;
// Quick starts need no progress line.
constexpr std::chrono::milliseconds kProgressAfter{500};
constexpr char kEraseLine[] = "\r\x1b[K";

// Before kGo an agent has nothing to tell about ranks.
class NoEvents final : public WorkerEvents {
  void on_started(int32_t, int32_t) override {}
  void on_output(int32_t, OutputStream, std::string_view) override {}
  void on_output_end(int32_t, OutputStream) override {}
  void on_exit(const WorkerExit&) override {}
};

class BringUp {
 public:
  BringUp(std::deque<RemoteHost>& hosts, const Signals& signals, Terminal& terminal,
          std::chrono::seconds start_timeout, Progress progress)
      : hosts_(hosts),
        signals_(signals),
        terminal_(terminal),
        start_timeout_(start_timeout),
        progress_(progress) {}

  BringUpEnd run() {
    const TimePoint began_at = now();
    const TimePoint give_up_at = began_at + start_timeout_;
    while (!is_ready() && !end_.signal && !end_.failure) {
      turn(give_up_at);
      if (now() >= give_up_at) give_up_on_late_hosts();
      note_lost_hosts();
      if (now() >= began_at + kProgressAfter) show_progress();
    }
    if (!shown_.empty()) terminal_.err().append(kEraseLine);
    return end_;
  }

 private:
  bool is_ready() const {
    return std::all_of(hosts_.begin(), hosts_.end(),
                       [](const RemoteHost& host) { return host.state() == State::kReady; });
  }

  void turn(TimePoint give_up_at) {
    polls_.clear();
    for (RemoteHost& host : hosts_) host.watch(polls_, no_events_, true);
    polls_.watch(signals_.poll_fd(), POLLIN, [this] { take_signals(); });
    if (terminal_.err().has_pending()) polls_.watch(terminal_.err().poll_fd(), POLLOUT, [] {});
    polls_.wake_by(give_up_at);
    if (progress_ == Progress::kShown && shown_.empty()) polls_.wake_by(now() + kProgressAfter);
    polls_.wait();
    // A host that is silent while it comes up is late, not lost.
    for (RemoteHost& host : hosts_) host.on_time(now(), std::chrono::hours(24));
    terminal_.flush_some();
  }

  void take_signals() {
    while (const auto event = signals_.next()) {
      if (event->number == SIGCHLD) {
        int wait_status = 0;
        for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
          for (RemoteHost& host : hosts_) host.take_end(pid, wait_status);
        }
      } else if (event->number == SIGINT || event->number == SIGTERM || event->number == SIGHUP) {
        end_.signal = event->number;
      } else if (event->number == SIGTSTP) {
        ::raise(SIGSTOP);
      }
    }
  }

  void give_up_on_late_hosts() {
    for (RemoteHost& host : hosts_) {
      if (host.state() == State::kConnecting) {
        host.give_up(concat("no answer within ", start_timeout_.count(), " s (--start-timeout)"));
      }
    }
  }

  void note_lost_hosts() {
    std::vector<std::string> lines;
    for (const RemoteHost& host : hosts_) {
      if (host.state() != State::kLost) continue;
      lines.push_back(concat("host ", host.plan().name, " did not come up: ", host.why()));
      if (!end_.failure) end_.failure = {.text = {}, .exit_code = host.exit_code()};
    }
    if (end_.failure) end_.failure->text = join_text(lines, "\nhorovodrun: ");
  }

  void show_progress() {
    if (progress_ == Progress::kSilent) return;
    std::vector<std::string_view> missing;
    for (const RemoteHost& host : hosts_) {
      if (host.state() == State::kConnecting) missing.emplace_back(host.plan().name);
    }
    if (missing.empty()) return;
    const std::string line =
        concat("horovodrun: ", hosts_.size() - missing.size(), " of ", hosts_.size(),
               " hosts are up, waiting for ", join_text(missing, ", ", kNamedHosts));
    if (line == shown_) return;
    shown_ = line;
    terminal_.err().append(concat(kEraseLine, line));
    terminal_.flush_some();
  }

  std::deque<RemoteHost>& hosts_;
  const Signals& signals_;
  Terminal& terminal_;
  std::chrono::seconds start_timeout_;
  Progress progress_;
  PollSet polls_;
  NoEvents no_events_;
  BringUpEnd end_;
  std::string shown_;
};

}  // namespace

BringUpEnd bring_up(std::deque<RemoteHost>& hosts, const Signals& signals, Terminal& terminal,
                    std::chrono::seconds start_timeout, Progress progress) {
  return BringUp(hosts, signals, terminal, start_timeout, progress).run();
}

}  // namespace hvd::launch
