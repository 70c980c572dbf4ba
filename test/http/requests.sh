#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: requests.sh DIRECTORY TIMER plain|tls THREADS
#
# The answers of http_server to good and bad requests. It survives all of them, and drains as promised. DIRECTORY has
# the programs, TIMER is pawl or asio. No time is asserted; the limits of the server are long where they must not
# expire, and short where they must.

set -euo pipefail
programs=${1:?usage: requests.sh DIRECTORY TIMER plain|tls THREADS}
timer=$2
layer=$3
threads=$4
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

scheme=http
options=(--timer "$timer" --threads "$threads" --access-log "$scratch/log")
if [[ $layer == tls ]]; then
    certificate server
    scheme=https
    options+=(--tls --cert "$scratch/server.crt" --key "$scratch/server.key")
fi

# --- files to request -------------------------------------------------------------------------------

root=$scratch/root
mkdir -p "$root/folder" "$root/empty"
printf 'outside\n' >"$scratch/secret"
printf 'the index\n' >"$root/index.html"
printf 'of the folder\n' >"$root/folder/index.html"
printf '{}' >"$root/folder/a b.json"
: >"$root/nothing.css"
printf '# text\n' >"$root/notes.md"
mkdir "$root/.git"
printf 'hidden\n' | tee "$root/.git/config" "$root/.env" >"$root/folder/.hidden"
head -c 65536 /dev/urandom >"$root/small"       # the largest that is sent in one piece
head -c 1000001 /dev/urandom >"$root/large.bin" # in pieces
mkfifo "$root/pipe"

# --- helpers ----------------------------------------------------------------------------------------

ask() { curl -q -sS -k --noproxy '*' --path-as-is -m 60 "$@"; }

# answers STATUS TARGET CURL-ARGUMENT...
answers() {
    local expected=$1 target=$2
    shift 2
    same "status of $target $*" "$expected" \
        "$(ask -o /dev/null -w '%{http_code}' "$@" "$scheme://127.0.0.1:$port$target")"
}

# gets FILE TARGET CURL-ARGUMENT...: the answer must be the content of FILE.
gets() {
    local file=$1 target=$2
    shift 2
    ask "$@" "$scheme://127.0.0.1:$port$target" | cmp - "$file" || complain "content of $target"
}

# A connection by hand. The output of the server goes to a file; that process ends when the server closes the
# connection.
declare -A in=() listener=()

# open NAME
open() {
    : >"$scratch/$1.out"
    if [[ $layer == tls ]]; then
        mkfifo "$scratch/$1.in"
        timeout 60 openssl s_client -quiet -connect "127.0.0.1:$port" \
            <"$scratch/$1.in" >"$scratch/$1.out" 2>"$scratch/$1.err" &
        listener[$1]=$!
        exec {fd}>"$scratch/$1.in"
    else
        exec {fd}<>"/dev/tcp/127.0.0.1/$port"
        timeout 60 cat <&"$fd" >"$scratch/$1.out" 2>"$scratch/$1.err" &
        listener[$1]=$!
    fi
    in[$1]=$fd
}

# tell NAME FORMAT: sends bytes, as printf makes them, in one piece (which bash's own printf does not do).
tell() {
    printf "$2" >"$scratch/piece"
    cat "$scratch/piece" >&"${in[$1]}" || true # the answer shows whether it was received
}

# hear NAME PATTERN: waits until the server has sent a match.
hear() {
    local i
    for ((i = 0; i < 3000; ++i)); do
        if [[ $(<"$scratch/$1.out") == *$2* ]]; then return; fi
        sleep 0.02
    done
    complain "$1: never heard '$2'"
}

# closed NAME: waits until the server has closed it. Leaves everything that the server has sent in $heard.
closed() {
    local status=0
    wait "${listener[$1]}" || status=$?
    [[ $status != 124 ]] || complain "$1: not closed"
    local fd=${in[$1]}
    exec {fd}>&-
    heard=$(tr -d '\r' <"$scratch/$1.out")
    rm -f "$scratch/$1".*
}

