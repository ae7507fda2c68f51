//! Serving files: [`Files`], a folder; [`File`], one file.

mod conditions;
mod file;
mod listing;
mod open;
mod ranges;

use crate::negotiation;
use crate::request::Request;
use crate::response::{IntoResponse, Response};
pub use file::File;
use http::StatusCode;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, HeaderValue};
use percent_encoding::percent_decode_str;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// The ends of names of files that have been compressed beforehand, with their codings; the best
/// first.
const COMPRESSED: [(&str, &str); 3] = [("br", ".br"), ("zstd", ".zst"), ("gzip", ".gz")];

/// A folder whose files are served.
///
/// * The end of a file's name decides its media type; [conditional requests](File::response_to) and
///   ranges are served.
/// * A folder is served by its `index.html`. A folder without one is listed only if that is
///   [allowed](Self::listings).
/// * No path leads out of the folder: neither `..`, in any spelling, nor a symbolic link.
/// * Files and folders whose names begin with a dot are not served, but for `.well-known` (RFC
///   8615) in the folder itself.
///
/// # Examples
/// ```
/// use pirn_http::{Server, files::Files};
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("style.css"), "body {}")?;
/// # let folder = folder.path();
/// let server = Server::new().files("/static", Files::new(folder)?);
/// let answer = server.client().get("/static/style.css");
/// assert_eq!(answer.text(), "body {}");
/// assert_eq!(answer.headers["content-type"], "text/css; charset=utf-8");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Files {
    root: Arc<OwnedFd>,
    index: Option<String>,
    dot_files: bool,
    precompressed: bool,
    listings: bool,
    cache_control: Option<HeaderValue>,
}

