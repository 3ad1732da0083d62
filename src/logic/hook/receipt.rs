//! The receipt of an emit: the prompt hook saw its signature.

use serde::{Deserialize, Serialize};

use crate::logic::ids::Signature;
use crate::logic::time::Timestamp;

/// `receipts/<nonce>.json`, one of the witnesses of a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Receipt {
    /// When the prompt came, ISO 8601.
    pub ts: String,
    /// The same in milliseconds since 1970.
    pub epoch_ms: i64,
    /// The agent's session.
    pub session_id: String,
    /// The window whose hook saw it; empty if nothing named one.
    pub window: String,
    /// The pane, `%12`; empty if the hook ran outside tmux.
    pub pane: String,
    /// The signature's time, which together with the nonce is the signature.
    pub iso: String,
}

impl Receipt {
    /// Path of the receipt of the emit with this nonce; `None` unless the nonce is six lower-case hex digits.
    pub fn path(nonce: &str) -> Option<String> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (nonce.len() == 6 && nonce.bytes().all(hex)).then(|| format!("receipts/{nonce}.json"))
    }
}

/// The signatures in a text, in order.
pub(super) fn signatures(text: &str) -> impl Iterator<Item = Signature> + '_ {
    text.match_indices("nexus-emit-sig ").filter_map(|(at, word)| {
        let mut words = text.get(at + word.len()..)?.split(' ');
        let iso = words.next()?;
        let rest = words.next()?;
        let nonce = rest.get(..6)?;
        let ends = rest.get(6..)?.chars().next().is_none_or(|c| !c.is_alphanumeric());
        let is_iso = iso.len() <= 35 && Timestamp::parse_iso(iso).is_some();
        (is_iso && ends && Receipt::path(nonce).is_some()).then(|| Signature { iso: iso.into(), nonce: nonce.into() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_named_by_six_hex_digits_only() {
        assert_eq!(Receipt::path("0a1b2c").as_deref(), Some("receipts/0a1b2c.json"));
        for bad in ["0A1b2c", "../../", "0a1b2", "0a1b2cd", ""] {
            assert_eq!(Receipt::path(bad), None, "{bad}");
        }
    }
}
