//! Programs without the harness of the tests: they run on the main thread, and the process has no
//! platform threads but theirs.

use std::process::{Child, Command, Stdio};

use super::{malloc, standstill};

/// The name of the program that this process is to be.
const PROGRAM: &str = "PIRN_TEST_PROGRAM";

/// All programs. They run until they are killed, or end.
const PROGRAMS: [(&str, fn()); 11] = [
    ("stuck", standstill::stuck),
    (
        "stuck, and signals blocked",
        standstill::with_blocked_signals,
    ),
    ("with a sleeper", standstill::with_a_sleeper),
    ("with a limit", standstill::with_a_limit),
    ("with a reader", standstill::with_a_reader),
    ("with a runner", standstill::with_a_runner),
    ("with a platform thread", standstill::with_a_platform_thread),
    (
        "with a carrier's platform thread",
        standstill::with_a_carriers_platform_thread,
    ),
    ("stops in malloc", malloc::stops),
    ("allocates", malloc::allocates),
    ("fights for malloc", malloc::fights),
];

/// The C library calls this before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    let Ok(name) = std::env::var(PROGRAM) else {
        return;
    };
    // SAFETY: no pointers. The program ends with the test, which may fail.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let (_, program) = PROGRAMS.iter().find(|(known, _)| *known == name).unwrap();
    program();
    std::process::exit(0);
}

/// A program that runs.
pub struct Program(Child);

impl Program {
    pub fn start(name: &str, variables: &[(&str, &str)]) -> Program {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .env(PROGRAM, name)
            .env_remove("XDG_RUNTIME_DIR")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped());
        Program(command.spawn().unwrap())
    }

    /// Ends the standard input of the program.
    pub fn end_input(&mut self) {
        drop(self.0.stdin.take());
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
