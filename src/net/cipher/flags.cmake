# Files of hvd_net_cipher that depend on the processor; included by hvd_module(net/cipher ...).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_sources(hvd_net_cipher PRIVATE ${CMAKE_CURRENT_LIST_DIR}/x86/aes_gcm_vector.cc
                                        ${CMAKE_CURRENT_LIST_DIR}/x86/aes_gcm_wide.cc)
  # GCC aligns frames that AddressSanitizer watches for registers of 256 bits at most (bug 110027).
  if("address" IN_LIST HVD_SANITIZE)
    set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/x86/aes_gcm_wide.cc PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS -fno-sanitize=address)
  endif()
else()
  target_sources(hvd_net_cipher PRIVATE ${CMAKE_CURRENT_LIST_DIR}/portable/aes_gcm_vector.cc)
endif()
