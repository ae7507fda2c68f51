//! Names as they are in the source.

/// Demangles a name of Rust (both schemes) or C++. Any other name is returned as it is.
pub(super) fn name(mangled: &str) -> String {
    // Fortran and others may name functions as Rust does: only what begins like its two schemes.
    if let Ok(demangled) = rustc_demangle::try_demangle(mangled) {
        // Without the hash at the end.
        return format!("{demangled:#}");
    }
    if mangled.starts_with("_Z") {
        return addr2line::demangle_auto(
            mangled.into(),
            Some(addr2line::gimli::DW_LANG_C_plus_plus),
        )
        .into_owned();
    }
    mangled.to_string()
}
