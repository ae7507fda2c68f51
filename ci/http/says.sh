# What the scripts of this folder share that look for lines in what a tool prints; to be sourced.
# shellcheck disable=SC2034 # the scripts print these
checks=0 failed=0

# says WHAT PATTERN TEXT: the text has a line that matches.
says() {
    checks=$((checks + 1))
    grep -qE "$2" <<<"$3" && return
    printf 'FAILED: %s: no "%s" in:\n%s\n' "$1" "$2" "$(tail -n 40 <<<"$3")"
    failed=1
}
