//! The programs in Java, and the JDK they need.

use super::tools::{Places, run};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The first version with all that is compared: virtual threads that monitors do not pin, scoped
/// values, structured concurrency by joiners.
const OLDEST: u32 = 25;

/// The first version that runs the program with nothing but platform threads.
const PLAIN: u32 = 17;

/// The version whose preview of structured concurrency is measured: each JDK has its own.
const PREVIEW: u32 = 25;

/// A JDK that is new enough.
#[derive(Clone, Debug)]
pub struct Jdk {
    home: PathBuf,
    version: String,
    /// Why the one that `JAVA_HOME` names is not this one.
    pub refused: Option<String>,
}

impl Jdk {
    /// The one that `JAVA_HOME` names, or else the newest that the system has.
    ///
    /// # Errors
    ///
    /// If none is new enough; those that are not are named.
    pub fn find() -> Result<Jdk, String> {
        let named = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
        choose(named.map(PathBuf::from), installed())
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    fn tool(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    fn has_preview(&self) -> bool {
        numbers(&self.version).first() == Some(&PREVIEW)
    }
}

/// The oldest from 17 on: programs for it run on all of them, and know nothing of virtual threads.
pub fn plain() -> Option<Jdk> {
    let named = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let homes = named.into_iter().chain(installed());
    let found = homes.filter_map(|home| from(&home, PLAIN).ok());
    found.min_by_key(|jdk| numbers(&jdk.version))
}

fn choose(named: Option<PathBuf>, installed: Vec<PathBuf>) -> Result<Jdk, String> {
    let mut refused = Vec::new();
    if let Some(home) = named {
        match from(&home, OLDEST) {
            Ok(jdk) => return Ok(jdk),
            Err(why) => refused.push(format!("JAVA_HOME: {why}")),
        }
    }
    let why_not_named = refused.first().cloned();
    let mut found = Vec::new();
    for home in installed {
        match from(&home, OLDEST) {
            Ok(jdk) => found.push(jdk),
            Err(why) => refused.push(why),
        }
    }
    let newest = found.into_iter().max_by_key(|jdk| numbers(&jdk.version));
    match newest {
        Some(jdk) => Ok(Jdk {
            refused: why_not_named,
            ..jdk
        }),
        None => {
            let all = refused
                .iter()
                .map(|why| format!("; {why}"))
                .collect::<String>();
            Err(format!(
                "no JDK {OLDEST} or newer was found (set JAVA_HOME to one){all}"
            ))
        }
    }
}

/// A JDK at this place, if there is one and it is new enough.
fn from(home: &Path, oldest: u32) -> Result<Jdk, String> {
    let release = fs::read_to_string(home.join("release")).unwrap_or_default();
    let version = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="));
    let name = home
        .file_name()
        .unwrap_or(home.as_os_str())
        .to_string_lossy();
    let Some(version) = version.map(|quoted| quoted.trim_matches('"').to_owned()) else {
        return Err(format!(
            "{name} is no JDK (it has no file `release` with JAVA_VERSION)"
        ));
    };
    if numbers(&version)
        .first()
        .is_none_or(|&major| major < oldest)
    {
        return Err(format!(
            "{name} is JDK {version}, which is refused: {oldest} or newer is needed"
        ));
    }
    if !home.join("bin").join("javac").exists() {
        return Err(format!(
            "{name} is JDK {version} without a compiler (bin/javac)"
        ));
    }
    Ok(Jdk {
        home: home.to_owned(),
        version,
        refused: None,
    })
}

/// `25.0.3` as numbers, to be compared.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.split(['.', '-', '+', '_']);
    parts.map_while(|part| part.parse().ok()).collect()
}

/// Places where systems and tools put JDKs.
fn installed() -> Vec<PathBuf> {
    let mut folders = vec![
        PathBuf::from("/usr/lib/jvm"),
        "/opt".into(),
        "/usr/java".into(),
    ];
    if let Some(home) = std::env::home_dir() {
        folders.push(home.join(".sdkman/candidates/java"));
        folders.push(home.join(".jdks"));
    }
    let entries = folders
        .into_iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten();
    let mut homes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    homes.retain(|home| home.join("release").exists());
    homes.sort();
    homes
}

/// Compiles the program, and what needs the preview where the JDK has it: without it the program
/// says so.
///
/// # Errors
///
/// What the compiler said.
pub fn build(jdk: &Jdk, places: &Places) -> Result<(), String> {
    let release = OLDEST.to_string();
    let flags = ["-Xlint:all", "--release", &release];
    compile(jdk, places, "src", &flags)?;
    if !jdk.has_preview() {
        return Ok(());
    }
    let release = PREVIEW.to_string();
    let flags = [
        "-Xlint:all,-preview",
        "--enable-preview",
        "--release",
        &release,
    ];
    compile(jdk, places, "preview", &flags)
}

/// Compiles the sources below a folder of the program.
fn compile(jdk: &Jdk, places: &Places, folder: &str, flags: &[&str]) -> Result<(), String> {
    let mut sources = Vec::new();
    files_below(&places.peers.join("java").join(folder), &mut sources);
    let out = places.out.join("java");
    // A class path that is not there is a warning, and the first folder has none yet.
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut command = Command::new(jdk.tool("javac"));
    command.args(flags).arg("-Werror");
    command.arg("-cp").arg(&out).arg("-d").arg(&out);
    run(command.args(sources), "javac").map(drop)
}

/// Compiles the program that is for any JDK from 17 on; gives how to start it.
///
/// # Errors
///
/// What the compiler said.
pub fn threads(jdk: &Jdk, places: &Places) -> Result<Vec<OsString>, String> {
    let mut sources = Vec::new();
    files_below(&places.peers.join("run/java"), &mut sources);
    let out = places.out.join("run-java");
    let mut command = Command::new(jdk.tool("javac"));
    let release = PLAIN.to_string();
    command.args(["-Xlint:all,-options", "-Werror", "--release", &release]);
    command.args(["-encoding", "UTF-8", "-d"]).arg(&out);
    run(command.args(sources), "javac")?;
    let java = jdk.tool("java").into();
    Ok(vec![java, "-cp".into(), out.into(), "run.Main".into()])
}

/// How to start it with this kind of thread, and its flags.
pub fn command(jdk: &Jdk, places: &Places, threads: &str) -> (Vec<OsString>, String) {
    let flags = flags(places);
    let mut command = vec![jdk.tool("java").into()];
    command.extend(flags.iter().map(OsString::from));
    command.extend(["-cp".into(), places.out.join("java").into()]);
    command.extend(["peer.Main".into(), threads.into()]);
    (command, format!("java {}", flags.join(" ")))
}

/// Flags of the virtual machine: a file with the reasons.
fn flags(places: &Places) -> Vec<String> {
    let text = fs::read_to_string(places.peers.join("java").join("flags.txt")).unwrap_or_default();
    let lines = text.lines().map(str::trim);
    let flags = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    flags.map(str::to_owned).collect()
}

/// Builds the project in a folder with Maven, unless it is built; gives how to start its class
/// `main`, and its flags.
///
/// # Errors
///
/// That Maven is missing, or what it said.
pub fn maven(
    jdk: &Jdk,
    places: &Places,
    folder: &str,
    main: &str,
) -> Result<(Vec<OsString>, String), String> {
    let (project, out) = (places.peers.join(folder), places.out.join(folder));
    let jar = out.join(format!("{folder}-peer.jar"));
    let mut sources = vec![project.join("pom.xml")];
    files_below(&project.join("src"), &mut sources);
    // It speaks the protocol with the classes of the other program.
    files_below(&places.peers.join("java"), &mut sources);
    if modified(&jar)
        < sources
            .iter()
            .map(|source| modified(source))
            .max()
            .flatten()
    {
        let mut command = Command::new("mvn");
        command
            .args(["-q", "-B", "-f"])
            .arg(project.join("pom.xml"));
        command
            .arg("package")
            .arg(format!("-Dbench.out={}", out.display()));
        run(command.env("JAVA_HOME", &jdk.home), "mvn")?;
    }
    let flags = flags(places);
    let mut command = vec![jdk.tool("java").into()];
    command.extend(flags.iter().map(OsString::from));
    let class_path =
        std::env::join_paths([jar, out.join("libs/*")]).map_err(|error| error.to_string())?;
    command.extend(["-cp".into(), class_path, main.into()]);
    Ok((command, format!("java {}", flags.join(" "))))
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).ok()?.modified().ok()
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests;
