//! The thread interface of POSIX where `pthread_create` makes virtual threads: what a program sees
//! is what it sees natively. Each check, in C, runs in a native program and here, and says the
//! same.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::c_checks::cc;
use crate::common::processor::HAS_SEGMENTS;
use crate::common::{TempDir, child, skip, watched};

unsafe extern "C" {
    fn pirn_make_pthreads_virtual(on: c_int);
}

type Check = extern "C" fn();

const LIBRARY: &str = "CHECK_LIBRARY";
const SAYS: &str = "CHECK_SAYS";
/// The native program, which is also the one that checks start.
const DRIVER: &str = "CHECK_DRIVER";
/// The check that a child runs.
const NAME: &str = "CHECK_NAME";
/// Set where threads have no niceness and no CPUs of their own.
const PLAIN: &str = "CHECK_PLAIN";

/// Where a check is called.
#[derive(Clone, Copy, Debug)]
enum On {
    /// The first thread, and then another one.
    Both,
    /// The first thread.
    Once,
    /// Another thread than the first.
    Other,
    /// A thread of `pirn::thread`, in a program whose `pthread_create` makes platform threads.
    Rust,
}

/// Builds the library of a C file and the native program. `None`, and a printed reason, without
/// `cc`.
fn build(folder: &TempDir, source: &str) -> Option<[PathBuf; 2]> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let common = [
        "-fPIC",
        "-O1",
        "-fexceptions",
        "-Wall",
        "-Wextra",
        "-Werror",
    ];
    let [library, program] = ["libchecks.so", "driver"].map(|name| folder.join(name));
    let library_args = ["-shared", "-o", library.to_str()?];
    let program_args = ["-pthread", "-o", program.to_str()?];
    let all = [(library_args, source), (program_args, "posix_driver.c")];
    for (args, source) in all {
        let source = sources.join(source);
        let source = source.to_str().unwrap();
        let libraries = ["-ldl", "-lrt", "-lm"];
        cc(common
            .iter()
            .chain(&args)
            .chain([&source])
            .chain(&libraries))?;
    }
    Some([library, program])
}

/// Runs a check natively and with virtual threads, and compares what it says.
fn as_natively(source: &str, name: &str, on: On) {
    run(source, &[name], on, true);
}

/// Runs a check with virtual threads: glibc does not do what it asks for.
fn here(source: &str, name: &str, on: On) {
    run(source, &[name], on, false);
}

fn run(source: &str, names: &[&str], on: On, natively: bool) {
    let check = |name: &str| format!("{name} {on:?}");
    if child::is_here() {
        let wanted = std::env::var(NAME).unwrap();
        let names = names.iter().filter(|name| wanted == check(name));
        return names.for_each(|name| run_here(name, on));
    }
    let folder = TempDir::new("posix");
    let Some(built) = build(&folder, source) else {
        return;
    };
    for name in names {
        let [native, here] = ["native", "here"].map(|how| folder.join(&format!("{name}-{how}")));
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let [library, driver, native_says, here_says] =
            [&built[0], &built[1], &native, &here].map(|it| path(it));
        let check = check(name);
        let mut variables = vec![(DRIVER, driver.as_str()), (NAME, check.as_str())];
        if let On::Rust = on {
            variables.push((PLAIN, "1"));
        }
        let own = [(LIBRARY, library.as_str()), (SAYS, here_says.as_str())];
        let output = child::run(&[&own, &variables[..]].concat());
        assert!(output.status.success(), "{}", child::report(&output));
        if natively {
            let how = match on {
                On::Both => "both",
                On::Once => "once",
                On::Other | On::Rust => "other",
            };
            let mut program = Command::new(&driver);
            program.args([&library, *name, how]).env(SAYS, native_says);
            let output = program
                .envs(variables)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let report = child::report(&output);
            assert!(output.status.success(), "natively: {report}");
            let [native, here] =
                [native, here].map(|says| fs::read_to_string(says).unwrap_or_default());
            assert_eq!(here, native, "{name}");
        }
    }
}

