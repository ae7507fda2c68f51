//! A process to look into, and a small tool that does.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::child;
use pirn::thread;

/// What the child is to be, if a test has children of several kinds.
const ROLE: &str = "PIRN_TEST_ROLE";
/// The child says this when it is ready, and after each thing that it was told to do.
const READY: &str = "ready for the test";

/// A child process.
pub struct Target {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts the running test as a child, and waits until it is ready.
    pub fn start(variables: &[(&str, &str)], role: &str) -> Target {
        let mut command = child::command();
        command.envs(variables.iter().copied()).env(ROLE, role);
        Target::start_by(command)
    }

    /// Starts a child by a command that runs [`be_target`] in the end.
    pub fn start_by(mut command: Command) -> Target {
        if !command
            .get_envs()
            .any(|(name, _)| name == "XDG_RUNTIME_DIR")
        {
            command.env_remove("XDG_RUNTIME_DIR");
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let input = child.stdin.take();
        let mut target = Target {
            child,
            input,
            output,
        };
        target.wait_until_ready();
        target
    }

    /// Returns the number of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the child itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Has the child do something, and waits until it has. Returns what it says about it.
    pub fn tell(&mut self, what: &str) -> String {
        let mut input = self.input.as_ref().unwrap();
        writeln!(input, "{what}").unwrap();
        self.wait_until_ready()
    }

    fn wait_until_ready(&mut self) -> String {
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let len = self.output.read_line(&mut line).unwrap();
            assert!(len > 0, "the child has ended, and said: {said}");
            // The test harness may have begun the line.
            if let Some((_, rest)) = line.split_once(READY) {
                return rest.trim().to_owned();
            }
            said.push_str(&line);
        }
    }

    /// Returns the descriptors that the process has open.
    pub fn descriptors(&self) -> Vec<String> {
        let folder = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let mut all: Vec<_> = folder
            .flatten()
            .map(|entry| {
                let link = fs::read_link(entry.path()).unwrap_or_default();
                format!("{:?} -> {link:?}", entry.file_name())
            })
            .collect();
        all.sort();
        all
    }

    /// Returns how many threads of the process have this name.
    pub fn threads(&self, name: &str) -> usize {
        let tasks = tasks(self.pid()).unwrap();
        tasks.filter(|task| task.name() == name).count()
    }

    /// Asks the process, and asserts that it does nothing about it.
    pub fn ask_in_vain(&self) {
        let monitor = until(|| monitor_of(self.pid()));
        let before = rests(self.pid(), monitor);
        // The monitor does what it is asked to do between two of its rests. It is asked again and
        // again, because it may be about to rest for long.
        until(|| {
            signal(self.pid());
            (rests(self.pid(), monitor) >= before + 3).then_some(())
        });
        assert_eq!(self.threads("pirn-observe"), 0);
    }

    /// Ends the child, which would not end by itself.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.input = None;
    }

    /// Lets the child end, and asserts that it ends well.
    pub fn finish(mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {rest}");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Of a test that has failed; otherwise it has ended.
        if self.input.is_some() {
            let _ = self.child.kill();
        }
    }
}

/// Is a process to look into: has a parked thread, and ends when there is nothing more to hear.
pub fn be_target() {
    be_told(|_| String::new());
}

/// Is a process to look into, which does with `f` what it is told, and says what that returns.
pub fn be_told(mut f: impl FnMut(&str) -> String) {
    let parked = thread::spawn(thread::park);
    say_ready("");
    for line in io::stdin().lines() {
        say_ready(&f(&line.unwrap()));
    }
    parked.thread().unpark();
    parked.join().unwrap();
}

/// Says that something is done, with a result.
fn say_ready(result: &str) {
    let mut out = io::stdout();
    writeln!(out, "{READY} {result}").unwrap();
    out.flush().unwrap();
}

/// Returns what this child is to be.
pub fn role() -> String {
    env::var(ROLE).unwrap_or_default()
}

/// Waits until there is a value.
pub fn until<T>(mut value: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = value() {
            return value;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The folder of sockets where nothing else is said.
pub fn usual_folder() -> PathBuf {
    // SAFETY: no arguments.
    PathBuf::from(format!("/tmp/pirn-{}", unsafe { libc::geteuid() }))
}

/// Returns the socket of a process in a folder.
pub fn socket_in(folder: &Path, pid: u32) -> Option<PathBuf> {
    let names = fs::read_dir(folder).ok()?.flatten();
    names.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&format!("{pid}-")) && name.ends_with(".sock")
    })
}

/// Returns the socket of a process, if there is one.
pub fn socket_of(pid: u32) -> Option<PathBuf> {
    socket_in(&usual_folder(), pid)
}

