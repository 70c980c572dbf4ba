#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# Runs the installation ways of doc/getting-started.md exactly as printed: each block of commands that follows a line
# <!-- run: NAME -->, in a copy of the checkout, with a home of its own. (The test doc_code shows that the program
# of README.md compiles and runs.)
#
# The way `system` installs Pawl into /usr/local, and this script uninstalls it: it needs root, and no Pawl there.

source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in readme

# block NAME: the commands of that block.
block() {
    awk -v mark="<!-- run: $1 -->" '
        $0 == mark { wanted = 1; next }
        wanted && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }
        wanted && !inside && NF { exit }' doc/getting-started.md
}

# without_apt: the commands of stdin without the line of apt-get, whose packages must all be installed.
without_apt() {
    local line words package
    while IFS= read -r line; do
        if [[ $line == "apt-get update && apt-get install "* ]]; then
            read -ra words <<<"$line"
            for package in "${words[@]:5}"; do
                [[ $package == -* || $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
                    fail "$package is missing, and apt-get needs root: $line"
            done
        else
            printf '%s\n' "$line"
        fi
    done
}

# uninstall: the files of the way `system`, by the list that CMake keeps of them.
uninstall() {
    local manifest file
    for manifest in "$work"/system/build/*/install_manifest.txt; do
        [[ -f $manifest ]] || continue
        # Its last line has no newline.
        while IFS= read -r file || [[ -n $file ]]; do
            rm -f "$file"
        done <"$manifest"
    done
    comm -13 "$work/usr_local" <(find /usr/local -type d | sort) | sort -r |
        xargs -r -d '\n' rmdir --ignore-fail-on-non-empty # the deepest first
}

for name in conan fetchcontent system; do
    commands=$work/$name.sh
    block "$name" >"$commands"
    count=$(grep -cvE '^ *(#|$)' "$commands" || true)
    ((count > 0)) || fail "doc/getting-started.md has no block of commands after the line <!-- run: $name -->"
    ((count <= 3)) || fail "doc/getting-started.md needs $count commands for '$name', more than three"

    if ((EUID != 0)); then
        without_apt <"$commands" >"$commands.rest"
        mv "$commands.rest" "$commands"
        say "$name: not root, so apt-get is not run; its packages are there"
    fi
    if [[ $name == system ]]; then
        ((EUID == 0)) || fail "not root, so Pawl cannot be installed into /usr/local: run this in a container, as root"
        for file in /usr/local/include/pawl /usr/local/share/cmake/pawl; do
            [[ ! -e $file ]] || fail "$file is there already, and would be overwritten: remove it, or run this in a container"
        done
        find /usr/local | sort >"$work/usr_local"
        trap uninstall EXIT
    fi

    mkdir -p "$work/$name" "$work/home-$name"
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do
            [[ ! -e $file ]] || printf '%s\0' "$file" # git also lists deleted files
        done | xargs -0 cp --parents -t "$work/$name"
    start=$SECONDS
    (cd "$work/$name" && env -u CONAN_HOME -u PIPX_HOME HOME="$work/home-$name" DEBIAN_FRONTEND=noninteractive bash -ex "$commands") >"$work/log" 2>&1 || {
        tail -n 50 "$work/log" | cut -c1-300 >&2
        fail "the way '$name' of doc/getting-started.md fails"
    }
    # The output after the last trace of bash -x is that of the last command.
    last=$(sed -n '/^+ /h; /^+ /!H; ${x; p}' "$work/log")
    grep -qx 'timed out' <<<"$last" ||
        fail "the last command of '$name' does not print \"timed out\" but: $(tail -n 5 "$work/log")"
    say "$name: $count commands, $((SECONDS - start)) s, and it prints \"timed out\""
done

uninstall
trap - EXIT
diff "$work/usr_local" <(find /usr/local | sort) || fail "/usr/local is not as it was before"
say "/usr/local is as it was before"
