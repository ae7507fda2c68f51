# Functions that the scripts of this folder share; to be sourced.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Prints the executables that a `cargo test --no-run` or `cargo build` with these arguments makes.
executables() {
    cargo "$@" --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# Prints the name of a test binary: its path without folder and hash.
name_of() {
    basename "$1" | sed 's/-[0-9a-f]\{16\}$//'
}

# Runs a command with its output in a file; prints one line that says how it went, and the reasons of
# what was skipped.
# part LABEL LOG COMMAND...
part() {
    local label=$1 log=$2 start=$SECONDS result=ok
    shift 2
    "$@" >"$log" 2>&1 || result="FAILED (see $log)"
    printf '%-40s %s, %ds\n' "$label" "$result" $((SECONDS - start))
    grep -aoE 'skipped: .*' "$log" | sort | uniq -c | sed 's/^/    /' || true
    [ "$result" = ok ]
}

# Installs playwright-core, which drives browsers, into a folder; and Chromium, if there is none.
install_browser() {
    [ -x "${CHROMIUM:-/usr/bin/chromium}" ] || install_packages chromium
    [ -x "${CHROMIUM:-/usr/bin/chromium}" ] || { echo "there is no Chromium (CHROMIUM says where)"; exit 1; }
    [ -d "$1/node_modules/playwright-core" ] ||
        npm install --prefix "$1" --no-audit --no-fund --silent playwright-core@1
}

# Installs these packages of Debian, where that may be done. Says so if it fails.
install_packages() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        (export DEBIAN_FRONTEND=noninteractive
         apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@") >/dev/null 2>&1 ||
            echo "note: could not install $*"
    else
        echo "note: not installed, since this is not root with apt-get; tests that need them are skipped: $*"
    fi
}
