# Where things go in the wheel, when scikit-build-core runs this build (see pyproject.toml).
set(CMAKE_INSTALL_LIBDIR horovod/lib)
set(CMAKE_INSTALL_INCLUDEDIR horovod/include)
set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})

# Variables that chose frameworks, network and GPU libraries when the original was compiled.
execute_process(COMMAND ${CMAKE_COMMAND} -E environment OUTPUT_VARIABLE variables)
string(REGEX MATCHALL "(^|\n)HOROVOD_(WITH|WITHOUT|GPU|CPU|CUDA|NCCL|ROCM|RCCL|MPI|GLOO|DDL|CCL|BUILD|ENABLE)[A-Z0-9_]*"
  variables "${variables}")
string(REPLACE "\n" "" variables "${variables}")
if(variables)
  list(JOIN variables ", " variables)
  message(NOTICE "horovod: ${variables} have no effect: nothing is compiled against a framework, MPI or a GPU library")
endif()
