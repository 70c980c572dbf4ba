#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: tools/fetch_boost.sh VERSION
#
# Boost for x86-64 Linux from the Python package cmeel-boost (1.82.0, 1.83.0, 1.84.0, 1.87.0.1, 1.88.0, 1.89.0, 1.90.0), in
# build/boost-VERSION. Prints the prefix.
set -Eeuo pipefail
(($# == 1)) || { printf 'usage: tools/fetch_boost.sh VERSION\n' >&2 && exit 2; }
dir=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)/build/boost-$1
mkdir -p "${dir%/*}"
exec {lock}>"$dir.lock" && flock "$lock"
if [[ ! -e $dir/done ]]; then
    rm -rf "$dir"
    mkdir -p "$dir"
    python3 -m venv "$dir/venv" >&2
    # Only files of this package are used, so it may be for another Python than the system's.
    "$dir/venv/bin/pip" --quiet download --no-deps --only-binary=:all: --python-version 3.11 --dest "$dir" "cmeel-boost==$1" >&2
    python3 -m zipfile -e "$dir"/cmeel_boost-*.whl "$dir"
    rm -r "$dir"/venv "$dir"/*.whl
    touch "$dir/done"
fi
printf '%s\n' "$dir/cmeel.prefix"
