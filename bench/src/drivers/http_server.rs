//! Servers of libraries, asked for one thing again and again, by `wrk` or `h2load`: what they
//! answer, and the processor time that they take for it.

use super::wrk::{Answers, ask_again_and_again, check_answer, measured, port};
use super::{Driver, Round, Sample, h2load};
use crate::catalog::Params;
use crate::certificate::Certificate;
use crate::process::Process;
use anyhow::{Result, anyhow};
use bench_load::wrk::{Ask, upload};
use std::cell::LazyCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};
use tempfile::TempDir;

/// The parameters say over how many connections, with TLS or without, and how long bodies are.
pub struct HttpServer {
    what: What,
    /// How many there usually are; the parameter `connections` says how many there will be.
    connections: u64,
    seconds: u32,
    /// Files for the servers and the clients.
    folder: LazyCell<io::Result<TempDir>>,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    Greeting,
    /// The same over HTTP/2, with this many requests under way on each connection.
    Streams(u64),
    Upload,
    Download,
}

const GREETING: &str = "Hello, World!";

impl HttpServer {
    pub fn new(what: What, connections: u64, seconds: u32) -> HttpServer {
        HttpServer {
            what,
            connections,
            seconds,
            folder: LazyCell::new(tempfile::tempdir),
        }
    }

    fn folder(&self) -> Result<&Path> {
        let folder = self.folder.as_ref();
        let folder = folder.map_err(|error| anyhow!("no folder for temporary files: {error}"))?;
        Ok(folder.path())
    }

    /// Returns the server's certificate, if it speaks TLS.
    fn certificate(&self, params: &Params) -> Result<Option<Certificate>> {
        match params.get("tls") {
            None | Some(0) => Ok(None),
            Some(_) => Certificate::in_folder(self.folder()?).map(Some),
        }
    }

    /// Makes sure that the server answers as it should, which the load's clients do not look at.
    fn check(&self, round: &Round, port: u16) -> Result<()> {
        let length = round.param("body")?;
        let mut more: Vec<OsString> = Vec::new();
        if let Some(Certificate { certificate, .. }) = self.certificate(round.params)? {
            more.extend(["--certificate".into(), certificate.into()]);
        }
        let body = match self.what {
            What::Greeting => GREETING.to_owned(),
            What::Streams(_) => return h2load::check_answer(round, port, GREETING),
            What::Upload => {
                more.extend(["--post".into(), length.to_string().into()]);
                length.to_string()
            }
            What::Download => "x".repeat(usize::try_from(length)?),
        };
        if self.what != What::Greeting {
            more.extend(["--path".into(), "/body".into()]);
        }
        check_answer(round, port, &more, &body)
    }

    fn load(&self, round: &Round, port: u16, connections: u64, seconds: u32) -> Result<Answers> {
        if let What::Streams(streams) = self.what {
            let log = self.folder()?.join("h2load.log");
            return h2load::load(round, port, (connections, streams), seconds, &log);
        }
        let script = self.folder()?.join("upload.lua");
        let mut ask = Ask {
            tls: round.param("tls")? != 0,
            ..Ask::greeting(port)
        };
        if self.what != What::Greeting {
            ask.path = "/body";
        }
        if self.what == What::Upload {
            fs::write(&script, upload(round.param("body")?))?;
            ask.script = Some(&script);
        }
        ask_again_and_again(round, &ask, u32::try_from(connections)?, seconds)
    }

    /// Returns how much was answered: requests, or bytes where they are what counts.
    fn rate(&self, answers: &Answers, length: u64) -> Sample {
        let per_second = answers.per_second;
        let sample = match self.what {
            What::Greeting | What::Streams(_) => Sample::new("requests", per_second),
            What::Upload | What::Download => {
                Sample::new("throughput", per_second * length as f64 / 1e6)
            }
        };
        Sample {
            remark: answers.remark.clone(),
            ..sample
        }
    }
}

impl Driver for HttpServer {
    fn serves(&self) -> bool {
        true
    }

    fn program(&self) -> Option<&'static str> {
        match self.what {
            What::Streams(_) => Some("h2load"),
            _ => Some("wrk"),
        }
    }

    fn descriptors(&self) -> u64 {
        self.connections + 64
    }

    fn environment(&self, params: &Params) -> Result<Vec<(&'static str, PathBuf)>> {
        let certificate = self.certificate(params)?;
        Ok(certificate.map_or_else(Vec::new, Certificate::environment))
    }

    fn warm_up(&self, process: &mut Process, round: &Round) -> Result<()> {
        let port = port(process)?;
        let connections = round.param("connections")?.min(100);
        self.load(round, port, connections, 1).map(drop)
    }

    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let port = port(process)?;
        self.check(round, port)?;
        let connections = round.param("connections")?;
        let (answers, costs) = measured(process, || {
            self.load(round, port, connections, self.seconds)
        })?;
        let rate = self.rate(&answers, round.param("body")?);
        Ok([rate].into_iter().chain(costs).collect())
    }
}
