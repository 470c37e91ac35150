#include "mpi/explain.h"

#include "base/log.h"
#include "base/text.h"

namespace hvd::mpi {
namespace {

bool has_a_say(int32_t rank, uint64_t epoch) { return rank == 0 && epoch <= 1; }

}  // namespace

void explain_agreed_key(Carrier carrier, int32_t rank, uint64_t epoch) {
  if (!has_a_say(rank, epoch)) return;
  HVD_LOG(kWarning,
          carrier == Carrier::kMpi
              ? "MPI carries tensors between hosts, in the clear; control and objects go by TCP, "
                "encrypted, with a key that the ranks agreed on through MPI: "
              : "the ranks agreed on a key through MPI: ",
          "who only reads MPI's messages learns nothing of it, but who can change them while the "
          "job starts can join the job, and run code in it; to keep them out, set HOROVOD_KEY_FILE "
          "on all ranks to a file with 32 random bytes and mode 0600",
          carrier == Carrier::kMpi
              ? "; to encrypt tensors as well, set HOROVOD_CPU_OPERATIONS=native and HOROVOD_TLS=1"
              : "");
}

void explain_open_mpi(const std::string& problem, int32_t rank, uint64_t epoch) {
  if (!has_a_say(rank, epoch)) return;
  HVD_LOG(kWarning,
          "MPI carries everything between hosts in the clear, control and objects included, "
          "because these hosts do not reach each other by TCP (",
          problem,
          "): whoever can write to this network can run code on every rank. Let TCP through "
          "between the hosts (HOROVOD_GLOO_IFACE names interfaces), or set HOROVOD_TLS=0 if the "
          "network is trusted");
}

Status refuse_open_mpi(const std::string& problem) {
  return precondition_error(
      concat("init: the job has a key, but MPI carries the data and these hosts do not reach each "
             "other by TCP (",
             problem,
             "), so control and objects cannot be protected; let TCP through between the hosts "
             "(HOROVOD_GLOO_IFACE names interfaces), or set HOROVOD_TLS=0 to leave them to MPI, in "
             "the clear"));
}

}  // namespace hvd::mpi
