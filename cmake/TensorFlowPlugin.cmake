# hvd_tensorflow_module(<folder> [<folder it may include> ...]): libhorovod_tensorflow.so from src/<folder>/*.cc, on the shared libhorovod and beside it.
# TensorFlow is neither needed here nor linked: its C interface is looked up when the file is loaded.
function(hvd_tensorflow_module folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  add_library(hvd_tensorflow MODULE ${sources})
  set_target_properties(hvd_tensorflow PROPERTIES
    PREFIX lib
    OUTPUT_NAME horovod_tensorflow
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    INSTALL_RPATH $ORIGIN)
  target_include_directories(hvd_tensorflow PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(hvd_tensorflow PRIVATE hvd_bindings_common horovod Threads::Threads ${CMAKE_DL_LIBS})
  if(NOT HVD_SANITIZE)
    target_link_options(hvd_tensorflow PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,--no-undefined)
  endif()
  install(TARGETS hvd_tensorflow LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
