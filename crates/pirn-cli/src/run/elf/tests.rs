use super::*;
use crate::run::obstacle::tests::Folder;

fn program(elf: Elf) -> Program {
    match elf {
        Elf::Program(program) => program,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_dynamic_program_names_its_linker_and_libraries() {
    let folder = Folder::new();
    let Some(path) = folder.compile(&[]) else {
        return;
    };
    let program = program(read(&File::open(path).unwrap()).unwrap());
    assert!(program.interpreter.unwrap().contains(THIS.linker()));
    assert_eq!(program.needed, ["libc.so.6"]);
    assert!(!program.is_go && !program.has_threads);
}

#[test]
fn this_program_has_its_own_pthread_create() {
    let own = File::open(std::env::current_exe().unwrap()).unwrap();
    assert!(program(read(&own).unwrap()).has_threads);
}

#[test]
fn files_that_break_off_are_errors_and_others_no_programs() {
    let folder = Folder::new();
    let Some(path) = folder.compile(&[]) else {
        return;
    };
    let bytes = std::fs::read(path).unwrap();
    let read = |bytes: &[u8]| {
        let path = folder.write("part", bytes);
        read(&File::open(path).unwrap())
    };
    assert!(read(&bytes[..100]).is_err());
    assert_eq!(read(b"").unwrap(), Elf::None);
    assert_eq!(read(b"hello").unwrap(), Elf::None);
}
