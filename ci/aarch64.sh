# What builds for aarch64, and runs what was built, on another processor; to be sourced after
# common.sh. Sets cargo's variables, and `emulator`.
#
# Debian's cross compiler is installed. The rest is unpacked into the folder PIRN_CI_CACHE
# (target/aarch64-tools), and kept there: the compiler, unless rustup has one that knows the target;
# and qemu-user 11, since older ones say that they have made a guard page, and make none.

# Of Debian's sid, which has no version but the newest.
rust_version=1.97.1+dfsg1-1
qemu_version=1:11.1.3+ds-1

# give_up REASON...: leaves the script, which has not failed.
give_up() {
    echo "skipped: $*"
    exit 0
}

# from_sid FOLDER VARIABLE PACKAGE...: unpacks packages whose version a variable of this file says.
from_sid() {
    unpack "$1" sid "${@:3}" || {
        echo "if sid has another version by now, change $2 in ci/aarch64.sh" >&2
        exit 1
    }
}

# Unpacks sid's compiler, and prints its path. It is of a newer C library than this machine's, and runs
# by the loader that comes with that.
compiler_of_sid() {
    local root=$work/rust/root std=usr/lib/rustlib/aarch64-unknown-linux-gnu
    from_sid rust rust_version "rustc=$rust_version" "libstd-rust-dev=$rust_version" libstd-rust-1.97 \
        libllvm22 libc6 libgcc-s1 libstdc++6 zlib1g libzstd1 libz3-4 libffi8 libedit2 libxml2-16 \
        libtinfo6 libbsd0 libmd0
    architecture=arm64 from_sid rust-std rust_version "libstd-rust-dev=$rust_version"
    ln -sfn "$work/rust-std/root/$std" "$root/$std"
    cat >"$work/rustc" <<EOF
#!/bin/sh
exec '$root/usr/lib64/ld-linux-x86-64.so.2' --library-path '$root/usr/lib/x86_64-linux-gnu' \\
    '$root/usr/bin/rustc' --sysroot '$root/usr' "\$@"
EOF
    chmod +x "$work/rustc"
    echo "$work/rustc"
}

[ "$(uname -m)" = x86_64 ] || give_up "the tools are for x86-64; on aarch64, ci/check tests this processor"
command -v aarch64-linux-gnu-gcc >/dev/null || install_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross
command -v aarch64-linux-gnu-gcc >/dev/null || give_up "there is no aarch64-linux-gnu-gcc"

target_folder=${CARGO_TARGET_DIR:-$PWD/target}
work=${PIRN_CI_CACHE:-$target_folder/aarch64-tools}
mkdir -p "$work"
work=$(cd "$work" && pwd)
unset PIRN_CI_CACHE # programs with Pirn complain of settings that they do not know
mirror=
[ "$(. /etc/os-release && echo "$ID")" != debian ] || mirror=$(debian_mirror)

if timeout 600 rustup -q target add aarch64-unknown-linux-gnu; then
    :
elif [ -n "$mirror" ]; then
    RUSTC=$(compiler_of_sid)
    export RUSTC
else
    give_up "rustup has no compiler for aarch64, and this is not Debian, whose sid has one"
fi

if [ -n "$mirror" ]; then
    from_sid qemu qemu_version "qemu-user=$qemu_version"
    emulator=$work/qemu/root/usr/bin/qemu-aarch64
    find "$work/qemu/root" -name 'qemu-*' ! -name qemu-aarch64 -type f -delete # 440 MB of others
else
    command -v qemu-aarch64 >/dev/null || install_packages qemu-user
    emulator=$(command -v qemu-aarch64) || give_up "there is no qemu-aarch64"
fi

export CARGO_TARGET_DIR=$target_folder/aarch64
export CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$emulator
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
# Where the emulator finds the loader and the C library, in programs that tests start, too.
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
