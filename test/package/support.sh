# shellcheck shell=bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# For each STEP.sh of this folder, which starts with
#
#     source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
#     work_in STEP
#
# It leaves the root of the repository in $root and makes it the current folder, and the version in $version.

set -Eeuo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
cd "$root"
version=$(sed -nE 's/^#define PAWL_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' include/pawl/version.hpp | paste -sd .)
step=$(basename "$0" .sh)
trap 'printf "package: %s: line %d fails: %s\n" "$step" "$LINENO" "$BASH_COMMAND" >&2' ERR

# work_in STEP: empties the folder of this step, and leaves it in $work.
work_in() {
    step=$1
    work=$root/build/package/$step
    rm -rf "$work"
    mkdir -p "$work"
}

# say TEXT: one line for each checked promise.
say() { printf 'package: %s: %s\n' "$step" "$*"; }

fail() {
    printf 'package: %s: %s\n' "$step" "$*" >&2
    exit 1
}

# quietly COMMAND...: its output goes to $work/log, and is shown if it fails.
quietly() {
    local status=0
    "$@" >"$work/log" 2>&1 || status=$?
    ((status == 0)) || {
        tail -n 50 "$work/log" | cut -c1-300 >&2
        fail "exit status $status of: $*"
    }
}

# twenty_lines: the first program of README.md.
twenty_lines() {
    awk '/^<!-- run: program -->/ { wanted = 1 } wanted && /^```/ { if (inside) exit; inside = 1; next } inside' "$root/README.md"
}

# release_files: makes the release of a copy of the working tree, $work/tree: $archive, and the recipes in $release.
release_files() {
    release=$work/release
    archive=$release/pawl-$version.tar.gz
    mkdir "$work/tree"
    comm -z -23 <(git ls-files -z --cached --others --exclude-standard | sort -z) <(git ls-files -z --deleted | sort -z) |
        tar -c --null -T - | tar -x -C "$work/tree"
    quietly git -C "$work/tree" init
    quietly git -C "$work/tree" add -A
    quietly git -C "$work/tree" -c user.name=test -c user.email=test@example.invalid -c commit.gpgsign=false commit -m "A release"
    "$work/tree/packaging/make_release.sh" HEAD "file://$release" "$release"
}
