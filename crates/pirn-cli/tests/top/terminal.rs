//! A terminal of the test's own, with a screen that can be read.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use pirn_testing::patient;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal, in which a command runs.
pub struct Terminal {
    keyboard: File,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    pub child: Child,
    /// How the terminal was before. The command's end of it is kept open to ask how it is.
    before: Termios,
    line: OwnedFd,
}

impl Terminal {
    /// Runs a command in a terminal of this size.
    pub fn start(command: &[&str], columns: u16, rows: u16) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keyboard = openpt(flags).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let line = ioctl_tiocgptpeer(&keyboard, flags).unwrap();
        tcsetwinsize(&line, size(columns, rows)).unwrap();
        let before = tcgetattr(&line).unwrap();
        // It gets a session of its own, whose terminal this is.
        let end = || line.try_clone().unwrap();
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .args(command)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keyboard = File::from(keyboard);
        let output = reader(keyboard.try_clone().unwrap());
        Terminal {
            keyboard,
            output,
            parser: vt100::Parser::new(at_least_one(rows), at_least_one(columns), 0),
            child,
            before,
            line,
        }
    }

    /// Presses keys.
    pub fn write(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.parser
            .set_size(at_least_one(rows), at_least_one(columns));
        tcsetwinsize(self.keyboard.as_fd(), size(columns, rows)).unwrap();
    }

    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub fn text(&self) -> String {
        self.screen().contents()
    }

    /// Waits until the screen has all of these texts, and returns what is on it.
    #[track_caller]
    pub fn until_has(&mut self, parts: &[&str]) -> String {
        self.until(&format!("{parts:?}"), |screen| {
            let text = screen.contents();
            parts.iter().all(|part| text.contains(part))
        })
    }

    /// Waits until the screen is as it should be, and returns what is on it.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) -> String {
        let begin = Instant::now();
        while !is_so(self.screen()) {
            let left = patient(PATIENCE).saturating_sub(begin.elapsed());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(error) => panic!("{error}: not {what}:\n{}", self.text()),
            }
        }
        self.text()
    }

    /// Waits until the command has ended, and makes sure that the terminal is as it was before.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                begin.elapsed() < patient(PATIENCE),
                "it does not end:\n{}",
                self.text()
            );
            match self.output.recv_timeout(Duration::from_millis(10)) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("nothing can be read"),
            }
        };
        // What it wrote last may still be on its way.
        self.until("given back", |screen| {
            !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste()
        });
        let after = tcgetattr(&self.line).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what the command writes, until the terminal is closed.
fn reader(mut terminal: File) -> Receiver<Vec<u8>> {
    let (bytes, output) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut buffer) {
            if bytes.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    output
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}