/// Returns the function of this name in the child's library.
fn function(name: &str) -> Check {
    let library = CString::new(std::env::var(LIBRARY).unwrap()).unwrap();
    let name = CString::new(name).unwrap();
    // SAFETY: C strings; the library has no initialisers, stays, and has functions of this type.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let function = libc::dlsym(handle, name.as_ptr());
        assert!(!function.is_null());
        std::mem::transmute::<*mut c_void, Check>(function)
    }
}

fn run_here(name: &str, on: On) {
    let check = function(name);
    if let On::Rust = on {
        return crate::common::on_virtual(move || check());
    }
    // SAFETY: no requirements.
    unsafe { pirn_make_pthreads_virtual(1) };
    if let On::Both | On::Once = on {
        check();
    }
    if let On::Both | On::Other = on {
        on_virtual(check);
    }
}

fn on_virtual(check: Check) {
    extern "C" fn start(check: *mut c_void) -> *mut c_void {
        // SAFETY: passed below.
        unsafe { std::mem::transmute::<*mut c_void, Check>(check)() };
        check
    }
    let mut thread = 0;
    let argument = check as *mut c_void;
    // SAFETY: as documented.
    unsafe {
        let created = libc::pthread_create(&mut thread, std::ptr::null(), start, argument);
        assert_eq!(created, 0);
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
    }
}

#[watched]
fn pthread_exit_in_a_destructor_ends_it() {
    as_natively("posix_ends.c", "check_exit_in_destructor", On::Both);
}

#[watched]
fn pthread_exit_in_a_handler_leaves_no_mask_behind() {
    as_natively("posix_ends.c", "check_exit_in_handler", On::Both);
}

#[watched]
fn destructors_run_in_as_many_rounds() {
    as_natively("posix_ends.c", "check_rounds", On::Both);
}

#[watched]
fn a_thread_that_has_ended_exists_until_it_is_joined() {
    as_natively("posix_ends.c", "check_ended", On::Both);
}

#[watched]
fn names_are_inherited_and_set_by_others() {
    as_natively("posix_ends.c", "check_names", On::Both);
}

#[watched]
fn the_default_attributes_can_be_changed() {
    as_natively("posix_ends.c", "check_default_attributes", On::Both);
}

#[watched]
fn the_process_ends_with_its_last_thread() {
    as_natively("posix_ends.c", "check_main", On::Once);
}

#[watched]
fn the_first_thread_can_be_joined() {
    // In a child that another thread than the first one has forked, glibc's own join of the first
    // thread never returns there, in a program of C without Pirn as well.
    // SAFETY: no requirements; the text is static.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    if version == c"2.43" {
        return skip("glibc 2.43 does not end a join of the first thread in a forked child");
    }
    as_natively("posix_ends.c", "check_joined_main", On::Once);
}

#[watched]
fn ids_lead_to_their_threads() {
    as_natively("posix_ids.c", "check_ids", On::Both);
}

#[watched]
fn an_id_whose_thread_has_ended_is_harmless() {
    as_natively("posix_gone.c", "check_ids", On::Both);
}

#[watched]
fn a_thread_may_be_gone_before_the_call_that_ends_it_returns() {
    as_natively("posix_gone.c", "check_calls", On::Both);
}

#[watched]
fn ids_do_not_come_back_soon() {
    as_natively("posix_ids.c", "check_ids_in_turn", On::Both);
}

#[watched]
fn each_thread_has_its_affinity() {
    as_natively("posix_ids.c", "check_affinity", On::Both);
}

#[watched]
fn each_thread_has_its_policy_and_priority() {
    as_natively("posix_ids.c", "check_priorities", On::Both);
}

#[watched]
fn each_thread_has_its_attributes_of_scheduling() {
    as_natively("posix_ids.c", "check_attributes", On::Both);
}

#[watched]
fn a_thread_has_used_what_it_has_used_itself() {
    as_natively("posix_clocks.c", "check_sum", On::Both);
}

#[watched]
fn the_cpu_clock_of_a_thread_that_waits_stands_still() {
    as_natively("posix_clocks.c", "check_waiting", On::Both);
}

#[watched]
fn the_cpu_clock_of_a_thread_that_runs_goes_on() {
    as_natively("posix_clocks.c", "check_running", On::Both);
}

