# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# Runs a portfile without vcpkg: the functions that Pawl's portfile calls, as vcpkg documents them, for one build type.
#
#     cmake -D PORT_DIR=... -D VERSION=... -D TO=... -P stand_ins.cmake
#
# The package is left in TO/packages/PORT.

cmake_minimum_required(VERSION 3.23)

cmake_path(GET PORT_DIR FILENAME PORT)
set(CURRENT_PORT_DIR "${PORT_DIR}")
set(CURRENT_BUILDTREES_DIR "${TO}/buildtrees/${PORT}")
set(CURRENT_PACKAGES_DIR "${TO}/packages/${PORT}")

# arguments(OPTIONS SINGLE MULTIPLE): those of the calling function, into arg_...; an unknown argument is an error.
macro(arguments options single multiple)
    cmake_parse_arguments(PARSE_ARGV 0 arg "${options}" "${single}" "${multiple}")
    if(DEFINED arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION} does not know ${arg_UNPARSED_ARGUMENTS}")
    endif()
endmacro()

function(vcpkg_download_distfile out)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILENAME;SHA512" "URLS")
    set(file "${TO}/downloads/${arg_FILENAME}")
    file(DOWNLOAD "${arg_URLS}" "${file}" EXPECTED_HASH "SHA512=${arg_SHA512}")
    set(${out} "${file}" PARENT_SCOPE)
endfunction()

function(vcpkg_extract_source_archive out)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
    file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${CURRENT_BUILDTREES_DIR}/src")
    file(GLOB folders "${CURRENT_BUILDTREES_DIR}/src/*")
    list(LENGTH folders count)
    if(NOT count EQUAL 1)
        message(FATAL_ERROR "${arg_ARCHIVE} has to have one folder in it, not ${count}")
    endif()
    set(${out} "${folders}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
    arguments("" "SOURCE_PATH" "OPTIONS")
    execute_process(COMMAND_ERROR_IS_FATAL ANY
        COMMAND ${CMAKE_COMMAND} -G Ninja -S "${arg_SOURCE_PATH}" -B "${CURRENT_BUILDTREES_DIR}/build" ${arg_OPTIONS}
            -D CMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}")
endfunction()

function(vcpkg_cmake_install)
    execute_process(COMMAND_ERROR_IS_FATAL ANY
        COMMAND ${CMAKE_COMMAND} --build "${CURRENT_BUILDTREES_DIR}/build" --target install)
endfunction()

# Corrects paths relative to CONFIG_PATH if that is not share/PORT, and moves it there. Here it must be there.
function(vcpkg_cmake_config_fixup)
    arguments("" "" "")
    file(GLOB configs "${CURRENT_PACKAGES_DIR}/share/${PORT}/*-config.cmake")
    if(NOT configs)
        message(FATAL_ERROR "no CMake package in share/${PORT}")
    endif()
endfunction()

# Makes paths in .pc files relative, and checks that pkg-config finds them.
function(vcpkg_fixup_pkgconfig)
    arguments("" "" "")
    file(GLOB files "${CURRENT_PACKAGES_DIR}/share/pkgconfig/*.pc" "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/*.pc")
    foreach(file IN LISTS files)
        file(READ "${file}" text)
        string(FIND "${text}" "${CURRENT_PACKAGES_DIR}" at)
        if(NOT at EQUAL -1)
            message(FATAL_ERROR "${file} has an absolute path, which this stand-in cannot correct")
        endif()
        execute_process(COMMAND pkg-config --print-errors --exists "${file}" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
endfunction()

function(vcpkg_install_copyright)
    arguments("" "" "FILE_LIST")
    file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

include("${PORT_DIR}/portfile.cmake")
