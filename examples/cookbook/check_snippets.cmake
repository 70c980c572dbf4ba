# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# Fails if doc/cookbook.md does not quote the recipe of a program exactly, that is, the text between "// [recipe]" and
# "// [recipe end]", as a block of C++. Prints the expected text. Each block of C++ must be a recipe, unless it is
# indented: an excerpt in a list item.
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
string(REGEX REPLACE "[][;]" " " document "${document}") # these are special in a CMake list
string(REGEX MATCHALL "\n```cpp\n" blocks "${document}")
list(LENGTH blocks blocks)
if(wrong OR recipes EQUAL 0 OR NOT recipes EQUAL blocks)
    message(FATAL_ERROR "${recipes} programs, ${wrong} of them not quoted; ${blocks} blocks of C++ in ${DOCUMENT}")
endif()
