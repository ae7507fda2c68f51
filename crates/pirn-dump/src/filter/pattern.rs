//! Text with `*` and `?`.

/// What a text must be like.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Vec<u8>);

impl Pattern {
    /// A text like this.
    pub fn whole(text: &str) -> Pattern {
        Pattern(text.as_bytes().to_vec())
    }

    /// A text that contains this, or is like it if it has a `*` or `?`.
    pub fn part(text: &str) -> Pattern {
        if text.contains(['*', '?']) {
            Pattern::whole(text)
        } else {
            Pattern::whole(&format!("*{text}*"))
        }
    }

    /// A text that ends like this.
    pub fn end(text: &str) -> Pattern {
        Pattern::whole(&format!("*{text}"))
    }

    /// The number that it is.
    pub fn number(&self) -> Option<u64> {
        std::str::from_utf8(&self.0).ok()?.parse().ok()
    }

    /// Whether a text is like it. Takes time in proportion to the product of the lengths at most.
    pub fn matches(&self, text: &[u8]) -> bool {
        let pattern = &self.0;
        let (mut at, mut seen) = (0, 0);
        // The last `*`, and how much of the text it stands for up to now.
        let mut star: Option<(usize, usize)> = None;
        while seen < text.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at, seen));
                    at += 1;
                }
                Some(byte) if *byte == b'?' || *byte == text[seen] => {
                    at += 1;
                    seen += 1;
                }
                _ => {
                    let Some((place, until)) = star else {
                        return false;
                    };
                    star = Some((place, until + 1));
                    (at, seen) = (place + 1, until + 1);
                }
            }
        }
        pattern[at..].iter().all(|byte| *byte == b'*')
    }
}
