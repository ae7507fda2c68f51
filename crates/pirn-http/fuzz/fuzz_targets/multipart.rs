//! Bodies in parts: nothing crashes or hangs, and no part has bytes that the body has not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pirn_http::{Client, Method, Request, Server};
use std::io::{self, Read};
use std::sync::LazyLock;

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let count = |request: &mut Request| -> io::Result<String> {
        let mut parts = request.multipart()?;
        let mut total = 0;
        while let Some(mut part) = parts.next_part()? {
            let mut bytes = Vec::new();
            part.read_to_end(&mut bytes)?;
            total += bytes.len();
        }
        Ok(total.to_string())
    };
    Server::new().post("/", count).client()
});

fuzz_target!(|body: &[u8]| {
    let fields = [("content-type", "multipart/form-data; boundary=b")];
    let answer = CLIENT.request(Method::POST, "/", &fields, body);
    if answer.status.is_success() {
        let total: usize = answer.text().parse().expect("a number");
        assert!(total <= body.len(), "{total} bytes of {}", body.len());
    } else {
        assert!(answer.status.is_client_error(), "{answer:?}");
    }
});
