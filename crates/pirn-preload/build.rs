//! Gives the library the name that programs linked with it ask for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpirn.so.0");
}
