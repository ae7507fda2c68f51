//! Which files are served, listed, and told from others.

use super::folder;
use pirn_http::files::Files;
use pirn_http::{Method, Server};
use std::fs;

#[test]
fn a_file_that_was_compressed_before_it_changed_is_not_served() {
    let (_all, public) = folder();
    let at = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let touch = |name: &str, seconds| {
        let file = fs::File::options()
            .write(true)
            .open(public.join(name))
            .unwrap();
        file.set_modified(at(seconds)).unwrap();
    };
    let files = Files::new(&public).unwrap().precompressed();
    let client = Server::new().files("/", files).client();
    let fields = [("accept-encoding", "gzip, br")];
    let get = || client.request(Method::GET, "/app.js", &fields, b"").text();
    for (plain, gzip, br, served) in [
        (1000, 1000, 1000, "br"),
        (1000, 1000, 999, "gzipped"),
        (1000, 999, 999, "plain"),
        (1000, 2000, 2000, "br"),
    ] {
        touch("app.js", plain);
        touch("app.js.gz", gzip);
        touch("app.js.br", br);
        assert_eq!(get(), served, "{plain} {gzip} {br}");
    }
}

#[test]
fn what_the_standard_says_is_well_known_is_served() {
    let (_all, public) = folder();
    fs::create_dir_all(public.join(".well-known/acme")).unwrap();
    fs::create_dir_all(public.join("docs/.well-known")).unwrap();
    fs::write(public.join(".well-known/acme/token"), "token").unwrap();
    fs::write(public.join(".well-known/.hidden"), "hidden").unwrap();
    fs::write(public.join("docs/.well-known/x"), "hidden").unwrap();
    let client = Server::new()
        .files("/", Files::new(&public).unwrap())
        .client();
    assert_eq!(client.get("/.well-known/acme/token").text(), "token");
    for hidden in [
        "/.well-known/.hidden",
        "/docs/.well-known/x",
        "/.well-known2",
        "/.hidden",
    ] {
        assert_eq!(client.get(hidden).status.as_u16(), 404, "{hidden}");
    }
}

#[test]
fn the_first_of_many_files_are_listed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..10_050 {
        fs::write(folder.path().join(format!("{number:05}")), "").unwrap();
    }
    fs::create_dir(folder.path().join("z")).unwrap();
    let files = Files::new(folder.path()).unwrap().listings();
    let page = Server::new().files("/", files).client().get("/").text();
    assert_eq!(page.matches("<tr>").count(), 10_000);
    let at = |name: &str| page.find(&format!("\"./{name}\""));
    assert!(
        at("z/") < at("00000") && at("00000") < at("09998"),
        "folders are first"
    );
    assert!(at("09998").is_some() && at("09999").is_none());
    assert!(
        page.contains("the first 10000 of 10051"),
        "{}",
        &page[page.len() - 100..]
    );
}

#[test]
fn another_file_has_another_tag_whatever_its_time_says() {
    let (_all, public) = folder();
    let write = |name: &str, text: &str| {
        fs::write(public.join(name), text).unwrap();
        let file = fs::File::options()
            .write(true)
            .open(public.join(name))
            .unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    };
    let client = Server::new()
        .files("/", Files::new(&public).unwrap())
        .client();
    let tag = || client.get("/one").headers["etag"].clone();
    write("one", "aaaa");
    let first = tag();
    assert_eq!(first, tag());
    write("other", "bbbb");
    fs::rename(public.join("other"), public.join("one")).unwrap();
    assert_ne!(first, tag());
}

#[test]
fn a_stream_of_television_has_its_registered_type() {
    let (_all, public) = folder();
    fs::write(public.join("segment.TS"), "G").unwrap();
    let client = Server::new()
        .files("/", Files::new(&public).unwrap())
        .client();
    assert_eq!(
        client.get("/segment.TS").headers["content-type"],
        "video/mp2t"
    );
}
