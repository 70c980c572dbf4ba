# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# Options for the project's own programs, not for users: warnings as errors, the sanitizers of PAWL_SANITIZE, and
# precompiled headers.

add_library(pawl_own_flags INTERFACE)
target_link_libraries(pawl_own_flags INTERFACE pawl::pawl)
target_compile_options(pawl_own_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 warns of an overlap in std::string's operator+ that does not exist: GCC bug 105329, fixed in 13. And if it
    # has inlined only one of a coroutine's operator new and operator delete, it warns that they do not match.
    target_compile_options(pawl_own_flags INTERFACE -Wno-restrict -Wno-mismatched-new-delete)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND PAWL_OPTIMISED)
    # What g++ concludes from what it happens to inline: printed, no error. The test `warnings` compiles the headers with
    # all of them as errors.
    target_compile_options(pawl_own_flags INTERFACE
        -Wno-error=array-bounds -Wno-error=maybe-uninitialized -Wno-error=stringop-overflow -Wno-error=stringop-overread
        -Wno-error=dangling-pointer -Wno-error=use-after-free -Wno-error=free-nonheap-object)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With half a gigabyte before the first garbage collection, g++ compiles sources that include Asio in a fifth less
    # time.
    target_compile_options(pawl_own_flags INTERFACE --param=ggc-min-heapsize=524288)
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    # The containers check their preconditions, too: a wrong index is a failed assertion without a sanitizer.
    target_compile_definitions(pawl_own_flags INTERFACE
        _GLIBCXX_ASSERTIONS _LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_EXTENSIVE BOOST_CB_ENABLE_DEBUG=1)
endif()

if(CMAKE_SIZEOF_VOID_P EQUAL 4)
    # The tests use 64-bit random numbers as sizes.
    target_compile_options(pawl_own_flags INTERFACE -Wno-error=conversion)
endif()

if(PAWL_SANITIZE)
    target_compile_options(pawl_own_flags INTERFACE
        -fsanitize=${PAWL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(pawl_own_flags INTERFACE -fsanitize=${PAWL_SANITIZE})
endif()
if(PAWL_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With g++ these checks cost 40 % of the compile time of the tests. clang has them, too.
    target_compile_options(pawl_own_flags INTERFACE -fno-sanitize=null,alignment,vptr)
endif()
if(PAWL_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio uses atomic_thread_fence, which g++'s ThreadSanitizer does not support, as its warning says.
    target_compile_options(pawl_own_flags INTERFACE -Wno-tsan)
endif()

if(PAWL_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Some tests replace operator new, which the static runtime of clang's ThreadSanitizer defines irreplaceably.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.tsan-${CMAKE_SYSTEM_PROCESSOR}.so
                    OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    cmake_path(GET runtime PARENT_PATH runtime)
    target_link_options(pawl_own_flags INTERFACE -shared-libsan "LINKER:-rpath,${runtime}")
endif()

# For programs whose results do not depend on optimisation, which is half of the compile time.
set(pawl_unoptimised)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT PAWL_OPTIMISED)
    set(pawl_unoptimised -O0)
    if(MINGW) # whose object files and strings are too big otherwise
        set(pawl_unoptimised -O1)
    endif()
endif()

# pawl_precompile(<library> <header>...): headers that nearly every program includes are compiled once.
function(pawl_precompile library)
    file(CONFIGURE OUTPUT precompiled.cpp CONTENT "")
    add_library(${library} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp")
    target_link_libraries(${library} PRIVATE pawl_own_flags)
    target_compile_options(${library} PRIVATE ${pawl_unoptimised})
    set_target_properties(${library} PROPERTIES CXX_EXTENSIONS OFF)
    target_precompile_headers(${library} PRIVATE ${ARGN})
endfunction()

if(PAWL_BUILD_TESTS AND NOT PAWL_FOREIGN)
    set(Boost_USE_STATIC_LIBS OFF)
    find_package(Boost 1.81 REQUIRED COMPONENTS unit_test_framework OPTIONAL_COMPONENTS context)
endif()

if(PAWL_SANITIZE OR PAWL_BUILD_TESTS)
    # In an optimised build only for PRECOMPILED targets, and not for examples and benchmarks: these show that each file
    # includes what it uses.
    pawl_precompile(pawl_own_precompiled <boost/asio.hpp>)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND (pawl_unoptimised OR PAWL_SANITIZE) AND PAWL_BUILD_TESTS AND NOT PAWL_FOREIGN
       AND NOT CMAKE_CXX_FLAGS MATCHES "-fcoverage-mapping")
        # With Pawl, a source of Asio's is compiled in a third less time, or more; with Boost.Test all tests in 370 s, which
        # took 392. Not with g++ 12, which emits the inline functions of a precompiled header again for each source; nor
        # for coverage, of which clang maps no such function. unit_test_suite.hpp, which defines main(), is left to the
        # tests.
        pawl_precompile(pawl_own_precompiled_whole <boost/asio.hpp> <pawl/pawl.hpp> <boost/test/test_tools.hpp>
                        <boost/test/framework.hpp> <boost/test/data/test_case.hpp>)
        target_link_libraries(pawl_own_precompiled_whole PRIVATE Boost::unit_test_framework)
        target_compile_definitions(pawl_own_precompiled_whole PRIVATE BOOST_TEST_DYN_LINK)
    endif()
    if(TARGET pawl_own_precompiled_whole AND NOT PAWL_SANITIZE)
        # And the code of its functions, once. A sanitizer would have to be told to change it, too.
        target_compile_options(pawl_own_precompiled_whole PRIVATE -fpch-codegen -Wno-unused-command-line-argument)
        set(pch "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/pawl_own_precompiled_whole.dir/cmake_pch.hxx.pch")
        set(code "${CMAKE_CURRENT_BINARY_DIR}/precompiled_code.o")
        add_custom_command(OUTPUT "${code}" VERBATIM DEPENDS "${pch}" pawl_own_precompiled_whole
                           COMMAND ${CMAKE_CXX_COMPILER} -c "${pch}" -o "${code}")
        add_library(pawl_own_precompiled_code STATIC "${code}")
        set_target_properties(pawl_own_precompiled_code PROPERTIES LINKER_LANGUAGE CXX)
        target_link_libraries(pawl_own_precompiled_code INTERFACE Boost::unit_test_framework)
    endif()
endif()

# pawl_own_target(<target> [PRECOMPILED [CONFIGURES]]): CONFIGURES: it defines macros that Pawl's headers ask for.
function(pawl_own_target target)
    cmake_parse_arguments(PARSE_ARGV 1 own "PRECOMPILED;CONFIGURES" "" "")
    target_link_libraries(${target} PRIVATE pawl_own_flags)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
    if(TARGET pawl_own_precompiled_whole AND NOT own_CONFIGURES)
        target_precompile_headers(${target} REUSE_FROM pawl_own_precompiled_whole)
        target_link_libraries(${target} PRIVATE $<TARGET_NAME_IF_EXISTS:pawl_own_precompiled_code>)
    elseif(PAWL_SANITIZE OR own_PRECOMPILED OR (pawl_unoptimised AND PAWL_BUILD_TESTS))
        target_precompile_headers(${target} REUSE_FROM pawl_own_precompiled)
    endif()
endfunction()
