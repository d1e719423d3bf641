//! Text out of bytes that another process may change while they are looked at: those of a mapped file.
//!
//! A `&str` promises UTF-8 for as long as it lives, and a mapping cannot promise that. So bytes are copied first, and
//! the copy is checked. What is not UTF-8 is replaced. `tests/layers.rs` checks that no other module validates bytes of
//! an input.

/// The longest text that is copied without an allocation; names of threads, functions and most files are shorter.
const SHORT: usize = 128;

/// A copy as text.
pub fn copied(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// A copy as text, where it has to be all UTF-8.
pub fn copied_exactly(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// Call `take` with a copy as text, which costs no allocation where the text is short.
pub fn with_copy<R>(bytes: &[u8], take: impl FnOnce(&str) -> R) -> R {
    let mut short = [0; SHORT];
    match short.get_mut(..bytes.len()) {
        Some(copy) => {
            copy.copy_from_slice(bytes);
            match std::str::from_utf8(copy) {
                Ok(text) => take(text),
                Err(_) => take(&String::from_utf8_lossy(copy)),
            }
        }
        None => take(&copied(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_text_whatever_the_bytes() {
        let long = [b"\xff".as_slice(), "é".repeat(SHORT).as_bytes()].concat();
        for (bytes, text) in [(b"comm".as_slice(), "comm"), (b"", ""), (b"a\xffb", "a\u{fffd}b")] {
            assert_eq!((copied(bytes).as_str(), with_copy(bytes, str::to_owned).as_str()), (text, text));
        }
        assert_eq!(with_copy(&long, str::to_owned), format!("\u{fffd}{}", "é".repeat(SHORT)));
        assert_eq!((copied_exactly(b"x").as_deref(), copied_exactly(b"\xff")), (Some("x"), None));
    }
}
