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

# Installs playwright-core, which drives browsers, into a folder; and Chromium, if it is missing.
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

# Prints the mirror of Debian that this machine's apt uses.
debian_mirror() {
    local mirror
    mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        awk -v release="$(. /etc/os-release && echo "$VERSION_CODENAME")" '$1 == release { print $2; exit }')
    [ -n "$mirror" ] || { echo "apt knows no mirror of this release" >&2; return 1; }
    echo "$mirror"
}

# Runs apt-get, with all of its state below $1, for packages of $architecture, or else this machine's.
apt_in() {
    local folder=$1 for_processor=${architecture:-$(dpkg --print-architecture)}
    shift
    apt-get -qq -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" \
        -o Dir::Cache="$folder/cache" -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
        -o APT::Architecture="$for_processor" -o APT::Architectures="$for_processor" \
        -o APT::Update::Post-Invoke-Success::= "$@"
}

# unpack FOLDER RELEASE PACKAGE[=VERSION]...: unpacks packages of $mirror into $work/FOLDER/root, unless
# that has been done. With a pattern in $needed it unpacks what has a matching name among these
# packages and all that they depend on.
unpack() {
    local folder=$work/$1 release=$2
    shift 2
    [ "$(cat "$folder/complete" 2>/dev/null)" != "$*" ] || return 0
    rm -rf "$folder"
    mkdir -p "$folder"/{state/lists/partial,cache/archives/partial,root,debs}
    : >"$folder/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" \
        >"$folder/sources.list"
    apt_in "$folder" update
    local packages=("$@") package
    if [ -n "${needed:-}" ]; then
        mapfile -t packages < <(apt_in "$folder" -y install --print-uris "$@" |
            awk '{ split($2, name, "_"); print name[1] }' | grep -E "$needed")
    fi
    (cd "$folder/debs" && apt_in "$folder" download "${packages[@]}") || return
    for package in "$folder"/debs/*.deb; do
        dpkg -x "$package" "$folder/root"
    done
    rm -rf "$folder"/{state,cache,debs}
    echo "$*" >"$folder/complete"
}
