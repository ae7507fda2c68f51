//! Names of this program's own functions, and of a small program in C that is taken apart.

use super::*;
use crate::model::{LockKind, Module, Stack, Thread, Wait};
use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicU32;

/// A function into which another is put.
#[inline(never)]
fn outer(number: u64) -> u64 {
    std::hint::black_box(number) + inner(number)
}

#[inline(always)]
fn inner(number: u64) -> u64 {
    std::hint::black_box(number * 3)
}

/// Returns the module of this program, from the mappings of its file.
fn this_program() -> Module {
    let path = fs::read_link("/proc/self/exe").unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let ranges: Vec<(u64, u64)> = maps
        .lines()
        .filter(|line| line.ends_with(path.to_str().unwrap()))
        .filter_map(|line| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            Some((
                u64::from_str_radix(start, 16).ok()?,
                u64::from_str_radix(end, 16).ok()?,
            ))
        })
        .collect();
    let path = path.into_os_string().into_encoded_bytes();
    let (start, end) = (ranges[0].0, ranges[ranges.len() - 1].1);
    let build_id = files::facts_of(&path).build_id;
    Module {
        path,
        build_id,
        bias: start,
        start,
        end,
        offset: 0,
    }
}

fn function(frames: &[Frame], index: usize) -> &str {
    frames[index].function.as_deref().unwrap_or("?")
}

#[test]
fn own_functions_have_their_whole_names() {
    assert_eq!(outer(1), 4);
    let module = this_program();
    let start = outer as fn(u64) -> u64 as usize as u64 - module.bias;
    let mut symbols = Symbols::of_self();
    let frames = symbols.frames(&module, start);
    assert_eq!(
        function(&frames, frames.len() - 1),
        "pirn_dump::symbols::tests::outer"
    );
    let within = (start..start + 200)
        .map(|address| symbols.frames(&module, address))
        .find(|frames| frames.len() == 2 && function(frames, 0).contains("inner"))
        .expect("no address within the function that was put in");
    assert_eq!(function(&within, 1), "pirn_dump::symbols::tests::outer");
    assert!(within[0].inlined && !within[1].inlined);
    assert!(
        within
            .iter()
            .all(|frame| frame.file_name() == Some("tests.rs")),
        "{within:?}"
    );
    assert!(within[0].line != within[1].line);
    assert_eq!(symbols.problems(), [""; 0]);
}

#[test]
fn a_return_address_is_looked_up_before_it() {
    let module = this_program();
    let start = outer as fn(u64) -> u64 as usize as u64;
    // As if the function before had ended with a call that does not return.
    let stack = |exact_first| Stack {
        frames: vec![start],
        exact_first,
        ..Stack::default()
    };
    let dump = Dump {
        stacks: vec![stack(true), stack(false)],
        modules: vec![module],
        ..Dump::default()
    };
    let names = Symbols::of_self().names(&dump);
    let name = |index: usize| names.all(&dump.stacks[index]).last().unwrap().name();
    assert_eq!(name(0), "pirn_dump::symbols::tests::outer");
    assert_ne!(name(1), name(0));
}

/// Two words, so that the second is within it.
static WORDS: [AtomicU32; 2] = [AtomicU32::new(1), AtomicU32::new(2)];

#[test]
fn locks_that_are_variables_have_names() {
    let on_heap = Box::new(0_u32);
    let address = |word: &AtomicU32| word.as_ptr() as u64;
    let addresses = [
        address(&WORDS[0]),
        address(&WORDS[1]),
        &raw const *on_heap as u64,
    ];
    let wait = |address| Wait::Lock {
        address,
        what: LockKind::Futex,
        owner: None,
        waiters: None,
    };
    let threads = addresses.map(|address| Thread {
        wait: wait(address),
        ..Thread::default()
    });
    let mut module = this_program();
    // The code alone.
    module.end = module.start + 1;
    let dump = Dump {
        threads: threads.into(),
        modules: vec![module],
        ..Dump::default()
    };
    let names = Symbols::of_self().names(&dump);
    let name = "pirn_dump::symbols::tests::WORDS";
    let next = format!("{name}+0x4");
    assert_eq!(
        addresses.map(|it| names.variable(it)),
        [Some(name), Some(next.as_str()), None]
    );
}

/// A program in C and what its module would be.
struct Program {
    folder: std::path::PathBuf,
    module: Module,
    /// The address of `handle` in its symbol table.
    handle: u64,
}

