# Every header compiles alone: one generated source per header, each including only that header, in the
# object library hvd_header_check. The library is never linked.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/*.h ${CMAKE_SOURCE_DIR}/include/*.h ${CMAKE_SOURCE_DIR}/include/*.hpp)
set(checks "")
foreach(header IN LISTS headers)
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${header})
  string(REGEX REPLACE "^(src|include)/" "" include_path ${name})
  set(check ${CMAKE_BINARY_DIR}/header_check/${name}.cc)
  file(CONFIGURE OUTPUT ${check} CONTENT "#include \"@include_path@\"\n" @ONLY)
  list(APPEND checks ${check})
endforeach()
add_library(hvd_header_check OBJECT ${checks})
target_include_directories(hvd_header_check PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
if(HVD_BUILD_PYTHON)
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)
  target_link_libraries(hvd_header_check PRIVATE Python::Module)
endif()