# trickle NAME: sends a byte five times a second, until the server has closed it.
trickling=()
trickle() {
    (while sleep 0.2; do printf x >&"${in[$1]}" || break; done) 2>"$scratch/trickle" &
    trickling+=($!)
}

# raw FORMAT: sends bytes, and waits until the server has closed the connection.
raw() {
    open raw
    tell raw "$1"
    closed raw
}

# --- good and bad requests --------------------------------------------------------------------------

long=60s
start "${options[@]}" --root "$root" --max-header 2000 --max-body 10000 --idle $long --drain $long \
    --header-timeout $long --body-timeout $long --write-timeout $long --request-timeout $long

gets "$root/index.html" /
gets "$root/index.html" /index.html
gets "$root/index.html" /%69ndex.html?query=/../%
gets "$root/index.html" / --request-target http://elsewhere/index.html
gets "$root/folder/index.html" /folder
gets "$root/folder/index.html" //folder/./
gets "$root/folder/a b.json" /folder/a%20b.json
gets "$root/nothing.css" /nothing.css
gets "$root/small" /small
gets "$root/large.bin" /large.bin
gets "$root/large.bin" /large.bin --http1.0
gets "$root/large.bin" /large.bin -H 'Connection: close'

for target in /nothing /empty /empty/ /index.html/ /index.html/x "/$(printf 'n%.0s' {1..300})"; do
    answers 404 "$target"
done
for target in /.git/config /.git /.git/ /.env /folder/.hidden /%2egit/config //.git/./config /...; do
    answers 404 "$target"
done
for target in /../secret /folder/../../secret /%2e%2e/secret /..%2fsecret /folder/.. /pipe; do
    answers 403 "$target"
done
for target in /% /%2 /%zz /%00 /index.html%00.txt '/slow' '/slow?ms=' '/slow?ms=x' '/slow?ms=-1' \
    '/slow?ms=1x' '/slow?ms=99999999999' '/slow?ms=1&ms=2'; do
    answers 400 "$target"
done
for method in POST PUT DELETE OPTIONS PATCH BREW; do
    answers 405 /index.html -X "$method"
done
answers 405 /slow?ms=1 -X POST -d ''
answers 405 /echo
answers 200 /slow?ms=0
answers 200 '/slow?x=y&ms=20'

says 'HEAD of a small file' 'Content-Length: 65536' "$(ask -I "$scheme://127.0.0.1:$port/small")"
says 'HEAD of a large file' 'Content-Length: 1000001' "$(ask -I "$scheme://127.0.0.1:$port/large.bin")"
says 'the type of a file' 'Content-Type: application/json' \
    "$(ask -I "$scheme://127.0.0.1:$port/folder/a%20b.json")"
says 'the type of a text' 'Content-Type: text/plain' "$(ask -I "$scheme://127.0.0.1:$port/notes.md")"
says 'methods' 'Allow: POST' "$(ask -i "$scheme://127.0.0.1:$port/echo")"

head -c 10000 "$root/large.bin" >"$scratch/largest"
gets "$scratch/largest" /echo --data-binary "@$scratch/largest"
gets "$scratch/largest" /echo --data-binary "@$scratch/largest" -H 'Transfer-Encoding: chunked'
gets "$scratch/largest" /echo --data-binary "@$scratch/largest" -H 'Expect: 100-continue'
gets "$root/nothing.css" /echo -X POST -d ''
answers 413 /echo --data-binary "@$root/large.bin"
answers 413 /echo --data-binary "@$root/small" -H 'Expect:'
answers 413 /echo --data-binary "@$root/small" -H 'Expect:' -H 'Transfer-Encoding: chunked'
answers 431 / -H "Long: $(printf 'x%.0s' {1..2000})"
answers 431 "/$(printf 'x%.0s' {1..3000})"

# One connection for several requests, one after the other and all at once.
same 'connections for three requests' 1 "$(ask -o /dev/null -o /dev/null -o /dev/null \
    -w '%{num_connects}\n' "$scheme://127.0.0.1:$port/"{,small,nothing} | grep -c 1)"
raw 'GET / HTTP/1.1\r\nHost: h\r\n\r\nPOST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbodyGET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n'
same 'answers to a pipeline' 'HTTP/1.1 200 OK HTTP/1.1 200 OK HTTP/1.1 404 Not Found ' \
    "$(grep -o 'HTTP/1.*' <<<"$heard" | tr '\n' ' ')"
