use super::*;
use object::elf::{EM_AARCH64, EM_RISCV, EM_X86_64};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that is gone when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("pirn-run-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    /// Writes a file that may be run.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Compiles a C program that does nothing. `None`, and a printed reason, without a compiler.
    pub fn compile(&self, arguments: &[&str]) -> Option<PathBuf> {
        self.compile_this("int main(void) { return 0; }\n", arguments)
    }

    fn compile_this(&self, text: &str, arguments: &[&str]) -> Option<PathBuf> {
        let (source, program) = (self.0.join("empty.c"), self.0.join("program"));
        fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg("-o").args([&program, &source]).args(arguments);
        match compiler.status() {
            Ok(status) => assert!(status.success()),
            Err(error) => {
                println!("skipped: no C compiler `cc` ({error})");
                return None;
            }
        }
        Some(program)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns what is against a program, for a caller who is not root.
fn found(path: &Path) -> Option<Obstacle> {
    let caller = Caller {
        uid: 1000,
        gid: 1000,
        path: path.parent().map(|folder| folder.as_os_str().to_owned()),
    };
    of(path, &caller).unwrap()
}

#[test]
fn nothing_is_against_an_ordinary_program() {
    let folder = Folder::new();
    for arguments in [&[][..], &["-no-pie"], &["-s"]] {
        let Some(program) = folder.compile(arguments) else {
            return;
        };
        assert_eq!(found(&program), None, "{arguments:?}");
    }
}

#[test]
fn static_programs_cannot_preload() {
    let folder = Folder::new();
    for arguments in [&["-static"], &["-static-pie"]] {
        let Some(program) = folder.compile(arguments) else {
            return;
        };
        assert_eq!(found(&program), Some(Obstacle::Static), "{arguments:?}");
    }
}

#[test]
fn another_dynamic_linker_means_another_libc() {
    let folder = Folder::new();
    let linker = "/lib/ld-musl-x86_64.so.1";
    let argument = format!("-Wl,--dynamic-linker={linker}");
    let Some(program) = folder.compile(&[&argument]) else {
        return;
    };
    assert_eq!(found(&program), Some(Obstacle::OtherLibc(linker.into())));
}

#[test]
fn programs_for_32_bits_and_other_processors_are_known() {
    let folder = Folder::new();
    let Some(program) = folder.compile(&[]) else {
        return;
    };
    let mut bytes = fs::read(program).unwrap();
    for machine in [EM_X86_64, EM_AARCH64, EM_RISCV] {
        bytes[18..20].copy_from_slice(&machine.0.to_le_bytes());
        let processor = Processor::of(machine);
        let expected = Some(Obstacle::OtherMachine(processor));
        let expected = expected.filter(|_| processor != Some(THIS));
        let found = found(&folder.write("other", &bytes));
        assert_eq!(found, expected);
        let name = processor.map_or("another processor", Processor::name);
        let says = |obstacle: Obstacle| obstacle.to_string().contains(&format!("for {name}, "));
        assert!(found.is_none_or(says));
    }
    bytes[4] = 1; // ELFCLASS32
    let other = folder.write("other", &bytes);
    assert_eq!(found(&other), Some(Obstacle::ThirtyTwoBit));
}

#[test]
fn go_is_known_by_its_note_or_its_section() {
    let note = "__asm__(\".section .note.go.buildid, \\\"a\\\", @note\\n\"
        \".long 4, 8, 4\\n.ascii \\\"Go\\\\0\\\\0\\\"\\n.ascii \\\"12345678\\\"\\n.previous\");\n";
    let section = "__attribute__((section(\".go.buildinfo\"))) int info = 1;\n";
    for (text, arguments) in [(note, &[][..]), (section, &[])] {
        let folder = Folder::new();
        let text = format!("{text}int main(void) {{ return 0; }}\n");
        let Some(program) = folder.compile_this(&text, arguments) else {
            return;
        };
        assert_eq!(found(&program), Some(Obstacle::Go), "{text}");
    }
}

#[test]
fn other_users_groups_and_capabilities_are_privileges() {
    let caller = Caller {
        uid: 1000,
        gid: 100,
        path: None,
    };
    for (mode, uid, gid, expected) in [
        (0o755, 0, 0, false),
        (0o4755, 0, 0, true),
        (0o4755, 1000, 0, false),
        (0o2755, 0, 0, true),
        (0o2755, 0, 100, false),
        (0o2745, 0, 0, false), // mandatory locking
        (0o6755, 1000, 100, false),
    ] {
        let found = is_privileged((mode, uid, gid), &caller);
        assert_eq!(found, expected, "{mode:o} {uid} {gid}");
    }
    let folder = Folder::new();
    let Some(program) = folder.compile(&[]) else {
        return;
    };
    // CAP_NET_RAW, effective: revision 2 of the format.
    let mut value = [0_u8; 20];
    value[0..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
    value[4..8].copy_from_slice(&(1_u32 << 13).to_le_bytes());
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(&program, "security.capability", &value, flags) {
        Ok(()) => assert_eq!(found(&program), Some(Obstacle::Privileged)),
        Err(error) => println!("skipped: cannot set the capabilities of a file ({error})"),
    }
}

#[test]
fn a_script_is_what_its_interpreter_is() {
    let folder = Folder::new();
    let Some(program) = folder.compile(&["-static"]) else {
        return;
    };
    let because = |interpreter: &Path| {
        Some(Obstacle::Interpreter(
            interpreter.to_owned(),
            Box::new(Obstacle::Static),
        ))
    };
    let path = program.display();
    let script = |text: &str| found(&folder.write("script", text.as_bytes()));
    assert_eq!(script(&format!("#!{path}\n")), because(&program));
    assert_eq!(script(&format!("#! {path} -x\nmore\n")), because(&program));
    assert_eq!(script("#!/usr/bin/env program\n"), because(&program));
    assert_eq!(
        script("#!/usr/bin/env -S A=1 program -x\n"),
        because(&program)
    );
    let first = folder.write("first", format!("#!{path}\n").as_bytes());
    let twice = script(&format!("#!{}\n", first.display())).unwrap();
    assert_eq!(
        twice,
        Obstacle::Interpreter(first, Box::new(because(&program).unwrap()))
    );
    assert_eq!(script("#!/bin/sh\n"), None);
    let none = PathBuf::from("/nowhere/at-all");
    assert_eq!(
        script("#!/nowhere/at-all\n"),
        Some(Obstacle::NoInterpreter(none))
    );
    let itself = folder.write("itself", b"");
    fs::write(&itself, format!("#!{}\n", itself.display())).unwrap();
    assert!(
        found(&itself)
            .unwrap()
            .to_string()
            .contains("cannot be found")
    );
    assert_eq!(script("echo\n"), Some(Obstacle::Unknown));
    assert_eq!(script("#!\n"), Some(Obstacle::Unknown));
}

#[test]
fn sanitizers_and_own_threads_are_known() {
    let program = |needed: &[&str], has_threads| {
        of_elf(Elf::Program(elf::Program {
            interpreter: Some(format!("/lib/{}.1", THIS.linker())),
            needed: needed.iter().map(|&name| name.to_owned()).collect(),
            has_threads,
            is_go: false,
        }))
    };
    assert_eq!(program(&["libc.so.6"], false), None);
    let expected = Obstacle::Sanitizer("libasan.so.8".into());
    assert_eq!(
        program(&["libasan.so.8", "libc.so.6"], false),
        Some(expected)
    );
    assert_eq!(program(&["libc.so.6"], true), Some(Obstacle::OwnThreads));
}
