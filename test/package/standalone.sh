#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: standalone.sh [INCLUDE]
#
# Pawl for standalone Asio: what ./dev flavour standalone writes, and its refusals. The tests of the timers' contract,
# limits, retries and streams run on it, rewritten by the same rules. Debian's standalone Asio is too old, and PyPI has
# none, so standalone/asio_of_boost.py makes its headers from those of Boost 1.90, or of INCLUDE/boost/asio.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in standalone

headers=$work/include asio=$work/asio
boost=${1:-$(tools/fetch_boost.sh 1.90.0)/include}
test/package/standalone/asio_of_boost.py "$boost" "$asio"
quietly ./dev flavour standalone "$headers"
sed -n 's/^needs Boost, .*<\(.*\)>$/\1/p' "$work/log" >"$work/needing"
while read -r header; do
    grep -q "\`${header#pawl/}\`" doc/getting-started.md || fail "getting-started.md does not say that $header needs Boost"
done <"$work/needing"
say "$(find "$headers" -name '*.hpp' | wc -l) headers; these need Boost: $(paste -sd ' ' "$work/needing")"

options=(-std=c++20 -pthread -D ASIO_STANDALONE -I "$headers" -isystem "$asio")
strict=(-Wall -Wextra -Wpedantic -Wshadow -Werror)
echo '#include <pawl/pawl.hpp>' >"$work/all.cpp"
sed 's/.*/#include <&>/' "$work/needing" >"$work/rest.cpp"
for unit in all rest; do
    for compiler in g++ clang++-19; do quietly "$compiler" "${options[@]}" "${strict[@]}" -fsyntax-only "$work/$unit.cpp"; done
    g++ "${options[@]}" -M "$work/$unit.cpp" | tr ' ' '\n' | sed "s|^$root/||" >"$work/$unit.files"
    grep -qx "${asio#"$root/"}/asio/version.hpp" "$work/$unit.files" || fail "$unit.cpp does not reach standalone Asio"
    if grep -E '/boost/(asio|beast|system)[/.]' "$work/$unit.files"; then fail "$unit.cpp reaches these"; fi
done
if grep /boost/ "$work/all.files"; then fail "<pawl/pawl.hpp> reaches these"; fi
mkdir -p "$work/old/asio" && echo '#define ASIO_VERSION 102201' >"$work/old/asio/version.hpp"
for folder in old none; do
    if g++ -std=c++20 -I "$work/$folder" -I "$headers" -fsyntax-only "$work/all.cpp" 2>"$work/log"; then fail "Asio: $folder, accepted"; fi
    [[ $(grep -m 1 'error:' "$work/log") == *'Pawl needs Asio 1.26 or newer: '* ]] || fail "Asio: $folder, and no sentence says so"
done
say "no warnings from g++ and clang, no Boost.Asio, no Boost.System; in <pawl/pawl.hpp> no Boost at all; an old Asio or none is refused"

# refused FILE LINE SENTENCE: with this line, the file is refused.
refused() {
    local said
    rm -rf "$work/bad" && mkdir "$work/bad" && printf '%s\n' "$2" >"$work/bad/$1"
    if said=$(tools/standalone.py --from "$work/bad" "${4:-$work/refused}" 2>&1); then fail "accepted: $2"; fi
    [[ $said == "standalone.py: $3" ]] || fail "instead of '$3' it says '$said'"
    say "refused: $3"
}
refused x.hpp 'boost::beast::flat_buffer b;' 'x.hpp: no rule for this line: boost::beast::flat_buffer b;'
refused x.hpp '#if BOOST_VERSION < 109000' 'x.hpp: no rule for this line: #if BOOST_VERSION < 109000'
refused x.hpp '// } only with Boost' 'x.hpp: no rule for this line: // } only with Boost'
refused x.txt '' "no sources below $work/bad"
echo '// mine' >"$work/x.hpp"
refused x.hpp '' "$work/x.hpp exists, and was not generated: choose another folder" "$work"

mkdir "$work/sources"
cp -r test/{support,service,conformance,timeouts,patterns} "$work/sources"
rm "$work"/sources/timeouts/*_beast_test.cpp
quietly tools/standalone.py --from "$work/sources" "$work/test"
# program NAME TEST...: one program of several tests.
program() {
    local name=$1 sources=("${@:2}")
    python3 test/together.py "$work/$name.cpp" "$name" "${sources[@]/#/$work/test/}"
    clang++-19 "${options[@]}" -w -O0 -I "$work/test/$(dirname "$2")" -D PAWL_UNDER_TEST_PAWL=1 -D BOOST_TEST_DYN_LINK \
        "$work/$name.cpp" -lboost_unit_test_framework -o "$work/$name" && timeout 120 "$work/$name" --color_output=no
}
cat >"$work/programs" <<'TEXT'
limits timeouts/timeout_test.cpp timeouts/cancel_after_test.cpp timeouts/limit_regression_test.cpp patterns/retry_test.cpp
contract conformance/contract_test.cpp
streams timeouts/timeout_stream_test.cpp timeouts/stream_idle_test.cpp
TEXT
while read -r name tests; do
    (program "$name" $tests >"$work/$name.log" 2>&1) &
    (($(jobs -r | wc -l) < $(nproc))) || wait -n || true
done <"$work/programs"
wait
while read -r name _; do
    grep -q 'No errors detected' "$work/$name.log" || { tail -n 50 "$work/$name.log" | cut -c1-300 >&2; fail "$name fails"; }
    say "$name: $(grep -o 'Running .*' "$work/$name.log") no errors"
done <"$work/programs"
