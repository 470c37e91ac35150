# Files of hvd_net_cipher that depend on the processor; included by hvd_module(net/cipher ...).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_sources(hvd_net_cipher PRIVATE ${CMAKE_CURRENT_LIST_DIR}/x86/aes_gcm_vector.cc
                                        ${CMAKE_CURRENT_LIST_DIR}/x86/aes_gcm_wide.cc)
else()
  target_sources(hvd_net_cipher PRIVATE ${CMAKE_CURRENT_LIST_DIR}/portable/aes_gcm_vector.cc)
endif()
