//! Responses. Each ends its connection: on loopback a new one costs nothing.

use std::io::{self, BufWriter, Write};

/// What a response begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    BadRequest,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    HeadTooLarge,
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::Unavailable => "503 Service Unavailable",
        }
    }
}

/// What is in all responses.
///
/// The page may load and ask nothing but its own files and answers; nobody may frame it, keep it,
/// or learn its address.
const ALWAYS: &str = "Content-Security-Policy: default-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; object-src 'none'\r\n\
    X-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Cache-Control: no-store\r\n\
    Connection: close\r\n";

/// Writes the head of a response whose type is `kind`.
fn head(out: &mut dyn Write, status: Status, kind: &str, more: &str) -> io::Result<()> {
    let allow = match status {
        Status::MethodNotAllowed => "Allow: GET\r\n",
        _ => "",
    };
    let line = status.line();
    write!(
        out,
        "HTTP/1.1 {line}\r\nContent-Type: {kind}\r\n{ALWAYS}{allow}{more}\r\n"
    )
}

/// Writes a whole response.
pub fn send(out: &mut dyn Write, status: Status, kind: &str, body: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(body.len() + 1024);
    let length = format!("Content-Length: {}\r\n", body.len());
    head(&mut bytes, status, kind, &length)?;
    bytes.extend_from_slice(body);
    out.write_all(&bytes)
}

/// Refuses a request. The answer says nothing but its status.
pub fn refuse(out: &mut dyn Write, status: Status) -> io::Result<()> {
    let body = format!("{}\n", status.line());
    send(out, status, "text/plain; charset=utf-8", body.as_bytes())
}

/// Begins a stream that lasts until one side ends the connection.
pub fn stream(out: &mut dyn Write, kind: &str) -> io::Result<()> {
    head(out, Status::Ok, kind, "")
}

/// Sends a file to be saved, which is written piece by piece. If that fails in the middle, the
/// browser sees that the last piece is missing.
pub fn save_as(
    out: &mut dyn Write,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let more = format!(
        "Content-Disposition: attachment; filename=\"{name}\"\r\nTransfer-Encoding: chunked\r\n"
    );
    head(out, Status::Ok, "application/octet-stream", &more)?;
    let mut body = BufWriter::with_capacity(64 << 10, Chunks(&mut *out));
    write(&mut body)?;
    body.flush()?;
    drop(body);
    out.write_all(b"0\r\n\r\n")
}

/// Writes each piece with its length before it.
struct Chunks<'a>(&'a mut dyn Write);

impl Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            write!(self.0, "{:x}\r\n", bytes.len())?;
            self.0.write_all(bytes)?;
            self.0.write_all(b"\r\n")?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_pieces_with_an_end() {
        let mut sent = Vec::new();
        save_as(&mut sent, "x.json", |out| {
            out.write_all(b"0123456789abcdef")
        })
        .unwrap();
        let sent = String::from_utf8(sent).unwrap();
        assert!(sent.contains("filename=\"x.json\"\r\n"));
        assert!(
            sent.ends_with("\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"),
            "{sent}"
        );

        let mut sent = Vec::new();
        let failed = save_as(&mut sent, "x", |out| {
            out.write_all(&[b'x'; 100_000])?;
            Err(io::ErrorKind::Other.into())
        });
        assert!(failed.is_err());
        assert!(!sent.ends_with(b"0\r\n\r\n"), "it looks complete");
    }

    #[test]
    fn each_response_keeps_others_out() {
        let mut sent = Vec::new();
        refuse(&mut sent, Status::MethodNotAllowed).unwrap();
        let sent = String::from_utf8(sent).unwrap();
        for part in [
            "HTTP/1.1 405 Method Not Allowed\r\n",
            "Allow: GET\r\n",
            "Content-Security-Policy: default-src 'self'",
            "Referrer-Policy: no-referrer\r\n",
            "Cache-Control: no-store\r\n",
            "nosniff",
        ] {
            assert!(sent.contains(part), "{part:?} is not in {sent}");
        }
        assert!(!sent.contains("Access-Control"), "{sent}");
    }
}
