# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# Fails, with the text that belongs there, where doc/cookbook.md does not quote a recipe as it stands in its program:
# what is between "// [recipe]" and "// [recipe end]", as a block of C++.
#
#     cmake -D DOCUMENT=<cookbook.md> -D PROGRAMS=<folder of the programs> -P check_snippets.cmake

cmake_minimum_required(VERSION 3.23)

set(wrong 0)
file(READ "${DOCUMENT}" document)
file(GLOB programs "${PROGRAMS}/*.cpp")
foreach(program IN LISTS programs)
    file(READ "${program}" text)
    if(NOT text MATCHES "\n// \\[recipe\\]\n(.*\n)// \\[recipe end\\]\n")
        message(SEND_ERROR "${program} has no recipe: mark it with // [recipe] and // [recipe end]")
        continue()
    endif()
    set(recipe "```cpp\n${CMAKE_MATCH_1}```\n")
    string(FIND "${document}" "${recipe}" at)
    if(at EQUAL -1)
        message(NOTICE "${program}: its recipe is not in ${DOCUMENT}. Put this there:\n${recipe}")
        math(EXPR wrong "${wrong} + 1")
    endif()
endforeach()

list(LENGTH programs recipes)
string(REGEX REPLACE "[][;]" " " document "${document}") # they mean something in a CMake list
string(REGEX MATCHALL "```cpp\n" blocks "${document}")
list(LENGTH blocks blocks)
if(wrong OR recipes EQUAL 0 OR NOT recipes EQUAL blocks)
    message(FATAL_ERROR "${recipes} programs, ${wrong} of them not quoted; ${blocks} blocks of C++ in ${DOCUMENT}")
endif()
