# Flags that every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(Threads REQUIRED)

# Most of the time goes into headers that all sources of a folder include: read them once for a dozen sources. Names in
# anonymous namespaces are therefore unique in their folder. A source need not compile alone then: `./dev check` and the
# preset `dev` prove that it does.
option(HVD_UNITY "compile the sources of a folder together" ON)
set(CMAKE_UNITY_BUILD ${HVD_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)

# Equal objects of several build folders (release, the package, the wheel) and of several clones are compiled once: no
# object knows where the sources lie. Sources that CMake puts together name them, so the preprocessed text is compared.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
find_program(HVD_CCACHE ccache)
if(HVD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HVD_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# ffp-contract: a fused multiply-add on one machine and not on another would give different bits.
add_compile_options(-Wall -Wextra -Wshadow -ffp-contract=off)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wthread-safety)
else()
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    add_compile_options(-Wno-restrict)  # GCC bug 105651: wrong about every std::string concatenation
  endif()
  if(HVD_UNITY)  # takes the sources that are read together for headers
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endif()

# Damage to the stack, calls that overrun a buffer and tables that could be overwritten are noticed or prevented; the
# compilers of some distributions do so by themselves, others do not. tests/package/hardening_test.cc looks at the result.
add_compile_options(-fstack-protector-strong)
if(NOT HVD_SANITIZE)  # which look at the same calls more closely
  add_compile_options($<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE>
                      $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2>)
endif()
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)  # programs at random addresses, as libraries are

if(HVD_SANITIZE)
  foreach(sanitizer IN LISTS HVD_SANITIZE)
    add_compile_options(-fsanitize=${sanitizer})
    add_link_options(-fsanitize=${sanitizer})
  endforeach()
  add_compile_options(-fno-omit-frame-pointer -fno-sanitize-recover=all)
endif()
