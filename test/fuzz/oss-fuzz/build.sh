#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# Builds every test/fuzz/*_fuzz.cpp as OSS-Fuzz asks for it: with $CXX, $CXXFLAGS and $LIB_FUZZING_ENGINE, from $SRC/pawl,
# into $OUT, beside its seeds, options and dictionary. `./dev fuzz oss` runs it here.

set -euo pipefail
cd "$SRC/pawl"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
read -ra flags <<<"$CXXFLAGS -std=c++20 -pthread -Iinclude -Itest -Iexamples ${BOOST:+-isystem $BOOST}"

for source in test/fuzz/*_fuzz.cpp; do
    name=$(basename "$source" .cpp)
    parts=("$source")
    libraries=()
    case $name in
        service_fuzz)
            mapfile -t -O 1 parts < <(ls test/simulation/*.cpp | grep -vE '/(main|shrink)\.cpp$')
            libraries=(-ldl)
            ;;
        service_threads_fuzz)
            mapfile -t -O 1 parts < <(ls test/simulation/report.cpp test/simulation/threads/*.cpp | grep -v '/main\.cpp$')
            ;;
        http_fuzz) libraries=(-l:libssl.a -l:libcrypto.a -ldl) ;; # the machines that fuzz have no OpenSSL
    esac
    export objects
    printf '%s\0' "${parts[@]}" |
        xargs -0 -P "$(nproc)" -I{} bash -c '"$@" -c "$0" -o "$objects/${0//\//-}.o"' {} "$CXX" "${flags[@]}"
    # A fuzzer with a clock of its own keeps it: a static library of the compiler, which may come first, has the same symbol.
    clock=$(nm "$objects"/*.o | sed -n 's/.* T \(_Z.*steady_clock3nowEv\)$/\1/p')
    [[ -z $clock ]] || for each in "$objects"/*.o; do objcopy --redefine-sym "$clock=fuzzed_clock" "$each"; done
    "$CXX" "${flags[@]}" "$objects"/*.o $LIB_FUZZING_ENGINE "${libraries[@]}" -o "$OUT/$name"
    rm "$objects"/*.o
    cp test/fuzz/oss-fuzz/default.options "$OUT/$name.options"
    [[ ! -e test/fuzz/$name.dict ]] || cp "test/fuzz/$name.dict" "$OUT/"
    seeds=test/fuzz/corpus/${name%_fuzz}
    [[ ! -d $seeds ]] || zip -q -j -r "$OUT/${name}_seed_corpus.zip" "$seeds"
done
