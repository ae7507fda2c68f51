//! Functions under the macros compile and run. This crate takes pirn's place, with a `run_main`
//! that uses a platform thread and asks of its argument what pirn's asks.

extern crate self as pirn;

#[doc(hidden)]
pub mod __private {
    pub use run_main as run_test;

    pub fn run_main<T: Send + 'static>(name: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(f)
            .unwrap();
        thread
            .join()
            .unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }
}

use std::error::Error;
use std::process::{ExitCode, Termination};

fn thread_name() -> String {
    std::thread::current().name().unwrap().to_owned()
}

#[pirn_macros::test]
fn runs_on_a_thread_with_the_path_of_the_test() {
    assert_eq!(
        thread_name(),
        "run::runs_on_a_thread_with_the_path_of_the_test"
    );
}

#[pirn_macros::test]
fn may_return_a_result_that_is_not_send() -> Result<(), Box<dyn Error>> {
    assert_eq!("7".parse::<u8>()?, 7);
    Ok(())
}

#[pirn_macros::test]
fn may_return_some_termination() -> impl Termination {
    ExitCode::SUCCESS
}

#[pirn_macros::test]
fn r#raw() {
    assert_eq!(thread_name(), "run::raw");
}

#[pirn_macros::test]
#[should_panic(expected = "on purpose")]
fn keeps_should_panic() {
    panic!("on purpose");
}

#[pirn_macros::test]
#[ignore = "shows that #[ignore] is kept: it fails when run"]
fn keeps_ignore() {
    panic!("an ignored test was run");
}

#[cfg(any())]
#[pirn_macros::test]
fn keeps_cfg() {
    compile_error!("compiled in spite of #[cfg]");
}

mod programs {
    use std::io::{Error, ErrorKind};
    use std::process::ExitCode;

    /// Has a doc comment and visibility.
    #[pirn_macros::main]
    pub(super) fn main() {
        assert_eq!(super::thread_name(), "main");
    }

    #[pirn_macros::main]
    pub fn fails() -> Result<(), Error> {
        Err(Error::from(ErrorKind::NotFound))
    }

    #[pirn_macros::main]
    pub fn exits() -> ExitCode {
        ExitCode::from(3)
    }

    #[pirn_macros::main]
    pub fn allows() {
        #![allow(unused_variables)]
        //! Says what it does.
        let unused = 1;
    }

    #[pirn_macros::main]
    pub fn never() -> ! {
        std::panic::resume_unwind(Box::new("out of main"))
    }
}

#[test]
fn main_runs_on_a_thread_of_its_name() {
    programs::main();
}

#[test]
fn main_gives_the_exit_code_of_its_result() {
    assert_eq!(programs::fails(), ExitCode::FAILURE);
    assert_eq!(programs::exits(), ExitCode::from(3));
    programs::allows();
}

#[test]
fn a_panic_reaches_the_caller() {
    let payload = std::panic::catch_unwind(programs::never).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"out of main"));
}
