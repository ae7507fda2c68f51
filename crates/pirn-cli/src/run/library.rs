//! Where `libpirn.so` is.

use std::env;
use std::path::{Path, PathBuf};

/// The variable that says so.
const VARIABLE: &str = "PIRN_LIBRARY";
const NAME: &str = "libpirn.so";

/// Returns the path of the library: what the variable says, or beside this command, or in `lib` or
/// `lib64` beside this command's folder.
///
/// # Errors
/// It is in none of these, or its path cannot be in `LD_PRELOAD`.
pub fn find() -> Result<PathBuf, String> {
    let path = match env::var_os(VARIABLE) {
        Some(path) => {
            let path = PathBuf::from(path);
            if !path.is_file() {
                return Err(format!(
                    "{VARIABLE} is '{}', which is not a file",
                    path.display()
                ));
            }
            // Children may have another working directory.
            std::path::absolute(path).map_err(|error| error.to_string())?
        }
        None => {
            let own = env::current_exe().map_err(|error| error.to_string())?;
            near(own.parent().unwrap_or(Path::new("/")))?
        }
    };
    match path.as_os_str().as_encoded_bytes() {
        bytes if bytes.iter().any(|byte| b": ".contains(byte)) => Err(format!(
            "the path '{}' has a colon or a space, which LD_PRELOAD takes for the end of a name",
            path.display()
        )),
        _ => Ok(path),
    }
}

/// Finds the library near the folder of a command.
fn near(folder: &Path) -> Result<PathBuf, String> {
    let prefix = folder.parent().unwrap_or(Path::new("/"));
    let lib = prefix.join("lib");
    // Fedora and its relatives have libraries for 64 bits in lib64.
    let places = [folder, &lib, &prefix.join("lib64")].map(|place| place.join(NAME));
    match places.iter().find(|place| place.is_file()) {
        Some(place) => Ok(place.clone()),
        None => Err(format!(
            "there is no {NAME} in {} or {}: build it by `cargo build --release -p pirn-preload`, \
             or set {VARIABLE} to its path",
            folder.display(),
            lib.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn it_is_beside_the_command_or_in_lib() {
        let name = format!("pirn-run-library-{}", std::process::id());
        let root = env::temp_dir().join(name);
        let (bin, lib, lib64) = (root.join("bin"), root.join("lib"), root.join("lib64"));
        for folder in [&bin, &lib, &lib64] {
            fs::create_dir_all(folder).unwrap();
        }
        let error = near(&bin).unwrap_err();
        assert!(
            error.contains("cargo build --release -p pirn-preload"),
            "{error}"
        );
        fs::write(lib64.join(NAME), "").unwrap();
        assert_eq!(near(&bin), Ok(lib64.join(NAME)));
        fs::write(lib.join(NAME), "").unwrap();
        assert_eq!(near(&bin), Ok(lib.join(NAME)));
        fs::write(bin.join(NAME), "").unwrap();
        assert_eq!(near(&bin), Ok(bin.join(NAME)));
        fs::remove_dir_all(root).unwrap();
    }
}