impl Files {
    /// Returns the files of a folder. The folder is opened now, and is still served after it has
    /// been moved or replaced.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<Files> {
        let path = folder.as_ref();
        let root = open::folder(path).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(
                error.kind(),
                format!("the folder {}: {error}", path.display()),
            )
        })?;
        Ok(Files {
            root: Arc::new(root),
            index: Some("index.html".to_owned()),
            dot_files: false,
            precompressed: false,
            listings: false,
            cache_control: None,
        })
    }

    /// Sets which file a folder is served by; `index.html`. `None`: folders are not served.
    #[must_use]
    pub fn index(self, name: Option<&str>) -> Files {
        let index = name.map(str::to_owned);
        Files { index, ..self }
    }

    /// Serves files and folders whose names begin with a dot as well.
    #[must_use]
    pub fn dot_files(self) -> Files {
        Files {
            dot_files: true,
            ..self
        }
    }

    /// Serves `name.br`, `name.zst` or `name.gz` in place of `name`, if that file is there and not
    /// older, and the client accepts its coding.
    #[must_use]
    pub fn precompressed(self) -> Files {
        Files {
            precompressed: true,
            ..self
        }
    }

    /// Serves a folder without an index by a page that shows its files and folders: the first
    /// 10,000, and those that begin with a dot only if they are [served](Self::dot_files).
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Server, files::Files};
    /// # let folder = tempfile::tempdir()?;
    /// # std::fs::write(folder.path().join("a.txt"), "")?;
    /// # let folder = folder.path();
    /// let server = Server::new().files("/", Files::new(folder)?.listings());
    /// assert!(server.client().get("/").text().contains("<a href=\"./a.txt\">a.txt</a>"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn listings(self) -> Files {
        Files {
            listings: true,
            ..self
        }
    }

    /// Sets `Cache-Control`.
    ///
    /// # Panics
    /// If the value has bytes that no header field may have.
    #[must_use]
    pub fn cache_control(self, value: &'static str) -> Files {
        let cache_control = Some(HeaderValue::from_static(value));
        Files {
            cache_control,
            ..self
        }
    }

    /// Returns the response to a request for a file, whose path beneath the folder is as in a
    /// request's target: with slashes, and percent signs for what is escaped. A path that ends with
    /// a slash, or is empty, names a folder.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Response, Server, Status, files::Files};
    /// # let folder = tempfile::tempdir()?;
    /// # std::fs::write(folder.path().join("a.txt"), "")?;
    /// let files = Files::new(folder.path())?;
    /// let server = Server::new().get("/private/{*path}", move |request: &mut Request| {
    ///     if request.header("authorization") != Some("Bearer secret") {
    ///         return Response::new(Status::UNAUTHORIZED);
    ///     }
    ///     files.response_to(request, &request.uri.path()["/private/".len()..])
    /// });
    /// assert_eq!(server.client().get("/private/a.txt").status, Status::UNAUTHORIZED);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn response_to(&self, request: &Request, path: &str) -> Response {
        let mut response = match self.find(request, path) {
            Ok(Found::File(file)) => file.response_to(request),
            Ok(Found::Folder) => return to_folder(request),
            Ok(Found::Listing(page)) => return page,
            Err(status) => return status.into_response(),
        };
        if let Some(value) = &self.cache_control {
            response.headers.insert(CACHE_CONTROL, value.clone());
        }
        if self.precompressed {
            negotiation::vary(&mut response.headers, &ACCEPT_ENCODING);
        }
        response
    }

    fn find(&self, request: &Request, path: &str) -> Result<Found, StatusCode> {
        let asked = self.name(path)?;
        let is_folder = asked.is_empty() || asked.ends_with(b"/");
        let (name, file) = if is_folder {
            match self.index_of(&asked)? {
                Some(index) => index,
                None => return self.listing(&asked),
            }
        } else {
            let file = open::beneath(self.root.as_fd(), &asked).map_err(status)?;
            (asked.clone(), file)
        };
        match File::new(file, &name, None) {
            Ok(Some(file)) => Ok(Found::File(self.compressed(request, &name, file))),
            // A folder with the index's name is not an index.
            Ok(None) if is_folder && self.listings => self.listing(&asked),
            Ok(None) if is_folder => Err(StatusCode::NOT_FOUND),
            Ok(None) => self.folder(&asked),
            Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// Returns the path beneath the folder, decoded. Nothing in it means anything but the names of
    /// folders and files: what another program might take for more is refused.
    fn name(&self, path: &str) -> Result<Vec<u8>, StatusCode> {
        let mut name = Vec::with_capacity(path.len());
        let mut segments = path.split('/').peekable();
        while let Some(segment) = segments.next() {
            let decoded = Vec::from_iter(percent_decode_str(segment));
            let is_last = segments.peek().is_none();
            let is_name = !decoded.is_empty() && decoded != b"." && decoded != b"..";
            let is_well_known = name.is_empty() && decoded == b".well-known";
            let is_hidden = decoded.starts_with(b".") && !self.dot_files && !is_well_known;
            if decoded.contains(&b'/') || decoded.contains(&0) {
                return Err(StatusCode::BAD_REQUEST);
            }
            if is_hidden || !(is_name || decoded.is_empty() && is_last) {
                return Err(StatusCode::NOT_FOUND);
            }
            name.extend_from_slice(&decoded);
            if !is_last {
                name.push(b'/');
            }
        }
        Ok(name)
    }

    /// Returns the compressed file that is served in place of `plain`, if it is up to date and the
    /// client accepts its coding. Returns `plain` otherwise.
    fn compressed(&self, request: &Request, name: &[u8], plain: File) -> File {
        if !self.precompressed {
            return plain;
        }
        let mut codings = COMPRESSED.map(|(coding, _)| coding).to_vec();
        let accepted = || request.fields_named(ACCEPT_ENCODING.as_str());
        while let Some(coding) = negotiation::preferred(accepted(), &codings) {
            let end = COMPRESSED.iter().find(|(known, _)| *known == coding);
            let longer = [name, end.map_or("", |(_, end)| end).as_bytes()].concat();
            if let Ok(file) = open::beneath(self.root.as_fd(), &longer)
                && let Ok(Some(file)) = File::new(file, name, Some(coding))
                && file.is_as_new_as(&plain)
            {
                return file;
            }
            codings.retain(|known| *known != coding);
        }
        plain
    }

    /// Has a request for a folder redirected to the path with a slash at its end: relative
    /// references in the folder's index need that slash.
    fn folder(&self, name: &[u8]) -> Result<Found, StatusCode> {
        self.index_of(&[name, b"/"].concat())?;
        Ok(Found::Folder)
    }

    /// Returns a folder's index, with its path. `None`: the folder has no index, and is listed.
    fn index_of(&self, folder: &[u8]) -> Result<Option<(Vec<u8>, std::fs::File)>, StatusCode> {
        let error = match &self.index {
            Some(index) => {
                let path = [folder, index.as_bytes()].concat();
                match open::beneath(self.root.as_fd(), &path) {
                    Ok(file) => return Ok(Some((path, file))),
                    Err(error) => error,
                }
            }
            None => Errno::NOENT,
        };
        match error {
            Errno::NOENT if self.listings => Ok(None),
            error => Err(status(error)),
        }
    }

    fn listing(&self, folder: &[u8]) -> Result<Found, StatusCode> {
        let page = listing::page(self.root.as_fd(), folder, self.dot_files);
        page.map(Found::Listing).map_err(status)
    }
}

enum Found {
    File(File),
    /// A folder, with an index or a listing.
    Folder,
    Listing(Response),
}

/// Returns the status of a file that cannot be opened.
fn status(error: Errno) -> StatusCode {
    match error {
        Errno::ACCESS => StatusCode::FORBIDDEN,
        // The path leads out of the folder, has a circle of links or a malformed name, or ends at a
        // socket or a device.
        Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::INVAL => {
            StatusCode::NOT_FOUND
        }
        Errno::NAMETOOLONG | Errno::NXIO | Errno::NODEV => StatusCode::NOT_FOUND,
        Errno::MFILE | Errno::NFILE => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Sends the client to the path with a slash at its end. An empty segment is refused before, so
/// that the location begins with one slash, and names no other host.
fn to_folder(request: &Request) -> Response {
    let query = request
        .uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let location = format!("{}/{query}", request.uri.path());
    match HeaderValue::try_from(location) {
        Ok(value) if !request.uri.path().starts_with("//") => {
            let mut response = Response::new(StatusCode::MOVED_PERMANENTLY);
            response.headers.insert(http::header::LOCATION, value);
            response
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the handler of all paths beneath a route's, see
/// [`Server::files`](crate::Server::files).
pub(crate) fn handler(files: Files) -> impl Fn(&mut Request) -> Response + Send + Sync + 'static {
    move |request: &mut Request| match rest(request) {
        Some(path) => files.response_to(request, path),
        None => to_folder(request),
    }
}

/// Returns the path beneath a route's, still encoded: what the route calls its rest. `None`: there
/// is not even the slash before it.
fn rest(request: &Request) -> Option<&str> {
    let before = request.route()?.split("{*").next()?;
    let slashes = before.matches('/').count();
    let mut parts = request.uri.path().splitn(slashes + 1, '/');
    parts.nth(slashes).filter(|_| before.ends_with('/'))
}
