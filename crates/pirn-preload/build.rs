//! How the library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The name that programs linked with it ask for.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpirn.so.0");
    // Its references to its own functions are bound when it is linked. Each of them would be looked
    // up when a program starts, and a program of which no thread is made pays for each.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
