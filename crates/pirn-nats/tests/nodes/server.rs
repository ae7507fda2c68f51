//! Servers of NATS, on ports of their own and with directories of their own.

use pirn_nats::{Builder, Node};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A server. It is killed when this is dropped, and when this process ends.
pub struct Server {
    shell: Child,
    pid: libc::pid_t,
    port: u16,
    folder: PathBuf,
    /// What another server with the same folder has to be told.
    config: String,
    is_last: bool,
}

/// Returns the server's program.
fn program() -> Option<PathBuf> {
    std::env::var_os("NATS_SERVER").map(PathBuf::from)
}

fn skipped() {
    // Past the capture of the test harness.
    let text = "skipped: NATS_SERVER names no server (ci/nats installs one and sets it)\n";
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// Returns a folder that no other server has.
fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("pirn-nats-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns ports that are free now.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

impl Server {
    /// Starts a server. Returns nothing, and says so, if this machine has no NATS server.
    pub fn start() -> Option<Server> {
        if program().is_none() {
            skipped();
            return None;
        }
        Some(Server::run(folder(), String::new()))
    }

    /// Starts a cluster of three.
    pub fn cluster() -> Option<[Server; 3]> {
        if program().is_none() {
            skipped();
            return None;
        }
        let routes = free_ports::<3>();
        let urls = routes.map(|port| format!("\"nats-route://127.0.0.1:{port}\""));
        let servers = [0, 1, 2].map(|number| {
            let config = format!(
                "server_name: s{number}\ncluster {{ name: c, host: 127.0.0.1, port: {}, routes: [{}] }}\n",
                routes[number],
                urls.join(", "),
            );
            Server::run(folder(), config)
        });
        Some(servers)
    }

    fn run(folder: PathBuf, config: String) -> Server {
        let program = program().expect("it has been found before");
        let text = format!(
            "host: 127.0.0.1\nport: -1\nports_file_dir: {folder:?}\nlog_file: {log:?}\n{config}\
             jetstream {{ store_dir: {store:?}, max_mem: 64MB, max_file: 1GB }}\n",
            log = folder.join("log"),
            store = folder.join("store"),
        );
        let file = folder.join("config");
        fs::write(&file, text).unwrap();
        // The shell's input ends with this process, however that ends, and then the server does.
        let script = r#""$0" -c "$1" </dev/null >/dev/null 2>&1 & echo $!; read end; kill -9 $! 2>/dev/null"#;
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .args([&program, &file])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let pid = line.trim().parse().unwrap();
        let port = port_of(&folder, &program, pid);
        Server {
            shell,
            pid,
            port,
            folder,
            config,
            is_last: true,
        }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connects a node of the system `test`.
    pub fn node(&self, name: &str) -> Node {
        self.node_with(name, Node::builder())
    }

    /// Connects a node whose leases are as short as in the processes with a role.
    pub fn hasty_node(&self, name: &str) -> Node {
        self.node_with(name, Node::builder().lease(LEASE))
    }

    /// Connects a node of the system `test` that this makes.
    pub fn node_with(&self, name: &str, builder: Builder) -> Node {
        builder.name(name).connect(&self.url(), "test").unwrap()
    }

    /// Kills the server, and starts another one with the same folder, on another port: its own may
    /// be another process's meanwhile.
    pub fn restart(mut self) -> Server {
        self.is_last = false;
        let (folder, config) = (self.folder.clone(), self.config.clone());
        drop(self);
        Server::run(folder, config)
    }

    /// Does the same with an empty store.
    pub fn restart_empty(mut self) -> Server {
        self.is_last = false;
        let (folder, config) = (self.folder.clone(), self.config.clone());
        drop(self);
        fs::remove_dir_all(folder.join("store")).unwrap();
        Server::run(folder, config)
    }

    pub fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Sends a signal: `SIGSTOP` and `SIGCONT` have it stand still and go on.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: it only sends a signal, and the process is a child's child that is not reaped
        // before `drop`.
        unsafe { libc::kill(self.pid, signal) };
    }
}

/// The length of leases in tests that wait for their end. A machine that has no time for a process
/// for half as long costs it its names: shorter ones failed here, with twenty processes per core.
pub const LEASE: Duration = Duration::from_secs(4);

/// Waits until the server has written its port to the folder.
fn port_of(folder: &Path, program: &Path, pid: libc::pid_t) -> u16 {
    let name = program.file_name().unwrap().to_str().unwrap();
    let file = folder.join(format!("{name}_{pid}.ports"));
    loop {
        // Its shell does not wait for it: it stays there as a zombie.
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_there = !status.is_empty() && !status.contains(") Z");
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(is_there, "the server does not run:\n{}", log());
        let text = fs::read_to_string(&file).unwrap_or_default();
        if let Some((_, rest)) = text.split_once("nats://127.0.0.1:") {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            if rest.len() > digits.len() {
                return digits.parse().unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
        if self.is_last {
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}