impl Program {
    /// Compiles it, or says why it cannot.
    fn compile(name: &str, options: &[&str]) -> Option<Program> {
        let folder = std::env::temp_dir().join(format!("pirn-dump-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (source, file) = (folder.join("program.c"), folder.join("program"));
        fs::write(
            &source,
            "int handle(int n) { return n * 3; }\nint main(void) { return handle(0); }\n",
        )
        .unwrap();
        let run = Command::new("cc")
            .args(options)
            .arg("-Wl,--build-id")
            .arg("-o")
            .arg(&file)
            .arg(&source)
            .status();
        if !run.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no C compiler `cc`");
            return None;
        }
        let path = file.as_os_str().as_encoded_bytes().to_vec();
        let build_id = files::facts_of(&path).build_id;
        assert!(!build_id.is_empty());
        let loader = Loader::new(&file).unwrap();
        let handle = (0..0x10000).find(|address| loader.find_symbol(*address) == Some("handle"));
        let module = Module {
            path,
            build_id,
            start: 0,
            end: 0x10000,
            ..Module::default()
        };
        Some(Program {
            folder,
            module,
            handle: handle.unwrap(),
        })
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let run = Command::new(program)
            .args(arguments)
            .current_dir(&self.folder)
            .status()
            .unwrap();
        assert!(run.success(), "{program} {arguments:?}");
    }

    /// Returns the name and line of `handle`, and what is missing.
    fn look(&self) -> (String, Option<u32>, String) {
        let mut symbols = Symbols::of_files();
        let frames = symbols.frames(&self.module, self.handle);
        let frame = frames.first().cloned().unwrap_or_default();
        (
            frame.function.unwrap_or_default(),
            frame.line,
            symbols.problems().join("; "),
        )
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn without_debug_information_there_are_symbols() {
    let Some(program) = Program::compile("plain", &[]) else {
        return;
    };
    assert_eq!(program.look(), ("handle".into(), None, String::new()));
}

#[test]
fn without_symbols_there_are_exported_ones() {
    let Some(program) = Program::compile("exported", &["-rdynamic"]) else {
        return;
    };
    program.run("strip", &["program"]);
    assert_eq!(program.look().0, "handle");
}

#[test]
fn a_debug_link_is_followed() {
    let Some(program) = Program::compile("link", &["-g"]) else {
        return;
    };
    program.run(
        "objcopy",
        &["--only-keep-debug", "program", "program.debug"],
    );
    program.run("strip", &["program"]);
    assert_eq!(program.look(), (String::new(), None, String::new()));
    program.run("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    assert_eq!(program.look(), ("handle".into(), Some(1), String::new()));
    // The same in the other folder.
    fs::create_dir(program.folder.join(".debug")).unwrap();
    program.run("mv", &["program.debug", ".debug"]);
    assert_eq!(program.look(), ("handle".into(), Some(1), String::new()));
}

#[test]
fn another_file_in_its_place_gives_no_names() {
    let Some(program) = Program::compile("replaced", &["-g"]) else {
        return;
    };
    let mut other = Program {
        folder: program.folder.join("none"),
        module: program.module.clone(),
        handle: 0,
    };
    other.module.build_id[0] ^= 1;
    other.handle = program.handle;
    let (name, _, problem) = other.look();
    assert_eq!(name, "");
    assert!(
        problem.ends_with("the file was replaced since the process started"),
        "{problem}"
    );
    fs::remove_file(program.folder.join("program")).unwrap();
    let (name, _, problem) = program.look();
    assert_eq!(name, "");
    assert!(problem.ends_with("the file was not found"), "{problem}");
}

/// Says that it has begun, and waits.
const WAITS: &str = "#include <unistd.h>
int handle(int n) { return n * 3; }
int main(void) {
    write(1, \"\", 1);
    for (;;) pause();
    return handle(0);
}
";

#[test]
fn a_deleted_program_that_runs_is_found() {
    let Some(mut program) = Program::compile("deleted", &["-g"]) else {
        return;
    };
    fs::write(program.folder.join("program.c"), WAITS).unwrap();
    program.run(
        "cc",
        &["-g", "-Wl,--build-id", "-o", "program", "program.c"],
    );
    let file = program.folder.join("program");
    program.module.build_id = files::facts_of(&program.module.path).build_id;
    let loader = Loader::new(&file).unwrap();
    program.handle = (0..0x10000)
        .find(|address| loader.find_symbol(*address) == Some("handle"))
        .unwrap();
    let mut child = Command::new(&file)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It has begun when it has written something.
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    fs::remove_file(&file).unwrap();
    let mut symbols = Symbols::of_process(child.id());
    let frames = symbols.frames(&program.module, program.handle);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((function(&frames, 0), frames[0].line), ("handle", Some(2)));
}

#[test]
fn a_pipe_or_a_folder_is_no_file() {
    let folder = std::env::temp_dir().join(format!("pirn-dump-{}-pipe", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for path in [&pipe, &folder] {
        let path = path.as_os_str().as_encoded_bytes().to_vec();
        for build_id in [vec![], vec![1, 2, 3]] {
            let module = Module {
                path: path.clone(),
                build_id,
                ..Module::default()
            };
            assert_eq!(Symbols::of_files().frames(&module, 1), []);
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn names_are_demangled() {
    for (mangled, name) in [
        (
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
            "core::fmt::Write::write_fmt",
        ),
        ("_RNvCsd1Zy2QrpFZj_7mycrate3foo", "mycrate::foo"),
        (
            "_ZNSt6vectorIiSaIiEE9push_backEOi",
            "std::vector<int, std::allocator<int> >::push_back(int&&)",
        ),
        ("recvfrom", "recvfrom"),
        ("_Znot_a_name", "_Znot_a_name"),
        ("", ""),
    ] {
        assert_eq!(demangle::name(mangled), name);
    }
}