/// Returns the thread of a process that is to be asked.
pub fn monitor_of(pid: u32) -> Option<u32> {
    let mut tasks = tasks(pid).ok()?;
    let monitor = tasks.find(|task| task.name() == "pirn-monitor")?;
    monitor.0.file_name()?.to_str()?.parse().ok()
}

/// A platform thread of a process: its folder.
pub struct Task(PathBuf);

/// Returns the platform threads of a process, or an error if it has ended.
pub fn tasks(pid: u32) -> io::Result<impl Iterator<Item = Task>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    Ok(tasks.map(|task| Task(task.path())))
}

impl Task {
    /// Returns the contents of a file of its folder; nothing if the thread has ended.
    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    pub fn name(&self) -> String {
        self.read("comm").trim_end().to_owned()
    }
}

/// Returns how often a thread of a process has gone to sleep.
pub fn rests(pid: u32, thread: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).unwrap();
    let mut counts = status.lines();
    let count = counts.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

/// Asks a process to listen, as the `pirn` command does: by a signal to its monitor.
pub fn signal(pid: u32) {
    signal_thread(pid, until(|| monitor_of(pid)));
}

/// Sends the signal to a thread of a process.
pub fn signal_thread(pid: u32, thread: u32) {
    let mut info = [0u64; 16];
    info[0] = libc::SIGURG as u64;
    info[1] = u64::from(libc::SI_QUEUE as u32);
    info[2] = u64::from(std::process::id());
    info[3] = u64::from_ne_bytes(*b"pirn-ask");
    let number = libc::SYS_rt_tgsigqueueinfo;
    // SAFETY: the kernel reads as much as a `siginfo_t` has.
    let sent = unsafe { libc::syscall(number, pid, thread, libc::SIGURG, info.as_ptr()) };
    assert_eq!(sent, 0, "{}", io::Error::last_os_error());
}

/// Connects to a socket, whose path may be longer than an address.
pub fn connect_to(socket: &Path) -> io::Result<UnixStream> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(socket)?;
    UnixStream::connect(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Connects to a process. Asks it to listen if it does not: again and again, as the `pirn` command
/// does, because a process that is just starting may miss the signal.
pub fn connect(pid: u32, folder: &Path) -> UnixStream {
    const AGAIN: Duration = Duration::from_millis(500);
    let open = || connect_to(&socket_in(folder, pid)?).ok();
    open().unwrap_or_else(|| {
        let mut asked: Option<Instant> = None;
        until(|| {
            if asked.is_none_or(|asked| asked.elapsed() >= AGAIN) {
                signal(pid);
                asked = Some(Instant::now());
            }
            open()
        })
    })
}

/// Makes a request, and returns the answer.
pub fn ask_at(stream: UnixStream, request: &str) -> String {
    String::from_utf8_lossy(&bytes_at(stream, request)).into_owned()
}

/// Makes a request, and returns the answer as it is.
pub fn bytes_at(mut stream: UnixStream, request: &str) -> Vec<u8> {
    // A process that refuses at once may have hung up.
    let _ = writeln!(stream, "pirn 1 {request}");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Returns a dump of a process with all its threads.
#[cfg(feature = "dump")]
pub fn dump_of(pid: u32) -> pirn_dump::Dump {
    let stream = connect(pid, &usual_folder());
    let answer = bytes_at(stream, "dump threads=all");
    let payload = answer.strip_prefix(b"ok dump\n");
    let payload = payload.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&answer)));
    pirn_dump::Dump::read_from(payload).unwrap()
}

/// Returns the names of the functions, innermost first, of each thread that `is` so and has a whole
/// stack. The child's program is this one.
#[cfg(feature = "dump")]
pub fn functions_of(
    dump: &pirn_dump::Dump,
    is: impl Fn(&pirn_dump::Thread) -> bool,
) -> Vec<Vec<String>> {
    use pirn_dump::{End, Symbols};
    thread_local! {
        /// The names in the program's file, which takes a while to read.
        static SYMBOLS: std::cell::RefCell<Symbols> = std::cell::RefCell::new(Symbols::of_self());
    }
    let names = SYMBOLS.with_borrow_mut(|symbols| symbols.names(dump));
    let threads = dump.threads.iter().filter(|thread| is(thread));
    let stacks = threads.filter_map(|thread| Some(&dump.stacks[thread.stack? as usize]));
    let whole = stacks.filter(|stack| stack.end == End::Complete);
    let functions = whole.map(|stack| {
        let frames = names.all(stack).into_iter();
        frames.map(|frame| frame.name()).collect()
    });
    functions.collect()
}

/// Makes a request of a child, and returns the answer.
pub fn ask(target: &Target, request: &str) -> String {
    ask_at(connect(target.pid(), &usual_folder()), request)
}
