// audit.h - one line about who took part in a job over the network, for those who answer for the
// machines: who joined from where, what kept others out, who was refused. No secrets. Pure.
#pragma once

#include <string>

#include "base/settings.h"
#include "net/visitors.h"

namespace hvd::launch {

struct AuditFacts {
  const net::Visitors* visitors = nullptr;  // of the job's store; null: it has none
  const net::Visitors* joining = nullptr;   // of the port of --join; null: none
  std::string tls = {};                     // the value of HOROVOD_TLS; empty: not set
};

// "horovodrun: audit: ...\n".
std::string audit_line(const AuditFacts& facts);

}  // namespace hvd::launch
