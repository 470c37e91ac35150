# hvd_mxnet_module(<folder> [<folder it may include> ...]): libhorovod_mxnet.so from src/<folder>/*.cc, on the shared
# libhorovod and beside it. MXNet is neither needed here nor linked: its C interface is looked up in the library that Python has loaded.
function(hvd_mxnet_module folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  add_library(hvd_mxnet MODULE ${sources})
  set_target_properties(hvd_mxnet PROPERTIES
    PREFIX lib
    OUTPUT_NAME horovod_mxnet
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    INSTALL_RPATH $ORIGIN)
  target_include_directories(hvd_mxnet PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(hvd_mxnet PRIVATE hvd_bindings_common horovod Threads::Threads ${CMAKE_DL_LIBS})
  if(NOT HVD_SANITIZE)
    target_link_options(hvd_mxnet PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,--no-undefined)
  endif()
  install(TARGETS hvd_mxnet LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
