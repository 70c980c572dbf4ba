# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# Finds the requirements of Pawl. Sets pawl_refusal to a sentence about a missing one, or to nothing. Included by Pawl's
# own CMakeLists.txt, and by pawl-config.cmake of an installed Pawl; $pawl_include has the headers.

cmake_policy(VERSION 3.23...3.31) # include() limits it to this file
if(POLICY CMP0167)
    cmake_policy(SET CMP0167 OLD) # headers of Boost are enough, without a BoostConfig.cmake beside them
endif()
set(pawl_refusal "")

if(NOT CMAKE_CXX_COMPILER_LOADED)
    set(pawl_refusal "Pawl needs C++: name CXX in the LANGUAGES of project().")
    return()
endif()

find_package(Threads QUIET)
if(NOT Threads_FOUND)
    set(pawl_refusal "Pawl needs threads, and CMake finds no library for them: does the compiler link anything?")
    return()
endif()

find_package(Boost 1.81 QUIET)
if(NOT Boost_FOUND)
    set(pawl_found ${Boost_CONSIDERED_VERSIONS} ${Boost_VERSION})
    list(REMOVE_DUPLICATES pawl_found)
    list(JOIN pawl_found " and " pawl_found)
    if(NOT pawl_found)
        set(pawl_found "none")
    endif()
    string(CONCAT pawl_refusal "Pawl needs Boost 1.81 or newer, and CMake finds ${pawl_found}: install it "
                               "(Debian 12: libboost1.81-dev), or say where it is with -D Boost_ROOT=<its prefix>.")
    return()
endif()

# config.hpp checks the compiler and its flags. If this does not compile for another reason, the program's own
# compilation will show it.
set(pawl_check "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/pawl-check")
file(WRITE "${pawl_check}/main.cpp" "#include <pawl/config.hpp>\nint main() {}\n")
try_compile(pawl_accepted "${pawl_check}" "${pawl_check}/main.cpp"
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${pawl_include}" LINK_LIBRARIES Boost::headers
    CXX_STANDARD 20 OUTPUT_VARIABLE pawl_said)
if(NOT pawl_accepted AND pawl_said MATCHES "error[^\n]*\"(Pawl needs[^\"]*)\"")
    set(pawl_refusal "${CMAKE_MATCH_1}")
endif()