#[watched]
fn a_cpu_clock_is_read_in_several_ways() {
    as_natively("posix_clocks.c", "check_ways", On::Both);
}

#[watched]
fn many_wait_for_one_of_several_futexes() {
    as_natively("posix_calls.c", "check_waitv", On::Both);
}

#[watched]
fn many_wait_by_number_for_messages_and_semaphores() {
    as_natively("posix_calls.c", "check_ipc", On::Both);
}

#[watched]
fn robust_mutexes_outlive_their_owners() {
    as_natively("posix_robust.c", "check_robust", On::Both);
}

#[watched]
fn robust_mutexes_that_inherit_priorities_do_so_as_well() {
    as_natively("posix_robust.c", "check_robust_that_inherit", On::Both);
}

#[watched]
fn a_condition_variable_may_be_destroyed_once_all_are_woken() {
    as_natively("posix_conds.c", "check_destroyed", On::Both);
}

#[watched]
fn a_stream_that_one_has_locked_holds_no_carrier() {
    as_natively("posix_streams.c", "check_writers", On::Both);
}

#[watched]
fn many_wait_for_input_of_their_streams() {
    as_natively("posix_streams.c", "check_readers", On::Both);
}

#[watched]
fn the_standard_streams_are_written_and_read() {
    as_natively("posix_streams.c", "check_standard", On::Once);
}

#[watched]
fn a_prompt_is_written_before_the_wait_for_its_answer() {
    as_natively("posix_streams.c", "check_prompts", On::Once);
}

#[watched]
fn a_stream_that_is_not_read_is_not_waited_for() {
    as_natively("posix_streams.c", "check_nothing_read", On::Once);
}

#[watched]
fn streams_that_their_users_lock_are_not_locked_for_them() {
    as_natively("posix_streams.c", "check_unlocked", On::Both);
}

#[watched]
fn threads_are_cancelled_at_each_point() {
    as_natively("posix_cancel.c", "check_points", On::Both);
}

#[watched]
fn threads_are_cancelled_at_the_beginning_of_calls() {
    as_natively("posix_cancel_calls.c", "check_beginnings", On::Both);
}

#[watched]
fn threads_are_cancelled_in_opens_and_locks() {
    as_natively("posix_cancel_calls.c", "check_waits", On::Both);
}

#[watched]
fn cancellation_waits_until_it_is_enabled() {
    as_natively("posix_cancel.c", "check_state", On::Both);
}

#[watched]
fn a_thread_cancels_itself() {
    as_natively("posix_cancel.c", "check_oneself", On::Both);
}

#[watched]
fn a_thread_that_computes_is_cancelled_asynchronously() {
    as_natively("posix_cancel.c", "check_asynchronous", On::Both);
}

#[watched]
fn a_thread_that_is_cancelled_in_the_wait_for_a_mutex_ends() {
    as_natively("posix_cancel.c", "check_asynchronous_in_lock", On::Both);
}

#[watched]
fn a_handler_sees_and_changes_the_registers_of_the_interrupted_thread() {
    as_natively("posix_signals.c", "check_registers", On::Both);
}

#[watched]
fn the_handler_of_one_pending_signal_waits_for_anothers() {
    as_natively("posix_handlers.c", "check_two_pending", On::Both);
}

#[watched]
fn a_handler_that_is_left_without_its_mask_spoils_no_other_thread() {
    as_natively("posix_handlers.c", "check_faults", On::Both);
}

#[watched]
fn all_writers_of_a_broken_pipe_are_told_and_may_jump() {
    as_natively("posix_handlers.c", "check_broken_pipe", On::Both);
}

#[watched]
fn a_jump_out_of_select_leaves_its_sets() {
    as_natively("posix_handlers.c", "check_sets", On::Both);
}

#[watched]
fn a_dup_that_is_refused_closes_nothing() {
    as_natively("posix_handlers.c", "check_refused_dup", On::Both);
}

#[watched]
fn a_thread_begins_with_the_mask_of_its_attributes() {
    as_natively("posix_signals.c", "check_first_mask", On::Both);
}

#[watched]
fn what_only_the_sender_takes_comes_before_kill_returns() {
    as_natively("posix_signals.c", "check_kill", On::Both);
}

