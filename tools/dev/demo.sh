#: demo [pawl|asio]                 build the examples, run the HTTP server against real clients
#: demo --stay                      keep that server running under a light load until Ctrl-C, to look at its page of timers
#: demo idle [ARGUMENTS]            the same with the idle echo server; ARGUMENTS: of demo_clients
#: demo lua                         run a cron in Lua for ten seconds, and print how late its jobs are

script=demo
case ${1-} in
    "" | pawl | asio | --stay) (($# <= 1)) || does_not_know "$2" ;;
    idle)
        script=idle_echo_demo
        shift
        ;;
    lua)
        (($# == 1)) || does_not_know "$2"
        build optimised g++ lua_host
        unlock
        "$dir/examples/lua_host/lua_host" examples/lua_host/cron.lua --lateness --for 10 examples/lua_host/crontab
        exit
        ;;
    *) does_not_know "$1" pawl asio --stay idle lua ;;
esac
need curl:curl wrk:wrk openssl:openssl
build optimised g++ examples
unlock
"examples/$script.sh" "$dir/examples" "$@"
