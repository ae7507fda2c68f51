//! Pages that show what is in a folder.

use super::open;
use crate::response::Response;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rustix::fs::{AtFlags, Dir, FileType};
use std::collections::BinaryHeap;
use std::fmt::Write;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::time::{Duration, UNIX_EPOCH};

/// Only so many of a folder are shown: no browser shows a page of millions of lines.
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

/// In the order of the page: folders, and then files, by name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    is_file: bool,
    name: Vec<u8>,
    bytes: u64,
    changed: Duration,
}

/// Returns the page of a folder beneath another. Its name is empty, or ends with a slash.
pub(super) fn page(
    root: BorrowedFd<'_>,
    folder: &[u8],
    dot_files: bool,
) -> rustix::io::Result<Response> {
    let (entries, count) = entries(root, folder, dot_files)?;
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
    if count > MOST {
        let _ = writeln!(page, "<p>These are the first {MOST} of {count}.</p>"); // To a string.
    }
    Ok(Response::ok()
        .html(page)
        .header(CONTENT_SECURITY_POLICY, POLICY))
}

fn line(page: &mut String, entry: &Entry) {
    let slash = if entry.is_file { "" } else { "/" };
    // `./` keeps a name with a colon from being taken for an address.
    let reference = percent_encode(&entry.name, PLAIN);
    let name = escaped(&entry.name);
    let size = match entry.is_file {
        true => entry.bytes.to_string(),
        false => String::new(),
    };
    let changed = httpdate::fmt_http_date(UNIX_EPOCH + entry.changed);
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "<tr><td><a href=\"./{reference}{slash}\">{name}{slash}</a></td><td>{size}</td>\
         <td>{changed}</td></tr>"
    );
}

/// Returns the first entries of a folder in the order of the page, and how many there are in all.
fn entries(
    root: BorrowedFd<'_>,
    folder: &[u8],
    dot_files: bool,
) -> rustix::io::Result<(Vec<Entry>, usize)> {
    let path: &[u8] = if folder.is_empty() { b"." } else { folder };
    let folder = open::beneath(root, path)?;
    // The last one is on top.
    let mut first = BinaryHeap::new();
    let mut count = 0;
    for found in Dir::read_from(&folder)? {
        let found = found?;
        let name = found.file_name().to_bytes();
        let is_self = [&b"."[..], b".."].contains(&name);
        if is_self || name.starts_with(b".") && !dot_files {
            continue;
        }
        let entry = Entry {
            is_file: !found.file_type().is_dir(),
            name: name.to_owned(),
            bytes: 0,
            changed: Duration::ZERO,
        };
        let kind = found.file_type();
        let entry = match kind.is_dir() || kind.is_file() {
            true => Some(entry),
            false => described(root, path, &folder, entry), // It has to be asked what it is.
        };
        if let Some(entry) = entry {
            count += 1;
            first.push(entry);
            if first.len() > MOST {
                first.pop();
            }
        }
    }
    let first = first.into_sorted_vec().into_iter();
    let described = first.filter_map(|entry| described(root, path, &folder, entry));
    Ok((described.collect(), count))
}

/// Returns an entry with its size and time. `None`: it has gone since, or is not served.
fn described(root: BorrowedFd<'_>, path: &[u8], folder: &File, entry: Entry) -> Option<Entry> {
    let name = &entry.name[..];
    let mut stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(stat.st_mode).is_symlink() {
        // What it leads to, if that is served.
        let served = open::beneath(root, &[path, b"/", name].concat());
        stat = served.and_then(|file| rustix::fs::fstat(&file)).ok()?;
    }
    let kind = FileType::from_raw_mode(stat.st_mode);
    (kind.is_dir() || kind.is_file()).then(|| Entry {
        is_file: kind.is_file(),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        changed: Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0)),
        ..entry
    })
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
