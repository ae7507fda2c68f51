# Functions that the scripts of this folder share; to be sourced.

# shellcheck source=ci/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$CARGO_TARGET_DIR"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
work=$CARGO_TARGET_DIR/stories/$(basename "$0")
mkdir -p "$work"
rounds=${ROUNDS:-3}
server=

# Builds `pirn` and `libpirn.so`, and sets `pirn`; PIRN names one that has been built already.
build_pirn() {
    [ -n "${PIRN:-}" ] || cargo build --release -p pirn-preload -p pirn-cli
    pirn=${PIRN:-$CARGO_TARGET_DIR/release/pirn}
}

# start LOG COMMAND...: starts a server, whose port is $port, and waits until it accepts.
start() {
    "${@:2}" </dev/null >"$1" 2>&1 &
    server=$!
    for _ in $(seq 600); do
        ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 0
        sleep 0.1
    done
    echo "the server does not answer: see $1"
    return 1
}

# Ends the server.
stop() {
    [ -n "$server" ] || return 0
    kill "$server" 2>/dev/null || true
    for _ in $(seq 100); do
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}
trap stop EXIT

# The processor time of a process, in ticks of 10 ms.
ticks() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# A line of /proc/PID/status, as a number.
status_of() {
    awk -v line="$2:" '$1 == line { print $2 }' "/proc/$1/status"
}

# The free port that comes next: connections of the one before may still be in TIME_WAIT.
port=$((20000 + RANDOM % 10000))
next_port() {
    port=$((port + 1))
    while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
}

# row LABEL PID RATE P50 P99 THREADS TICKS COUNT: adds a row to $work/rows, of a process that had TICKS
# at the start and has served COUNT since, and prints it.
row() {
    awk -v spent=$(($(ticks "$2") - $7)) -v count="$8" -v memory="$(status_of "$2" VmHWM)" \
        -v first="$1|$3|$4|$5" -v threads="$6" 'BEGIN { print first "|" memory / 1024 "|" threads "|" \
            (count > 9 ? spent * 10 / count : "-") }' | tee -a "$work/rows"
}

# load LABEL PID N WAITS PAGES...: 1,000 connections of wrk, with ci/stories/mix.lua; adds a row.
load() {
    local before sender threads rate p50 p99 count errors
    before=$(ticks "$2")
    wrk -t 1 -c 1000 -d "$seconds" --timeout 30 -s ci/stories/mix.lua "http://127.0.0.1:$port/" \
        -- "${@:3}" >"$work/wrk" &
    sender=$!
    sleep $((seconds - 3))
    threads=$(status_of "$2" Threads)
    wait "$sender"
    read -r rate p50 p99 count errors < <(sed -n 's/^result //p' "$work/wrk")
    row "$1" "$2" "$rate" "$p50" "$p99" "$threads" "$before" "$count"
    [ "$errors" = 0 ] || echo "$1: $errors errors"
}

# The time in ms.
now() {
    echo $(($(date +%s%N) / 1000000))
}

# report UNIT: prints the medians of the rows.
report() {
    echo
    echo "| medians of $rounds rounds | $1s/s | p50, ms | p99, ms | memory, MiB | OS threads | CPU per $1, ms |"
    echo '|---|---|---|---|---|---|---|'
    cut -d'|' -f1 "$work/rows" | awk '!seen[$0]++' | while read -r label; do
        printf '| %s ' "$label"
        for column in 2 3 4 5 6 7; do
            awk -F'|' -v label="$label" -v column=$column '$1 == label { print $column }' "$work/rows" |
                sort -n | awk -v format="$([ $column = 7 ] && echo '| %.2f ' || echo '| %.0f ')" '
                    { value[NR] = $1 }
                    END { v = value[int((NR + 1) / 2)]; if (NR) printf v == "-" ? "| – " : format, v }'
        done
        echo '|'
    done
}
