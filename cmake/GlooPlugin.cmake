# hvd_gloo_module(<folder> [<folder it may include> ...]): libhorovod_gloo.so from src/<folder>/*.cc, on the shared Gloo of the system, beside libhorovod.so.
# HVD_GLOO: AUTO builds it where Gloo is found, ON insists, OFF leaves it out. Nothing else depends on it.
set(HVD_GLOO AUTO CACHE STRING "build the Gloo plug-in: AUTO, ON or OFF")

function(hvd_gloo_module folder)
  if(HVD_GLOO STREQUAL "OFF")
    return()
  endif()
  find_path(HVD_GLOO_INCLUDE_DIR gloo/allreduce.h)
  find_library(HVD_GLOO_LIBRARY gloo)
  if(NOT HVD_GLOO_INCLUDE_DIR OR NOT HVD_GLOO_LIBRARY)
    if(HVD_GLOO STREQUAL "ON")
      message(FATAL_ERROR "HVD_GLOO=ON, but Gloo was not found; install libgloo-dev, or name HVD_GLOO_INCLUDE_DIR and HVD_GLOO_LIBRARY")
    endif()
    message(STATUS "Gloo not found: libhorovod_gloo.so is not built")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  add_library(hvd_gloo_so MODULE ${sources})
  set_target_properties(hvd_gloo_so PROPERTIES
    PREFIX lib
    OUTPUT_NAME horovod_gloo
    CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_include_directories(hvd_gloo_so PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_include_directories(hvd_gloo_so SYSTEM PRIVATE ${HVD_GLOO_INCLUDE_DIR})
  target_link_libraries(hvd_gloo_so PRIVATE ${HVD_GLOO_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
  if(NOT HVD_SANITIZE)
    target_link_options(hvd_gloo_so PRIVATE -Wl,--no-undefined)
  endif()
  install(TARGETS hvd_gloo_so LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
