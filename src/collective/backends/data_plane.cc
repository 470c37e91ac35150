#include "collective/backends/data_plane.h"

#include "base/text.h"

namespace hvd::collective {

DataPlane::DataPlane(std::vector<std::unique_ptr<Backend>> backends)
    : backends_(std::move(backends)) {
  for (const auto& backend : backends_)
    candidates_.push_back({backend->name(), &backend->capabilities()});
}

bool DataPlane::can_run(WorkKind kind) const {
  return select({.kind = kind, .dtypes = {}, .ops = {}, .bytes = UINT64_MAX, .device = {}},
                candidates_)
      .has_value();
}

Status DataPlane::add(Work& work) {
  const auto chosen = select(traits_of(work), candidates_);
  if (!chosen) return Status(StatusCode::kPreconditionError, explain(work));
  executor_.add(work, *backends_[*chosen]);
  return Status::ok();
}

std::string_view DataPlane::activity(const Work& work) const {
  const auto chosen = select(traits_of(work), candidates_);
  return chosen ? backends_[*chosen]->activity() : std::string_view("SHM");
}

std::string DataPlane::explain(const Work& work) const {
  return explain_route(traits_of(work), candidates_);
}

bool DataPlane::look_after_streams() {
  bool are_behind = false;
  for (const auto& backend : backends_) are_behind = backend->look_after_streams() || are_behind;
  return are_behind;
}

void DataPlane::abort_streams() {
  for (const auto& backend : backends_) backend->abort_streams();
}

void DataPlane::add_descriptors(std::vector<pollfd>& out) const {
  if (!is_idle()) executor_.current()->add_descriptors(out);
}

const Status& DataPlane::status() const {
  for (const auto& backend : backends_) {
    if (!backend->status().is_ok()) return backend->status();
  }
  return ok_;
}

}  // namespace hvd::collective
