//! The page's files, which are part of the command.

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal, $name:literal, $kind:ident;)*) => {
        /// Path, type and contents of each.
        const FILES: &[(&str, &str, &[u8])] = &[
            $(($path, $kind, include_bytes!(concat!("page/", $name)))),*
        ];
    };
}

files! {
    "", "index.html", HTML;
    "style.css", "style.css", STYLE;
    "icon.svg", "icon.svg", IMAGE;
    "main.js", "main.js", SCRIPT;
    "state.js", "state.js", SCRIPT;
    "dom.js", "dom.js", SCRIPT;
    "words.js", "words.js", SCRIPT;
    "chart.js", "chart.js", SCRIPT;
    "overview.js", "overview.js", SCRIPT;
    "groups.js", "groups.js", SCRIPT;
    "scopes.js", "scopes.js", SCRIPT;
    "carriers.js", "carriers.js", SCRIPT;
    "threads.js", "threads.js", SCRIPT;
}

/// Returns the type and the contents of a file of the page.
pub fn file(path: &str) -> Option<(&'static str, &'static [u8])> {
    let file = FILES.iter().find(|(name, ..)| *name == path)?;
    Some((file.1, file.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_these_files_and_no_others() {
        assert_eq!(file("").unwrap().0, HTML);
        for path in [
            "index.html",
            "/",
            "../mod.rs",
            "page/main.js",
            "%6dain.js",
            "main.js/",
            ".",
        ] {
            assert!(file(path).is_none(), "{path:?}");
        }
    }

    /// The page's policy forbids scripts and styles in the text, and text that becomes one.
    #[test]
    fn the_page_has_no_scripts_inline() {
        for (path, kind, bytes) in FILES {
            let text = std::str::from_utf8(bytes).unwrap();
            let forbidden = match *kind {
                HTML => &[
                    "<style", "style=", "onclick", "onload", "<script>", "http:", "https:",
                ][..],
                SCRIPT => &[
                    "innerHTML",
                    "outerHTML",
                    "insertAdjacentHTML",
                    "eval(",
                    "https:",
                ],
                STYLE => &["@import", "url(", "https:"],
                _ => &["<script", "onload"],
            };
            for part in forbidden {
                assert!(!text.contains(part), "{path:?} has {part:?}");
            }
        }
    }
}
