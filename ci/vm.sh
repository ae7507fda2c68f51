# A virtual machine whose memory holds its files: a small tree of Debian, the tests of `pirn` and the
# repository's files that these read. To be sourced after common.sh.

# put_tests ROOT STRIP [TEST...]: builds the tests of `pirn` (without names: all), and puts them into
# the tree below ROOT.
put_tests() {
    local root=$1 strip=$2 binary name
    shift 2
    echo "building the tests"
    rm -rf "$root/tests" "$root$PWD"
    mkdir -p "$root/tests" "$root$PWD"
    git archive HEAD crates/pirn | tar -x -C "$root$PWD"
    executables test -q -p pirn --no-run | while read -r binary; do
        name=$(name_of "$binary")
        [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
        "$strip" --strip-debug -o "$root/tests/$name" "$binary"
    done
}

# run_tests ROOT KERNEL CONSOLE QEMU...: boots a machine with the tree below ROOT, which runs the tests
# there, and writes to ROOT.log what has passed and failed. CONSOLE is its serial port's name.
run_tests() {
    local root=$1 kernel=$2 console=$3
    shift 3
    cat >"$root/init" <<INIT
#!/bin/bash
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
mount -t devtmpfs devtmpfs /dev
exec </dev/null >/dev/$console 2>&1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
busybox ifconfig lo 127.0.0.1 up
echo '127.0.0.1 localhost' >/etc/hosts
ulimit -n 65536
echo 2000000 >/proc/sys/vm/max_map_count # as \`pirn doctor\` says
cd $PWD/crates/pirn
export CARGO_MANIFEST_DIR=\$PWD RUST_BACKTRACE=0 PIRN_TEST_SLOWNESS=20
echo "Linux \$(uname -r), pages of \$(getconf PAGESIZE) bytes, \$(getconf GNU_LIBC_VERSION)"
failed=0
for test in /tests/*; do
    name=\${test##*/}
    if "\$test" --skip gdb:: >/tmp/output 2>&1; then
        echo "\$name: \$(grep -a '^test result' /tmp/output)"
    else
        echo "\$name: FAILED (\$?)"
        grep -a -A200 '^failures:' /tmp/output || tail -n 100 /tmp/output
        failed=1
    fi
    grep -aoE 'skipped: .*' /tmp/output | sort | uniq -c
done
[ \$failed = 1 ] || echo 'all passed'
echo o >/proc/sysrq-trigger
sleep 60
INIT
    chmod +x "$root/init"
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$root.cpio"
    "$@" -smp 2 -m 8G -nodefaults -display none -no-reboot -serial stdio -kernel "$kernel" \
        -initrd "$root.cpio" -append "console=$console loglevel=3 ${kernel_arguments:-}" </dev/null |
        tee "$root.log"
    rm -f "$root.cpio"
    grep -q '^all passed' "$root.log"
}
