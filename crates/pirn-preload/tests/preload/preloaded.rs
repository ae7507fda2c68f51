//! Programs that know nothing of the library.

use crate::shared::{self, Folder, build, preloaded, run, texts};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// Returns what a run of `threads.c` says about its threads, and the report at its end.
fn kind(command: &mut Command) -> (String, String) {
    let (out, report) = run(command);
    (out.split(',').next().unwrap().to_owned(), report)
}

fn built(folder: &Folder) -> Option<std::path::PathBuf> {
    build(folder, "tests/c/threads.c", &[])
}

#[test]
fn a_program_has_virtual_threads_and_says_so() {
    let folder = Folder::new();
    let Some(program) = built(&folder) else {
        return;
    };
    let (kind, report) = kind(&mut preloaded(&program));
    assert_eq!(kind, "virtual");
    assert!(report.contains(": 100 virtual and 0 platform threads, at most 100 at once; "));
    assert!(report.starts_with("pirn: threads-c ("), "{report}");
}

#[test]
fn a_program_that_is_not_position_independent_has_virtual_threads() {
    let folder = Folder::new();
    let Some(program) = build(&folder, "tests/c/threads.c", &["-no-pie", "-fno-pie"]) else {
        return;
    };
    let (kind, report) = kind(&mut preloaded(&program));
    assert_eq!(kind, "virtual", "{report}");
}

#[test]
fn without_memory_the_first_thread_is_refused_as_natively() {
    shared::as_natively_in("tests/c/no_memory.c", "");
}

#[test]
fn without_the_variable_nothing_is_reported() {
    let folder = Folder::new();
    let Some(program) = built(&folder) else {
        return;
    };
    let (kind, report) = kind(preloaded(&program).env_remove("PIRN_LOG"));
    assert_eq!((kind.as_str(), report.as_str()), ("virtual", ""));
}

#[test]
fn a_program_without_threads_says_so_and_its_forked_children_nothing() {
    let mut shell = preloaded(Path::new("/bin/bash"));
    let (_, report) = run(shell.args(["-c", "(exit 0); (exit 0)"]));
    assert_eq!(report.lines().count(), 1, "{report}");
    assert!(
        report
            .trim_end()
            .ends_with("): the program made no threads")
    );
}

#[test]
fn it_can_be_switched_off() {
    let folder = Folder::new();
    let Some(program) = built(&folder) else {
        return;
    };
    let (kind, report) = kind(preloaded(&program).env("PIRN_PTHREADS", "platform"));
    assert_eq!((kind.as_str(), report.as_str()), ("platform", ""));
}

#[test]
fn a_thread_that_is_virtual_by_name_is_joined_whatever_the_settings_say() {
    let folder = Folder::new();
    let Some(program) = build(&folder, "tests/c/by_name.c", &[]) else {
        return;
    };
    for setting in ["virtual", "platform"] {
        let (out, _) = run(preloaded(&program).env("PIRN_PTHREADS", setting));
        assert_eq!(out, "0 0 virtual\n", "{setting}");
    }
}

#[test]
fn a_bad_address_is_an_error_before_the_first_thread() {
    let folder = Folder::new();
    let Some(program) = build(&folder, "tests/c/before.c", &[]) else {
        return;
    };
    assert_eq!(run(&mut preloaded(&program)).0, "-1 EFAULT\n");
}

#[test]
fn threads_of_openmp_do_not_hold_all_carriers() {
    let folder = Folder::new();
    let Some(program) = build(&folder, "tests/c/openmp.c", &["-fopenmp"]) else {
        return;
    };
    let (out, report) = run(preloaded(&program).env("PIRN_SPARE_CARRIERS", "0"));
    assert_eq!(out, "9920 in 20 rounds\n");
    assert!(report.contains(": 0 virtual and 31 platform threads (31 of a library that makes"));
}

/// The loading thread has the linker's lock meanwhile, and the runtime may start there. It may wait
/// for its threads there, too. 40 more libraries find room for their thread-local data.
#[test]
fn the_constructors_of_libraries_start_threads() {
    let (folder, libraries, waiting) = (Folder::new(), Folder::new(), Folder::new());
    let source = "tests/c/constructors.c";
    let flags = ["-DLIBRARY", "-shared", "-fPIC", "-DWAITS"];
    let Some(library) = build(&libraries, source, &flags[..3]) else {
        return;
    };
    let waiting = build(&waiting, source, &flags).unwrap();
    let Some(program) = build(&folder, source, &["-ldl"]) else {
        return;
    };
    let copy = |i: usize| {
        let copy = libraries.path().join(format!("copy-{i}"));
        fs::copy(&library, &copy).unwrap();
        copy
    };
    let copies: Vec<_> = (0..40).map(copy).collect();
    for when in ["first", "later"] {
        let mut command = preloaded(&program);
        let (out, report) = run(command.arg(&library).arg(when).args(&copies));
        assert_eq!(out, "4 virtual, 4 ended\n", "{when}: {report}");
        let (out, report) = run(preloaded(&program).arg(&waiting).arg(when));
        assert_eq!(out, "4 virtual, 4 ended\n", "{when}, waiting: {report}");
    }
}