says 'the body in a pipeline' $'\n\nbodyHTTP/1.1 404' "$heard"
raw 'GET / HTTP/1.0\r\n\r\n'
says 'HTTP/1.0' 'HTTP/1.0 200 OK' "$heard"

for bad in '\r\n\r\n' 'GET\r\n\r\n' 'GET / HTTP/1.1\r\nno colon\r\n\r\n' 'GET / HTTP/9.9\r\n\r\n' \
    'GET / HTTP/1.1\r\n\r\n' 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n' 'GET * HTTP/1.1\r\nHost: h\r\n\r\n' \
    'GET index.html HTTP/1.1\r\nHost: h\r\n\r\n' '\x16\x03\x01\x00\xff\x00\x01' '\0\0\0\0\r\n\r\n' \
    'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n' \
    'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n' \
    'POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'; do
    raw "$bad"
    says "answer to $bad" 'HTTP/1.1 400 Bad Request' "$heard"
    says "answer to $bad" 'Connection: close' "$heard"
done

# Clients that leave at a wrong moment.
for text in '' G 'GET / HTTP/1.1\r\nHost: h\r\n' 'GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n' \
    'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nxyz'; do
    printf "$text" >"$scratch/piece"
    cat "$scratch/piece" >"/dev/tcp/127.0.0.1/$port"
done
if [[ $layer == plain ]]; then
    "$programs/http_clients" --port "$port" --vanishing 40 --large-file /large.bin >"$scratch/clients" ||
        complain "$(<"$scratch/clients")"
fi
gets "$root/index.html" /

# --- drain: idle connections end, requests are finished ---------------------------------------------

get='GET /index.html HTTP/1.1\r\nHost: h\r\n\r\n'
open idle
open half
open busy
tell idle "$get"
tell half "${get}GET /folder/ HTTP/1.1\r\n"                       # in one piece: when the first ...
tell busy "${get}GET /slow?ms=2000 HTTP/1.1\r\nHost: h\r\n\r\n" # ... is answered, the second has started
hear idle 'the index'
hear half 'the index'
hear busy 'the index'
kill -TERM "$server"
closed idle
same 'an idle connection at its end' 1 "$(grep -c '^HTTP' <<<"$heard")"
answers 000 / 2>/dev/null || true # the server no longer listens
tell half 'Host: h\r\n\r\n'
closed half
says 'a request that was half sent' 'of the folder' "$heard"
says 'a request that was half sent' 'Connection: close' "$heard"
closed busy
says 'a running request' '2000 ms' "$heard"
says 'a running request' 'Connection: close' "$heard"
wait_for_end 0
says 'the summary' ', cut off 0' "$(<"$scratch/stderr")"
same 'the first words on stderr' 'draining on SIGTERM' "$(head -n 1 "$scratch/stderr")"
same 'lines on stderr' 6 "$(wc -l <"$scratch/stderr")"
says 'the log' '"GET /folder/ HTTP/1.1" 200 14 ' "$(<"$scratch/log")"
says 'the log' '"GET /index.html%00.txt HTTP/1.1" 400 16 ' "$(<"$scratch/log")"
says 'the log' '" 413 ' "$(<"$scratch/log")"
says 'the log' '" 431 ' "$(<"$scratch/log")"
[[ $layer == tls ]] || # with TLS they leave within the handshake
    says 'the log on one that left in the middle of a body' '"POST /echo HTTP/1.1" - 0 ' "$(<"$scratch/log")"
[[ $(<"$scratch/stderr") =~ 'in the middle of a handshake, request or answer '[1-9] ]] || complain 'nobody has been seen to leave'

# --- drain: requests that take too long are cut off -------------------------------------------------

