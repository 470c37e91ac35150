# Where things go in the wheel, when scikit-build-core runs this build (see pyproject.toml).
set(CMAKE_INSTALL_LIBDIR horovod/lib)
set(CMAKE_INSTALL_INCLUDEDIR horovod/include)
set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})

# An installation has no ccache: the standard headers are read once, not by each of a hundred sources. Off in the
# editable installation of ./dev, which shares its objects with the release build through ccache.
option(HVD_PRECOMPILE "read the standard headers from a precompiled one" ON)
function(hvd_precompile target)
  if(target STREQUAL hvd_reduce)
    return()  # hardly any headers, and flags of its own per source
  endif()
  if(NOT TARGET hvd_precompiled)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "// Carries the precompiled header.\n")
    add_library(hvd_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
    target_link_libraries(hvd_precompiled PRIVATE Threads::Threads)
    target_precompile_headers(hvd_precompiled PRIVATE <algorithm> <atomic> <chrono> <condition_variable> <deque>
      <functional> <map> <memory> <mutex> <optional> <string> <thread> <unordered_map> <vector>)
  endif()
  target_precompile_headers(${target} REUSE_FROM hvd_precompiled)
endfunction()

# Variables that chose frameworks, network and GPU libraries when the original was compiled.
execute_process(COMMAND ${CMAKE_COMMAND} -E environment OUTPUT_VARIABLE variables)
string(REGEX MATCHALL "(^|\n)HOROVOD_(WITH|WITHOUT|GPU|CPU|CUDA|NCCL|ROCM|RCCL|MPI|GLOO|DDL|CCL|BUILD|ENABLE)[A-Z0-9_]*"
  variables "${variables}")
string(REPLACE "\n" "" variables "${variables}")
if(variables)
  list(JOIN variables ", " variables)
  message(NOTICE "horovod: ${variables} have no effect: nothing is compiled against a framework, MPI or a GPU library")
endif()