#[watched]
fn each_thread_has_its_own_alternative_stack() {
    as_natively("posix_signals.c", "check_own_stacks", On::Both);
}

#[watched]
fn a_read_that_is_cancelled_has_read_nothing() {
    here("posix_cancel.c", "check_nothing_is_lost", On::Both);
}

#[watched]
fn platform_threads_are_cancelled_as_well() {
    as_natively("posix_cancel.c", "check_platform", On::Both);
}

#[watched]
fn programs_inherit_as_natively_from_each_kind_of_thread() {
    for on in [On::Once, On::Other] {
        as_natively("posix_inherit.c", "check_children", on);
    }
}

#[watched]
fn programs_inherit_as_natively_from_a_thread_of_rust() {
    as_natively("posix_inherit.c", "check_children", On::Rust);
}

/// Starts the native program by `std`, which says what it inherits: by `posix_spawn`, after a hook
/// of this program's, and with other ids.
fn start_by_std(says: &Path) {
    function("check_prepared")();
    for how in 0..3 {
        let mut command = Command::new(std::env::var_os(DRIVER).unwrap());
        command.arg("inherited").env(SAYS, says);
        // SAFETY: no requirements; the hook does nothing but a call to the kernel.
        unsafe {
            match how {
                0 => &mut command,
                1 => command.pre_exec(|| {
                    libc::umask(0o77);
                    Ok(())
                }),
                _ if libc::geteuid() == 0 => command.gid(9),
                _ => command.gid(libc::getgid()),
            };
        }
        assert!(command.status().unwrap().success());
    }
}

#[watched]
fn commands_inherit_from_a_virtual_thread_as_from_a_platform_thread() {
    if child::is_here() {
        let folder = TempDir::new("commands");
        let [by_platform, by_virtual] = ["platform", "virtual"].map(|name| folder.join(name));
        let says = by_platform.clone();
        std::thread::spawn(move || start_by_std(&says))
            .join()
            .unwrap();
        let says = by_virtual.clone();
        crate::common::on_virtual(move || start_by_std(&says));
        let [by_platform, by_virtual] =
            [by_platform, by_virtual].map(|says| fs::read_to_string(says).unwrap());
        assert_eq!(by_platform.matches("arguments").count(), 3);
        assert_eq!(by_virtual, by_platform);
        return;
    }
    let folder = TempDir::new("posix");
    if let Some(built) = build(&folder, "posix_inherit.c") {
        let [library, driver] = built.each_ref().map(|path| path.to_str().unwrap());
        let output = child::run(&[(LIBRARY, library), (DRIVER, driver), (PLAIN, "1")]);
        assert!(output.status.success(), "{}", child::report(&output));
    }
}

/// The functions that replace the program.
const EXECS: [&str; 11] = [
    "check_execve",
    "check_execv",
    "check_execvp",
    "check_execvpe",
    "check_execl",
    "check_execlp",
    "check_execle",
    "check_fexecve",
    "check_execveat",
    "check_execveat_by_number",
    "check_failing",
];

#[watched]
fn a_thread_becomes_a_program_as_natively() {
    run("posix_inherit.c", &EXECS, On::Other, true);
}

#[watched]
fn a_thread_of_rust_becomes_a_program_as_natively() {
    run("posix_inherit.c", &EXECS, On::Rust, true);
}

#[watched]
fn a_thread_begins_with_its_creators_floating_point_environment() {
    as_natively("posix_state.c", "check_floats", On::Both);
}

#[watched]
fn each_thread_has_its_gs_base() {
    match HAS_SEGMENTS {
        true => as_natively("posix_state.c", "check_gs", On::Other),
        false => skip("this processor has no base register for the program's use"),
    }
}

#[watched]
fn each_thread_has_its_rights_of_protection_keys() {
    as_natively("posix_state.c", "check_rights", On::Other);
}

#[watched]
fn a_timer_signals_the_thread_that_it_is_for() {
    as_natively("posix_timers.c", "check_timers", On::Both);
    as_natively("posix_timers.c", "check_timers", On::Rust);
}

#[watched]
fn calls_that_take_an_id_take_that_of_each_thread() {
    as_natively("posix_timers.c", "check_other_ids", On::Both);
}
