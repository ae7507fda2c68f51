//! A form with files: `cargo run --release -p pirn-http --example multipart_form [ADDRESS]`, then
//! open the page.

use pirn_http::{Request, Response, Server};
use std::io;

const FORM: &str = r#"<!DOCTYPE html>
<meta charset="utf-8"><title>Upload</title>
<form method="post" enctype="multipart/form-data">
  <label>Files: <input type="file" name="file" multiple></label>
  <input type="submit" value="Upload">
</form>
"#;

/// Counts the bytes of each part. Files of any size take a page of memory.
fn accept(request: &mut Request) -> io::Result<String> {
    request.allow_body(250 << 20);
    let mut form = request.multipart()?;
    let mut found = String::new();
    while let Some(mut part) = form.next_part()? {
        let bytes = io::copy(&mut part, &mut io::sink())?;
        let file = part.file_name().unwrap_or("no file");
        found += &format!("{}: {file}, {bytes} bytes\n", part.name());
    }
    Ok(found)
}

#[pirn::main]
fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    Server::new()
        .get("/", || Response::ok().html(FORM))
        .post("/", accept)
        .bind(address)?
        .serve()
}
