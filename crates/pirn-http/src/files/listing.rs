//! Pages that show what is in a folder.

use super::open;
use crate::response::Response;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rustix::fs::{AtFlags, Dir, FileType};
use std::fmt::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, UNIX_EPOCH};

/// More of a folder is not shown: a page of millions of lines helps nobody.
const MOST: usize = 10_000;

/// What may stay as it is in a reference that is a file's name.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// No script runs on these pages, whatever files are called.
const POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");

const STYLE: &str = "body{font:16px/1.6 sans-serif;margin:2em}td{padding-right:2em}\
    td+td{text-align:right;font-variant-numeric:tabular-nums}\
    :root{color-scheme:light dark}";

struct Entry {
    name: Vec<u8>,
    is_folder: bool,
    bytes: u64,
    changed: Duration,
}

/// Returns the page of a folder beneath another. Its name is empty, or ends with a slash.
pub(super) fn page(
    root: BorrowedFd<'_>,
    folder: &[u8],
    dot_files: bool,
) -> rustix::io::Result<Response> {
    let mut entries = entries(root, folder, dot_files)?;
    entries.sort_by(|a, b| (!a.is_folder, &a.name).cmp(&(!b.is_folder, &b.name)));
    let is_cut = entries.len() > MOST;
    entries.truncate(MOST);
    let title = escaped(&[b"/", folder].concat());
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n<table>\n"
    );
    if !folder.is_empty() {
        page += "<tr><td><a href=\"../\">../</a></td></tr>\n";
    }
    for entry in &entries {
        line(&mut page, entry);
    }
    page += "</table>\n";
    if is_cut {
        let _ = writeln!(page, "<p>There are more than {MOST} files.</p>"); // To a string.
    }
    Ok(Response::ok()
        .html(page)
        .header(CONTENT_SECURITY_POLICY, POLICY))
}

fn line(page: &mut String, entry: &Entry) {
    let slash = if entry.is_folder { "/" } else { "" };
    // `./` keeps a name with a colon from being taken for an address.
    let reference = percent_encode(&entry.name, PLAIN);
    let name = escaped(&entry.name);
    let size = match entry.is_folder {
        true => String::new(),
        false => entry.bytes.to_string(),
    };
    let changed = httpdate::fmt_http_date(UNIX_EPOCH + entry.changed);
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "<tr><td><a href=\"./{reference}{slash}\">{name}{slash}</a></td><td>{size}</td>\
         <td>{changed}</td></tr>"
    );
}

fn entries(root: BorrowedFd<'_>, folder: &[u8], dot_files: bool) -> rustix::io::Result<Vec<Entry>> {
    let path: &[u8] = if folder.is_empty() { b"." } else { folder };
    let folder = open::beneath(root, path)?;
    let mut entries = Vec::new();
    for found in Dir::read_from(&folder)? {
        let name = found?.file_name().to_owned();
        let is_self = [&b"."[..], b".."].contains(&name.to_bytes());
        if is_self || name.to_bytes().starts_with(b".") && !dot_files {
            continue;
        }
        let Ok(mut stat) = rustix::fs::statat(folder.as_fd(), &name, AtFlags::SYMLINK_NOFOLLOW)
        else {
            continue; // It has gone since.
        };
        if FileType::from_raw_mode(stat.st_mode).is_symlink() {
            // What it leads to, if that is served.
            let served = open::beneath(root, &[path, b"/", name.to_bytes()].concat());
            match served.and_then(|file| rustix::fs::fstat(&file)) {
                Ok(linked) => stat = linked,
                Err(_) => continue,
            }
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind.is_dir() || kind.is_file() {
            entries.push(Entry {
                name: name.into_bytes(),
                is_folder: kind.is_dir(),
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
                changed: Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0)),
            });
        }
        if entries.len() > MOST {
            break;
        }
    }
    Ok(entries)
}

/// Returns a name as text of HTML.
fn escaped(name: &[u8]) -> String {
    let mut text = String::new();
    for character in String::from_utf8_lossy(name).chars() {
        match character {
            '&' => text += "&amp;",
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '"' => text += "&quot;",
            '\'' => text += "&#39;",
            character => text.push(character),
        }
    }
    text
}