/// `pirn run` sees Go programs; here they are children that have inherited the variable.
#[test]
fn programs_written_in_go_are_left_alone() {
    let folder = Folder::new();
    let note = folder.path().join("note.s");
    let text = ".section .note.go.buildid, \"a\", @note\n.long 4, 8, 4\n.ascii \"Go\\0\\0\"\n\
                .ascii \"12345678\"\n.section .note.GNU-stack, \"\", @progbits\n";
    std::fs::write(&note, text).unwrap();
    for more in [&["-pie"][..], &["-no-pie"]] {
        let arguments = [&[note.to_str().unwrap()], more].concat();
        let Some(program) = build(&folder, "tests/c/threads.c", &arguments) else {
            return;
        };
        let (kind, report) = kind(&mut preloaded(&program));
        assert_eq!((kind.as_str(), report.as_str()), ("platform", ""));
    }
}

#[test]
fn chosen_threads_are_platform_threads() {
    let folder = Folder::new();
    let Some(program) = built(&folder) else {
        return;
    };
    let (kind_, report) = kind(preloaded(&program).env("PIRN_PLATFORM", "libx.so:thread"));
    assert_eq!(kind_, "virtual", "{report}");
    let (kind_, report) = kind(preloaded(&program).env("PIRN_PLATFORM", "libx.so:threads-?"));
    assert_eq!(kind_, "platform");
    let expected = ": 0 virtual and 100 platform threads (100 by choice), at most 100";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn stacks_are_as_large_as_asked_for() {
    let folder = Folder::new();
    let Some(program) = built(&folder) else {
        return;
    };
    let (out, _) = run(preloaded(&program).env("PIRN_STACK_SIZE", "320K"));
    assert_eq!(out, "virtual, stacks of 320 KiB\n");
}

#[test]
fn a_wrong_setting_is_reported_and_the_program_runs() {
    let folder = Folder::new();
    let Some(program) = built(&folder) else {
        return;
    };
    let (kind, report) = kind(preloaded(&program).env("PIRN_PARALLELISM", "many"));
    assert_eq!(kind, "platform");
    let mut lines = report.lines();
    assert!(
        lines.next().unwrap().contains("PIRN_PARALLELISM"),
        "{report}"
    );
    assert!(
        lines.next().unwrap().contains("(100 without a runtime"),
        "{report}"
    );
}

#[test]
fn children_inherit_it_unless_they_shall_not() {
    let folder = Folder::new();
    let Some(program) = built(&folder) else {
        return;
    };
    let child = |children: &str| {
        let mut command = preloaded(&program);
        let (out, report) = run(command.arg(&program).env("PIRN_CHILDREN", children));
        let kinds = out.lines().map(|line| line.split(',').next().unwrap());
        (Vec::from_iter(kinds.map(str::to_owned)), report)
    };
    assert_eq!(child("1").0, ["virtual", "virtual"]);
    let (kinds, report) = child("0");
    assert_eq!(kinds, ["virtual", "platform"]);
    assert_eq!(report, "", "neither is left when it ends");
}

/// The kernel tells a program that it has more rights than its caller; no variable counts then.
#[test]
fn a_program_with_more_rights_than_its_caller_reads_no_variable() {
    let folder = Folder::new();
    let link = format!("-Wl,-rpath,{}", folder.path().display());
    let real = folder.path().join("libpirn.so.0");
    fs::copy(shared::library(), &real).unwrap();
    let Some(program) = build(
        &folder,
        "tests/c/threads.c",
        &["-Wl,--no-as-needed", real.to_str().unwrap(), &link],
    ) else {
        return;
    };
    let wrong = |program: &Path| {
        let mut command = preloaded(program);
        command
            .env_remove("LD_PRELOAD")
            .env("PIRN_PARALLELISM", "many");
        command.output().unwrap()
    };
    assert!(texts(&wrong(&program)).0.starts_with("platform"));
    const NOBODY: u32 = 65534;
    let open = || Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open()).unwrap();
    fs::set_permissions(&real, open()).unwrap();
    if let Err(error) = chown(&program, Some(NOBODY), None) {
        println!("skipped: no set-user-ID program without the right to make one ({error})");
        return;
    }
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).unwrap();
    let (out, report) = texts(&wrong(&program));
    assert!(out.starts_with("virtual"), "{out}{report}");
    assert_eq!(report, "");
}
