#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: make_port.sh ARCHIVE URL FOLDER
#
# Writes FOLDER/pawl, the port of vcpkg. ARCHIVE is the release as a .tar.gz with one folder in it, URL is where users get it.
set -Eeuo pipefail

die() {
    printf '%s\n' "$*" >&2
    exit 1
}
(($# == 3)) || die "usage: $0 ARCHIVE URL FOLDER"
archive=$1 url=$2 to=$3/pawl
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
[[ -r $archive ]] || die "cannot read $archive: give the release as a .tar.gz"
[[ ! -e $to ]] || die "$to exists: remove it, or give another folder"

version=$(sed -nE 's/^#define PAWL_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' "$here/../../include/pawl/version.hpp" | paste -sd .)
sha512=$(sha512sum <"$archive")
mkdir -p "$3"
cp -r "$here/ports/pawl" "$to"
sed -i -e "s|@version@|$version|" -e "s|@url@|$url|" -e "s|@sha512@|${sha512%% *}|" "$to"/{vcpkg.json,portfile.cmake}
