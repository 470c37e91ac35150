# hvd_python_module(<folder> [<folder it may include> ...]): horovod/_core/_native.abi3.so from src/<folder>/*.cc, on the
# shared libhorovod. One binary serves CPython 3.10 and newer: the sources see the limited API alone.
find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)

function(hvd_python_module folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  add_library(hvd_python MODULE ${sources})
  set_target_properties(hvd_python PROPERTIES
    PREFIX ""
    OUTPUT_NAME _native
    SUFFIX .abi3.so
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/horovod/_core
    INSTALL_RPATH $ORIGIN/../lib)
  target_include_directories(hvd_python PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(hvd_python PRIVATE horovod Python::Module Threads::Threads)
  foreach(dependency IN LISTS ARGN)
    string(REPLACE "/" "_" dependency hvd_${dependency})
    target_link_libraries(hvd_python PRIVATE ${dependency})
  endforeach()
  target_compile_definitions(hvd_python PRIVATE Py_LIMITED_API=0x030A0000)
  # libgcc stays shared: a thread that asks for the GIL while the interpreter ends is unwound by the C library
  # with libgcc_s, and frames of another copy of the unwinder would be in its way.
  if(NOT HVD_SANITIZE)
    target_link_options(hvd_python PRIVATE -static-libstdc++ -Wl,--exclude-libs,ALL)
  endif()
  install(TARGETS hvd_python LIBRARY DESTINATION horovod/_core)
endfunction()
