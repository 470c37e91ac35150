# hvd_jax_module(<folder> [<folder it may include> ...]): libhorovod_jax.so from src/<folder>/*.cc, on the shared libhorovod
# and beside it. JAX is neither needed here nor linked: Python hands the functions of this library to it.
function(hvd_jax_module folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  add_library(hvd_jax MODULE ${sources})
  set_target_properties(hvd_jax PROPERTIES
    PREFIX lib
    OUTPUT_NAME horovod_jax
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    INSTALL_RPATH $ORIGIN)
  target_include_directories(hvd_jax PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(hvd_jax PRIVATE hvd_bindings_common horovod Threads::Threads)
  if(NOT HVD_SANITIZE)
    target_link_options(hvd_jax PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,--no-undefined)
  endif()
  install(TARGETS hvd_jax LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
