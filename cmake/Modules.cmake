# One static library per folder of src/, and the only table that says who may include whom.
# `./dev check` proves that the #include lines obey it.
#
# hvd_module(<folder> [<folder it may include> ...]) collects src/<folder>/*.cc as hvd_<folder>. It may name
# only folders declared above it, so the table cannot hold a cycle. A folder without sources is a library
# of headers. main.cc of a folder belongs to an executable, never to the library. Files that depend on the
# processor are added by src/<folder>/flags.cmake, if there is one.
define_property(GLOBAL PROPERTY HVD_MODULES BRIEF_DOCS "targets made by hvd_module, lowest first")

function(hvd_module folder)
  string(REPLACE "/" "_" target hvd_${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${target} ${scope} Threads::Threads)

  get_property(known GLOBAL PROPERTY HVD_MODULES)
  foreach(dependency IN LISTS ARGN)
    string(REPLACE "/" "_" dependency hvd_${dependency})
    if(NOT dependency IN_LIST known)
      message(FATAL_ERROR "hvd_module(${folder}): ${dependency} is not declared above it")
    endif()
    target_link_libraries(${target} ${scope} ${dependency})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY HVD_MODULES ${target})
  if(sources)
    # The launcher waits for processes and sockets: a quarter less to compile is worth more there. GCC guesses
    # wrongly about optional and variant at this level.
    if(folder MATCHES "^(launch|horovodrun)")
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1 -Wno-maybe-uninitialized>)
    endif()
    include(${CMAKE_SOURCE_DIR}/src/${folder}/flags.cmake OPTIONAL)
  endif()
endfunction()
