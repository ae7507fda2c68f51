use super::*;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A folder that is gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("pirn-doctor-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// Compiles an empty C program.
    fn compile(&self, arguments: &[&str]) -> PathBuf {
        let (source, program) = (self.0.join("empty.c"), self.0.join("program"));
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(arguments).arg("-o").args([&program, &source]);
        assert!(compiler.status().unwrap().success());
        program
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn elf(path: &Path) -> Elf {
    match Program::read(path).unwrap() {
        Program::Elf(elf) => elf,
        other => panic!("{other:?}"),
    }
}

#[test]
fn this_program_has_pirn_and_all_it_defines() {
    let elf = elf(&std::env::current_exe().unwrap());
    assert!(elf.has_pirn && elf.missing.is_empty(), "{elf:?}");
    assert!(
        !elf.is_library && !elf.is_setuid && !elf.is_stripped,
        "{elf:?}"
    );
    assert!(elf.interpreter.unwrap().contains(THIS.linker()));
    assert!(elf.needed.iter().any(|name| name == "libc.so.6"));
    assert_eq!(elf.allocators, [""; 0]);
}

#[test]
fn a_c_program_has_none_of_it() {
    let folder = Folder::new("c");
    let elf = elf(&folder.compile(&[]));
    assert!(!elf.has_pirn && !elf.is_library && elf.interpreter.is_some());
    assert_eq!(elf.missing, ESSENTIAL);
}

#[test]
fn static_programs_and_libraries_have_no_dynamic_linker() {
    let folder = Folder::new("static");
    for arguments in [&["-static"][..], &["-static-pie"]] {
        let elf = elf(&folder.compile(arguments));
        assert!(
            elf.interpreter.is_none() && !elf.is_library,
            "{arguments:?}: {elf:?}"
        );
    }
    let elf = elf(&folder.compile(&["-shared", "-fPIC", "-s"]));
    assert!(
        elf.interpreter.is_none() && elf.is_library && elf.is_stripped,
        "{elf:?}"
    );
}

#[test]
fn setuid_is_seen() {
    let folder = Folder::new("setuid");
    let program = folder.compile(&[]);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    assert!(elf(&program).is_setuid);
}

#[test]
fn what_is_no_program_for_this_system_is_named() {
    let parse = |bytes: &[u8]| Program::parse(bytes, false).unwrap();
    assert_eq!(parse(b"#!/bin/sh\n"), Program::Other("a script"));
    assert_eq!(parse(b""), Program::Other("not an ELF file"));
    let folder = Folder::new("other");
    let mut bytes = fs::read(folder.compile(&[])).unwrap();
    let own = bytes[18];
    bytes[18] = 243; // EM_RISCV
    assert_eq!(
        parse(&bytes),
        Program::Other("a program for another processor")
    );
    bytes[4] = 1; // ELFCLASS32
    assert_eq!(parse(&bytes), Program::Other("a 32-bit program"));
    // Whatever follows the header is an error at worst.
    bytes[4] = 2;
    bytes[18] = own;
    for length in (0..bytes.len()).step_by(97) {
        let _ = Program::parse(&bytes[..length], false);
    }
}

#[test]
fn allocators_are_known_by_their_symbols_and_texts() {
    let folder = Folder::new("allocator");
    let source = folder.0.join("allocator.c");
    let seen = |code: &str, arguments: &[&str]| {
        fs::write(&source, code).unwrap();
        let arguments = [&[source.to_str().unwrap()], arguments].concat();
        let elf = elf(&folder.compile(&arguments));
        assert!(!elf.has_wrapper);
        elf.allocators
    };
    let mimalloc = "void *_mi_page_malloc(unsigned long n) { return (void *) n; }\n";
    assert_eq!(seen(mimalloc, &[]), ["mimalloc"]);
    assert_eq!(seen(mimalloc, &["-s"]), [""; 0]);
    // In one piece it would be a text of this program.
    let name = ALLOCATORS[0].name;
    let text = format!("const char *text = \"<{name}>: Error\";\n");
    assert_eq!(seen(&text, &["-s"]), [name]);
    assert_eq!(seen("int mine;\n", &[]), [""; 0]);
}
