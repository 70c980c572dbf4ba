#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# Other libraries on Pawl's timers: the headers of Boost.Redis, Boost.MySQL, Boost.MQTT5 and Boost.Cobalt 1.90, from the
# Python package cmeel-boost, are copied, and tools/migrate is run on the copy. A program for each of the first three
# uses a real server: connections, requests that are cancelled, health checks that time out, reconnects, a pool.
# Boost.Cobalt is only compiled: its library contains Asio's timers.
#
# Needs redis-server, mariadb-server and mosquitto, PyPI, and two minutes for one compiler after the other.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in third_party

boost=1.90.0
sources=$root/test/package/third_party
quietly python3 -m venv "$work/venv"
quietly "$work/venv/bin/pip" download --no-deps --only-binary=:all: --python-version 3.11 --dest "$work" \
    "cmeel-boost==$boost"
quietly python3 -m zipfile -e "$work"/cmeel_boost-*.whl "$work"
prefix=$work/cmeel.prefix

mkdir -p "$work/migrated/boost"
for library in redis mysql mqtt5 cobalt; do
    cp -r "$prefix/include/boost/$library" "$prefix/include/boost/$library.hpp" "$work/migrated/boost/"
    # Nothing must find the original.
    rm -r "$prefix/include/boost/$library" "$prefix/include/boost/$library.hpp"
done
quietly tools/migrate "$work/migrated"
say "tools/migrate: $(tail -n 1 "$work/log")"
again=$(tools/migrate --dry-run "$work/migrated")
[[ $again == "0 files to change, 0 places left to you" ]] || fail "a second run of tools/migrate finds: $again"

# The fixtures of tools/migrate before and after, with Asio's own cancel_after.
for source in test/migrate/fixtures/limits/{before,after}/main.cpp; do
    quietly g++ -std=c++20 -fsyntax-only -I include -isystem "$prefix/include" "$source"
done
say "the fixture with Asio's cancel_after compiles before and after"

# Both folders are foreign, so warnings in them do not count.
flags=(-std=c++20 -O0 -pthread -Wall -Wextra -I include -isystem "$work/migrated" -isystem "$prefix/include")

quietly g++ "${flags[@]}" -fsyntax-only "$sources/cobalt.cpp"
say "Boost.Cobalt: its headers compile, and a program that awaits Pawl's timers"

# meets NAME ARGUMENT SERVER...: builds and runs the program of that library.
meets() {
    local name=$1 library=${1,,} parts
    shift
    quietly g++ "${flags[@]}" "$sources/$library.cpp" -o "$work/$library" \
        -L "$prefix/lib" -Wl,-rpath,"$prefix/lib" -lboost_charconv -lssl -lcrypto
    mkdir -p "$work/run-$library"
    (cd "$work/run-$library" && quietly timeout 180 "$work/$library" "$@")
    parts=$(sed -n 's/^  ok *\([a-z ]*\): .*/\1/p' "$work/log" | sort -u | paste -sd , | sed 's/,/, /g')
    say "Boost.$name: $(grep -c '^  ok ' "$work/log") claims hold: $parts"
}

# The path of a socket must be short, and root's servers must be able to use it.
sockets=$(mktemp -d)
trap 'rm -rf "$sockets"' EXIT

meets Redis "$sockets/redis" redis-server --port 0 --unixsocket "$sockets/redis" --save "" --dir "$sockets"

quietly mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$sockets/mysql" --skip-test-db \
    --auth-root-authentication-method=normal
meets MySQL "$sockets/mysql.socket" /usr/sbin/mariadbd --no-defaults --user="$(id -un)" --datadir="$sockets/mysql" \
    --socket="$sockets/mysql.socket" --skip-networking --innodb-buffer-pool-size=8M

port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf '%s\n' "user $(id -un)" "listener $port 127.0.0.1" 'allow_anonymous true' 'persistence false' >"$sockets/mosquitto.conf"
meets MQTT5 "$port" /usr/sbin/mosquitto -c "$sockets/mosquitto.conf"
