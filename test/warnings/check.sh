#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: check.sh COMPILER INCLUDE
#
# Compiles every public header, and uses.cpp, with warnings that users have asked for, optimised, because some are only
# found then. Warnings in Boost do not count: some of these also appear for Asio's own timers.
#
# Compiles every public header once more as MSVC would read it, after all headers that it includes: with the macros of
# <windows.h>, in Pawl's branches for MSVC, without [[no_unique_address]], which MSVC ignores, and by clang with names in
# templates looked up late.
set -Eeuo pipefail
compiler=$1 include=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-Wall -Wextra)
for flag in -Wnull-dereference -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wunused-parameter -Wdouble-promotion \
    -Wformat=2 -Wcast-align -Woverloaded-virtual -Wnon-virtual-dtor -Wextra-semi; do
    "$compiler" -Werror "$flag" -fsyntax-only -x c++ /dev/null 2>/dev/null && flags+=("$flag") # if it knows the flag
done

for header in "$include"/pawl/*.hpp; do
    printf '#include <pawl/%s>\n' "${header##*/}"
done >"$work/all.cpp"
printf '#include "%s"\n' "$here/uses.cpp" >>"$work/all.cpp"

# Not as a system folder, whose warnings are suppressed.
read -ra more <<<"${CXXFLAGS:-}"
"$compiler" -std=c++20 -O2 "${flags[@]}" -I"$include" "${more[@]}" -c "$work/all.cpp" -o "$work/all.o" 2>"$work/log" || {
    cat "$work/log"
    exit 1
}
if grep -E "^($include/|$here/|$work/).*warning:" "$work/log"; then
    exit 1
fi

# as_msvc MACROS: the headers that Pawl includes, MACROS, all public headers.
as_msvc() {
    grep -rhoE '^ *#include <(boost/[^>]*|[a-z_0-9]+)>' "$include" | grep -v the_error_above | sort -u
    printf '#ifdef __x86_64__\n#include <emmintrin.h>\n#endif\n%s\n' "$1"
    grep -v uses.cpp "$work/all.cpp"
    (cd "$include" && printf '#include <%s>\n' pawl/time/*.hpp)
}
macros=
for word in ABSOLUTE BOOL CALLBACK CONST DELETE DIFFERENCE DOMAIN ERROR FALSE IGNORE IN INFINITE NO NO_ERROR OPAQUE OPTIONAL OUT \
    OVERFLOW PASSTHROUGH RELATIVE SING STRICT TRANSPARENT TRUE UNDERFLOW VOID YES 'Yield()' boolean cdecl far grp1 huge hyper \
    interface major minor near nil pascal rad1 small 'verify(x)'; do
    macros+="#define $word no, a macro has this name"$'\n' # of Windows, and some of macOS
done
for word in GNUC clang linux unix; do macros+="#undef __${word}__"$'\n'; done
macros+='#define _MSC_VER 1944
#define _MSVC_LANG __cplusplus
#ifdef __x86_64__
#define _M_X64 100
#endif
#define _WIN32 1
#define __declspec(x)
#define no_unique_address maybe_unused'
as_msvc "$macros" >"$work/msvc.cpp"
lookup=()
if [[ ${compiler##*/} == clang* ]]; then
    lookup=(-Xclang -fdelayed-template-parsing)
fi
"$compiler" -std=c++20 -Wall -Wextra -Werror -Wno-builtin-macro-redefined "${lookup[@]}" -I"$include" "${more[@]}" -fsyntax-only \
    "$work/msvc.cpp"
echo "none, by ${#flags[@]} flags"