start "${options[@]}" --root "$root" --drain 200ms
open busy
tell busy "${get}GET /slow?ms=50000 HTTP/1.1\r\nHost: h\r\n\r\n"
hear busy 'the index'
kill -INT "$server" 2>/dev/null
closed busy
same 'answers before the end' 1 "$(grep -c '^HTTP' <<<"$heard")"
wait_for_end 1
says 'the summary' ', cut off 1' "$(<"$scratch/stderr")"
says 'the summary' 'requests 2; answers 2xx 1, ' "$(<"$scratch/stderr")"
says 'the log' '"GET /slow?ms=50000 HTTP/1.1" - 0 *ms cut off' "$(<"$scratch/log")"

# --- time limits ------------------------------------------------------------------------------------

: >"$scratch/log"
start "${options[@]}" --root "$root" --idle 2s --header-timeout 2s --body-timeout 2s \
    --request-timeout 3s
open header
tell header 'GET / HTTP/1.1\r\n'
open body
tell body 'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nxyz'
open idle
tell idle "$get"
open dripping-header # neither limit is moved by a byte
tell dripping-header 'GET / HTTP/1.1\r\n'
trickle dripping-header
open dripping-body
tell dripping-body 'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 999\r\n\r\nxyz'
trickle dripping-body
open late
tell late 'GET /slow?ms=50000 HTTP/1.1\r\nHost: h\r\n\r\n'
exec {mute}<>"/dev/tcp/127.0.0.1/$port"
timeout 60 cat <&"$mute" >"$scratch/mute" || complain 'a mute connection is not closed'
same 'what a mute client is told' 0 "$(wc -c <"$scratch/mute")"

# Beast's stream closes its socket when a limit expires. Pawl's leaves time for an answer.
expected=
if [[ $timer == pawl ]]; then expected='HTTP/1.1 408 Request Timeout'; fi
for name in header body dripping-header dripping-body; do
    closed $name
    same "answer to a slow $name" "$expected" "$(head -n 1 <<<"$heard")"
done
kill "${trickling[@]}" 2>/dev/null || true # some have ended
wait "${trickling[@]}" 2>/dev/null || true
closed idle
says 'answer to one that falls silent then' 'the index' "$heard"
closed late
says 'answer to a request that takes too long' 'HTTP/1.1 503 Service Unavailable' "$heard"
kill -TERM "$server"
wait_for_end 0
case $layer in
    plain) counts='handshake 0, header 3, body 2, idle 2, write 0, request 1' ;;
    tls) counts='handshake 1, header 2, body 2, idle 2, write 0, request 1' ;;
esac
says 'the summary' "timeouts: $counts" "$(<"$scratch/stderr")"
for word in 'header timeout' 'body timeout' 'idle timeout' 'request timeout'; do
    says 'the log' " $word"$'\n' "$(<"$scratch/log")"$'\n'
done

# A client that is slow before its TLS handshake and after it: each has the limit of a header for itself.
if [[ $layer == tls ]]; then
    start "${options[@]}" --root "$root" --idle $long --header-timeout 4s --request-timeout $long
    heard=$(python3 - "$port" <<'END'
import socket, ssl, sys, time

connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
time.sleep(2.5)
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
with context.wrap_socket(connection) as secure:
    time.sleep(2.5)
    secure.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    print(secure.recv(1000).decode())
END
    ) || true
    says 'answer to one that is slow twice' 'HTTP/1.1 200 OK' "$heard"
    kill -TERM "$server"
    wait_for_end 0
    says 'the summary' 'timeouts: handshake 0, header 0,' "$(<"$scratch/stderr")"
fi

# Clients that do not read their answers; the file is larger than all buffers together.
if [[ $layer == plain ]]; then
    truncate -s 64M "$root/huge"
    : >"$scratch/log"
    start "${options[@]}" --root "$root" --idle $long --header-timeout $long --request-timeout $long \
        --write-timeout 2s
    "$programs/http_clients" --port "$port" --write-timeout 2s --tolerance 20s --deaf 5 --large-file /huge \
        >"$scratch/clients" || complain "$(<"$scratch/clients")"
    kill -TERM "$server"
    wait_for_end 0
    says 'the summary' 'timeouts: handshake 0, header 0, body 0, idle 0, write 5, request 0' "$(<"$scratch/stderr")"
    same 'write timeouts in the log' 5 "$(grep -c '"GET /huge HTTP/1.1" 200 .* write timeout$' "$scratch/log")"
fi

finish
