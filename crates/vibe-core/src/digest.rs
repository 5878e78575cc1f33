//! SHA-256 digests, the only digest vibe writes down.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::string_serde::string_serde;

/// A SHA-256 digest: 32 bytes, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest([u8; 32]);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a SHA-256 digest: 64 lower-case hex digits are expected")]
pub struct DigestError {
    text: String,
}

impl Sha256Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads `sha256:<64 hex>`, the form that names its recipe.
    pub fn from_prefixed(text: &str) -> Result<Self, DigestError> {
        text.strip_prefix("sha256:")
            .ok_or_else(|| refused(text))?
            .parse()
            .map_err(|_| refused(text))
    }

    /// Writes `sha256:<64 hex>`.
    pub fn prefixed(&self) -> String {
        format!("sha256:{self}")
    }
}

fn refused(text: &str) -> DigestError {
    DigestError {
        text: crate::text::shown(text),
    }
}

impl FromStr for Sha256Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(refused(text));
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = hex_value(pair[0]).ok_or_else(|| refused(text))?;
            let low = hex_value(pair[1]).ok_or_else(|| refused(text))?;
            *byte = high * 16 + low;
        }
        Ok(Self(bytes))
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn hex_digit(value: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(value)])
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            text.push(hex_digit(byte / 16));
            text.push(hex_digit(byte % 16));
        }
        out.write_str(&text)
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{self}")
    }
}

string_serde!(Sha256Digest);

/// A digest being computed piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Sha256Hasher(Sha256);

impl Sha256Hasher {
    /// A hasher that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything taken.
    pub fn finish(self) -> Sha256Digest {
        Sha256Digest(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // FIPS 180-4 example vectors.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn digest_of_the_published_examples() {
        assert_eq!(Sha256Digest::of(b"abc").to_string(), ABC);
        assert_eq!(Sha256Digest::of(b"").to_string(), EMPTY);
        let mut hasher = Sha256Hasher::new();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(hasher.finish().to_string(), ABC);
        assert_eq!(
            format!("{:?}", Sha256Digest::of(b"abc")),
            format!("sha256:{ABC}")
        );
    }

    #[test]
    fn digest_text_round_trips_in_both_forms() {
        let digest: Sha256Digest = ABC.parse().unwrap();
        assert_eq!(digest, Sha256Digest::of(b"abc"));
        assert_eq!(digest.as_bytes()[..2], [0xba, 0x78]);
        assert_eq!(
            Sha256Digest::from_prefixed(&digest.prefixed()).unwrap(),
            digest
        );
    }

    #[test]
    fn digest_text_of_another_shape_is_refused() {
        let upper = ABC.to_uppercase();
        let prefixed = format!("md5:{ABC}");
        let wrong_digit = format!("{}g", &ABC[..63]);
        for text in [
            "",
            &ABC[..63],
            &format!("{ABC}0"),
            &upper,
            &wrong_digit,
            &prefixed,
        ] {
            assert!(text.parse::<Sha256Digest>().is_err(), "{text}");
            assert!(Sha256Digest::from_prefixed(text).is_err(), "{text}");
        }
        assert!(Sha256Digest::from_prefixed(&format!("sha256:{upper}")).is_err());
    }
}
