use super::*;

/// Returns which of these functions are shown of a stack.
fn shown(functions: &[&str], complete: bool) -> String {
    let frames: Vec<Frame> = functions
        .iter()
        .map(|function| Frame {
            function: Some(function.trim_start_matches('~').to_string()),
            inlined: function.starts_with('~'),
            file: Some(match *function {
                name if name.contains("pirn::")
                    || name.contains("pirn_rt::")
                    || name.contains("pirn_libc::")
                    || name.starts_with('~') =>
                {
                    "/x/pirn-0.1.0/src/local.rs".into()
                }
                "recv" | "recvfrom" => "/x/pirn-libc/src/socket.rs".into(),
                _ => "/x/pirn-cli/src/main.rs".into(),
            }),
            ..Frame::default()
        })
        .collect();
    let shown = without_runtime(frames.iter().collect(), complete);
    shown
        .iter()
        .map(|frame| frame.name())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_part_of_a_function_of_libc_has_its_name() {
    let part = "pirn_libc::io::rw::read_here";
    assert_eq!(started(&["pirn::wait", part, "a::b"]), "read a::b");
    assert_eq!(started(&["mine::read_here"]), "mine::read_here");
}

/// `~`: a part of the next function, of which line tables have no path.
#[test]
fn parts_of_the_runtime_without_their_path_are_not_shown() {
    let read = [
        "~switch",
        "~block<x>",
        "pirn::wait",
        "~read_here",
        "recv",
        "a::b",
    ];
    assert_eq!(started(&read), "recv a::b");
    let generic = [
        "~block<x>",
        "wait<pirn::x>",
        "pirn_libc::io::rw::read_here",
        "a::b",
    ];
    assert_eq!(started(&generic), "read a::b");
    let park = ["~switch", "~park", "pirn::thread::park", "a::b"];
    assert_eq!(started(&park), "pirn::thread::park a::b");
    let only = [
        "~switch",
        "pirn::thread::park",
        "call_once<fn(), ()>",
        "~run<x>",
    ];
    assert_eq!(started(&only), "pirn::thread::park");
}

const BEGINNING: [&str; 4] = [
    "core::ops::function::FnOnce::call_once",
    "__rust_try",
    "pirn_rt::sched::life::entry",
    "start_of_stack",
];

fn started(functions: &[&str]) -> String {
    shown(&[functions, &BEGINNING].concat(), true)
}

#[test]
fn what_the_program_called_is_shown() {
    assert_eq!(
        started(&["pirn::mount::park", "pirn::thread::park", "a::b"]),
        "pirn::thread::park a::b"
    );
    assert_eq!(
        started(&["pirn::wait", "recvfrom", "a::b"]),
        "recvfrom a::b"
    );
    assert_eq!(
        started(&["pirn::wait", "recvfrom", "recv", "std::net::read", "a::b"]),
        "recv std::net::read a::b"
    );
    assert_eq!(
        started(&[
            "point<isize, pirn::rw::recv::{closure_env#0}>",
            "recv",
            "a::b"
        ]),
        "recv a::b"
    );
    assert_eq!(started(&["a::b", "c::d"]), "a::b c::d");
    assert_eq!(started(&["poll", "a::b"]), "poll a::b");
}

#[test]
fn what_the_runtime_calls_a_closure_with_is_not() {
    let scope = [
        "pirn::run",
        "std::panic::catch_unwind",
        "pirn::scope::open_with::<x>",
    ];
    let stack = [&["recvfrom", "a::b"][..], &scope, &["a::c"]].concat();
    assert_eq!(
        started(&stack),
        "recvfrom a::b pirn::scope::open_with::<x> a::c"
    );
    let own = ["a::b", "std::panic::catch_unwind", "__rust_try", "a::c"];
    assert_eq!(
        started(&own),
        "a::b std::panic::catch_unwind __rust_try a::c"
    );
}

#[test]
fn a_program_with_our_name_is_not_the_runtime() {
    for (file, expected) in [
        ("/x/crates/pirn/src/local.rs", true),
        ("crates/pirn/src/local.rs", true),
        ("/x/pirn-0.1.0/src/local.rs", true),
        ("/x/crates/pirn-rt/src/local.rs", true),
        ("/x/pirn-rt-0.1.0/src/local.rs", true),
        ("/x/crates/pirn-libc/src/io/rw.rs", true),
        ("/x/crates/pirn-observe/src/dump/mod.rs", true),
        ("/x/crates/pirn-cli/src/main.rs", false),
        ("/x/pirn/examples/src/main.rs", false),
        ("src/main.rs", false),
    ] {
        let name = Some("pirn::main::{closure#0}".to_string());
        let frame = Frame {
            function: name,
            file: Some(file.into()),
            ..Frame::default()
        };
        assert_eq!(frame.is_runtime(), expected, "{file}");
    }
    let stripped = Frame {
        function: Some("pirn::park".into()),
        ..Frame::default()
    };
    assert!(stripped.is_runtime());
}

#[test]
fn a_stack_of_the_runtime_alone_is_not_empty() {
    assert_eq!(
        started(&["<pirn::mount>::park", "pirn::thread::park"]),
        "pirn::thread::park"
    );
    assert_eq!(started(&[]), BEGINNING.join(" "));
    assert_eq!(shown(&["pirn::a", "pirn::b"], false), "pirn::a pirn::b");
    assert_eq!(
        shown(&["a::b", "pirn::a", "pirn::b"], false),
        "a::b pirn::b"
    );
    assert_eq!(shown(&[], true), "");
}

#[test]
fn what_begins_a_thread_of_std_under_pthread_create_is_not_shown() {
    let functions = [
        "clock_nanosleep",
        "std::sys::thread::unix::sleep",
        "std::thread::functions::sleep",
        "server::handle",
        "std::sys::backtrace::__rust_begin_short_backtrace",
        "std::thread::lifecycle::spawn_unchecked::{{closure}}",
        "std::panicking::catch_unwind",
        "core::ops::function::FnOnce::call_once{{vtable.shim}}",
        "<std::sys::thread::unix::Thread>::new::thread_start",
        "pirn_rt::arch::x86_64::call::call_as_pthread",
    ];
    let all = shown(&functions, true);
    assert!(
        all.ends_with("std::thread::functions::sleep server::handle"),
        "{all}"
    );
}
