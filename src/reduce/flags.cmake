# Files of hvd_reduce that depend on the processor; included by hvd_module(reduce ...).
# prfchw: so that fetching a line for writing is that, and not a fetch for reading.
# No -mfma: the table must give the bits of the baseline, which has no fused multiply-add.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_sources(hvd_reduce PRIVATE ${CMAKE_CURRENT_LIST_DIR}/x86/available.cc
                                    ${CMAKE_CURRENT_LIST_DIR}/x86/kernels_avx2.cc)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/x86/kernels_avx2.cc
                              PROPERTIES COMPILE_OPTIONS "-mavx2;-mf16c;-mprfchw")
else()
  target_sources(hvd_reduce PRIVATE ${CMAKE_CURRENT_LIST_DIR}/portable/available.cc)
endif()
