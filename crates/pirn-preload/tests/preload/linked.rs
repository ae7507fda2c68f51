//! The library as installed, linked to the examples.

use crate::shared::{self, Folder, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Installs the library in a folder.
fn install(folder: &Folder) {
    let mut install = Command::new(own("../../packaging/install"));
    install.arg("--prefix").arg(folder.path());
    install
        .arg("--from")
        .arg(shared::library().parent().unwrap());
    install.env_remove("DESTDIR");
    run(&mut install);
}

/// Returns whether there is a command; if not, prints that a test is skipped.
fn has(command: &str) -> bool {
    let found = Command::new(command).arg("--version").output().is_ok();
    if !found {
        println!("skipped: no `{command}`");
    }
    found
}

/// Runs a program that finds the library by the path of the dynamic linker.
fn run_linked(program: &Path, folder: &Folder) -> String {
    let mut command = shared::preloaded(program);
    command.env_remove("LD_PRELOAD").env_remove("PIRN_LOG");
    run(command.env("LD_LIBRARY_PATH", folder.path().join("lib"))).0
}

const SLEEPERS: &str = "10000 virtual threads, sum 49995000\none of each kind: yes\n\
                        a permit: 0, none: timed out\n";
const ECHO: &str = "500 answers to 500 virtual threads\n";

#[test]
fn the_examples_are_built_by_pkg_config() {
    let folder = Folder::new();
    install(&folder);
    if !["pkg-config", "cc", "c++"].into_iter().all(has) {
        return;
    }
    let mut flags = Command::new("pkg-config");
    flags.env("PKG_CONFIG_PATH", folder.path().join("lib/pkgconfig"));
    let (flags, _) = run(flags.args(["--cflags", "--libs", "pirn"]));
    for (compiler, source, expected) in [
        ("cc", "examples/sleepers.c", SLEEPERS),
        ("c++", "examples/echo.cpp", ECHO),
    ] {
        let program = folder.path().join("program");
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"]);
        run(command
            .arg(&program)
            .arg(own(source))
            .args(flags.split_whitespace()));
        assert_eq!(run_linked(&program, &folder), expected);
    }
}

#[test]
fn the_examples_are_built_by_cmake() {
    let folder = Folder::new();
    install(&folder);
    if !["cmake", "make", "cc", "c++"].into_iter().all(has) {
        return;
    }
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let text = format!(
        "cmake_minimum_required(VERSION 3.13)\nproject(examples C CXX)\n\
         find_package(Pirn 0.1 REQUIRED)\nset(CMAKE_CXX_STANDARD 17)\n\
         add_executable(sleepers {})\nadd_executable(echo {})\n\
         foreach(one sleepers echo)\n  target_link_libraries(${{one}} PRIVATE Pirn::pirn)\n\
         endforeach()\n",
        own("examples/sleepers.c").display(),
        own("examples/echo.cpp").display()
    );
    std::fs::write(source.join("CMakeLists.txt"), text).unwrap();
    let build = folder.path().join("build");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(&source).arg("-B").arg(&build);
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", folder.path().display()));
    run(&mut cmake);
    run(Command::new("cmake").arg("--build").arg(&build));
    assert_eq!(run_linked(&build.join("sleepers"), &folder), SLEEPERS);
    assert_eq!(run_linked(&build.join("echo"), &folder), ECHO);
}
