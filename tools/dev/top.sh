#: top [ADDRESS]                    show the timers of a process in the terminal, from its /metrics; ADDRESS: URL, HOST:PORT,
#:                                  unix:PATH; 127.0.0.1:8080 (default); ./dev top --help

need python3:python3
exec python3 tools/top.py "$@"
