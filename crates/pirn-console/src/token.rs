//! The token: a client that knows it may see the page.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// The token's length in bytes; as text it has two digits per byte.
const BYTES: usize = 16;

/// 128 random bits.
pub struct Token(String);

impl Token {
    /// Returns a new one, of the kernel's random numbers.
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; BYTES];
        let mut filled = 0;
        while filled < BYTES {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
        }
        Ok(Token::of(bytes))
    }

    fn of(bytes: [u8; BYTES]) -> Token {
        Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the token as it is in addresses.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether this is the token. It takes as long for each text of the right length, so the time
    /// does not tell how much of a guess was right.
    pub fn is(&self, guess: &str) -> bool {
        let (own, guess) = (self.0.as_bytes(), guess.as_bytes());
        if own.len() != guess.len() {
            return false;
        }
        let pairs = own.iter().zip(guess);
        // `black_box`: the compiler must not stop at the first difference.
        let difference = pairs.fold(0, |sum, (own, guess)| {
            std::hint::black_box(sum | own ^ guess)
        });
        difference == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_will_do() {
        let token = Token::of([0xa5; BYTES]);
        assert_eq!(token.text(), "a5".repeat(16));
        assert!(token.is(&"a5".repeat(16)));
        for guess in ["", "a5", &"A5".repeat(16), &"a5".repeat(17)] {
            assert!(!token.is(guess), "{guess:?}");
        }
        for place in 0..32 {
            let mut guess = token.text().to_string();
            guess.replace_range(place..=place, "0");
            assert!(!token.is(&guess), "{guess:?}");
        }
        assert_ne!(
            Token::random().unwrap().text(),
            Token::random().unwrap().text()
        );
    }
}
