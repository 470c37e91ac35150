// What a worker of an elastic job hears from its launcher, and tells it.
#include "bindings/python/arguments.h"
#include "bindings/python/errors.h"
#include "bindings/python/functions.h"

namespace hvd::python {

PyObject* elastic_is_active(Arguments) { return PyBool_FromLong(hvd_elastic_is_active()); }

PyObject* elastic_epoch(Arguments) { return PyLong_FromUnsignedLongLong(hvd_elastic_epoch()); }

PyObject* elastic_look(Arguments) {
  hvd_elastic_news news{};
  news.struct_size = sizeof news;
  const hvd_status status = hvd_elastic_look(&news);
  if (status != HVD_OK) return raise_last(status);
  return Py_BuildValue("(LIO)", static_cast<long long>(news.timestamp_ns), news.changes,
                       news.is_asked_to_leave != 0 ? Py_True : Py_False);
}

PyObject* elastic_report(Arguments arguments) {
  Reader reader(arguments);
  hvd_elastic_report report{};
  report.struct_size = sizeof report;
  report.kind = reader.int32(0);
  report.number = reader.to_int64(arguments[1]);
  if (reader.failed()) return nullptr;
  return none_or_raise(hvd_elastic_tell(&report));
}

}  // namespace hvd::python
