# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# pawl_own_target(<target> [PRECOMPILED]): what the project's own programs are built with, and users are not: warnings as
# errors, the sanitizers of PAWL_SANITIZE, and precompiled headers.

add_library(pawl_own_flags INTERFACE)
target_link_libraries(pawl_own_flags INTERFACE pawl::pawl)
target_compile_options(pawl_own_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 sees an overlap in std::string's operator+ that is not there: GCC bug 105329, mended in 13. And it takes a
    # coroutine's operator delete for a stranger to its operator new where it has inlined only one of them.
    target_compile_options(pawl_own_flags INTERFACE -Wno-restrict -Wno-mismatched-new-delete)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Half a gigabyte before g++ collects its garbage for the first time: a fifth less time to compile what includes Asio.
    target_compile_options(pawl_own_flags INTERFACE --param=ggc-min-heapsize=524288)
endif()

if(CMAKE_SIZEOF_VOID_P EQUAL 4)
    # The tests take 64-bit random numbers for sizes.
    target_compile_options(pawl_own_flags INTERFACE -Wno-error=conversion)
endif()

if(PAWL_SANITIZE)
    target_compile_options(pawl_own_flags INTERFACE
        -fsanitize=${PAWL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(pawl_own_flags INTERFACE -fsanitize=${PAWL_SANITIZE})
endif()
if(PAWL_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With g++ they cost 40 % of the time that it takes to compile the tests. clang checks them, too.
    target_compile_options(pawl_own_flags INTERFACE -fno-sanitize=null,alignment,vptr)
endif()
if(PAWL_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio uses atomic_thread_fence, which g++ says its ThreadSanitizer does not understand.
    target_compile_options(pawl_own_flags INTERFACE -Wno-tsan)
endif()

if(PAWL_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Some tests replace operator new, which the static runtime of clang's ThreadSanitizer defines once and for all.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.tsan-${CMAKE_SYSTEM_PROCESSOR}.so
                    OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    cmake_path(GET runtime PARENT_PATH runtime)
    target_link_options(pawl_own_flags INTERFACE -shared-libsan "LINKER:-rpath,${runtime}")
endif()

# Where optimising does not change what a test sees: half the time to compile.
set(pawl_unoptimised $<$<CONFIG:Release>:-O0>)
if(MINGW) # whose object files and strings are too big without
    set(pawl_unoptimised $<$<CONFIG:Release>:-O1>)
endif()

if(PAWL_SANITIZE OR PAWL_BUILD_TESTS)
    # What nearly every program includes is compiled once. Without sanitizers for PRECOMPILED ones only, and not for
    # examples and benchmarks: there it is shown that each file includes what it uses.
    file(CONFIGURE OUTPUT precompiled.cpp CONTENT "")
    add_library(pawl_own_precompiled OBJECT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp")
    target_link_libraries(pawl_own_precompiled PRIVATE pawl_own_flags)
    target_compile_options(pawl_own_precompiled PRIVATE ${pawl_unoptimised})
    set_target_properties(pawl_own_precompiled PROPERTIES CXX_EXTENSIONS OFF)
    target_precompile_headers(pawl_own_precompiled PRIVATE <boost/asio.hpp>)
endif()

function(pawl_own_target target)
    cmake_parse_arguments(PARSE_ARGV 1 own "PRECOMPILED" "" "")
    target_link_libraries(${target} PRIVATE pawl_own_flags)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
    if(PAWL_SANITIZE OR own_PRECOMPILED)
        target_precompile_headers(${target} REUSE_FROM pawl_own_precompiled)
    endif()
endfunction()
