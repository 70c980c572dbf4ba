# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# Fails, and prints file:line, if a header of include/pawl breaks the one-way layers:
#
#     time  <-  wait  <-  service  <-  limit, interval  <-  public objects
#     feed  <-  public objects  <-  watch  <-  those that look
#
#     cmake -D ROOT=<folder that holds include/> -P check_layers.cmake

cmake_minimum_required(VERSION 3.23)

# What each folder may include; "." is include/pawl itself. A folder without a row is an error.
set(may_include_time time config.hpp version.hpp)
set(may_include_wait ${may_include_time} wait error.hpp)
set(may_include_feed config.hpp version.hpp broadcast_error.hpp broadcast_ring_options.hpp feed)
set(may_include_service ${may_include_wait} service options.hpp on_backend.hpp timer_event_kind.hpp
    virtual_clock.hpp)
set(may_include_interval ${may_include_service} interval missed_tick_policy.hpp)
set(may_include_limit ${may_include_service} limit)
set(may_include_stream ${may_include_service} limit stream [^/]+\\.hpp)
set(may_include_queue ${may_include_service} interval queue [^/]+\\.hpp)
set(may_include_watch ${may_include_service} watch [^/]+\\.hpp)
set(may_include_. ${may_include_service} interval limit stream queue feed watch [^/]+\\.hpp)

# Texts that no header of a layer may contain: below service/ no header reads a clock or owns a lock; time/ and feed/
# know neither Asio nor threads; interval/ knows neither Asio nor clocks.
set(not_in_wait "<mutex>" "<shared_mutex>" "<condition_variable>" "::now *\\(")
set(not_in_time ${not_in_wait} "<thread>" "<boost/asio[./]")
set(not_in_feed ${not_in_time})
set(not_in_interval "::now *\\(" "<boost/asio[./]")

set(found 0)
macro(complain text)
    message(NOTICE "${file}:${number}: ${text}")
    math(EXPR found "${found} + 1")
endmacro()

get_filename_component(ROOT "${ROOT}" ABSOLUTE)
file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/include/pawl/*")
if(NOT files)
    message(FATAL_ERROR "no header below ${ROOT}/include/pawl")
endif()
foreach(file IN LISTS files)
    set(folder .)
    if(file MATCHES "^include/pawl/(detail/)?([^/]+)/")
        set(folder "${CMAKE_MATCH_2}")
    endif()
    set(number 1)
    if(NOT DEFINED may_include_${folder})
        complain("no layer has the folder '${folder}': give it a row in cmake/check_layers.cmake")
        continue()
    endif()
    list(JOIN may_include_${folder} "|" allowed)

    file(READ "${ROOT}/${file}" text)
    string(REGEX REPLACE "[][;\\]" " " text "${text}") # these are special in a CMake list
    string(REPLACE "\n" ";" lines "${text}")
    set(number 0)
    foreach(line IN LISTS lines)
        math(EXPR number "${number} + 1")
        string(REGEX REPLACE "//.*" "" line "${line}")
        if(line MATCHES "^ *# *include *\"")
            complain("own headers are included as <pawl/...>")
        elseif(line MATCHES "^ *# *include *<pawl/([^>]*)>")
            set(header "${CMAKE_MATCH_1}")
            if(NOT header MATCHES "^(detail/)?(${allowed})(/|$)")
                complain("${folder}/ must not include <pawl/${header}>")
            elseif(header STREQUAL "pawl.hpp")
                complain("<pawl/pawl.hpp> is for users, not for the library")
            endif()
        endif()
        foreach(forbidden IN LISTS not_in_${folder})
            if(line MATCHES "${forbidden}")
                complain("${folder}/ must not say '${CMAKE_MATCH_0}'")
            endif()
        endforeach()
    endforeach()
endforeach()

if(found)
    message(FATAL_ERROR "${found} lines break the layers")
endif()
