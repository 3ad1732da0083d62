//! Durations and sizes as people write them on the command line: `1h30m`, `256M`.

use std::time::Duration;

/// Reads a duration: whole numbers with `d`, `h`, `m`, `s` or `ms`, the larger first.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: &[(&str, u64)] = &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let wrong = || "write it like 90s, 30m, 8h or 1h30m, more than nothing".to_owned();
    let (mut rest, mut total, mut smallest) = (text.trim(), 0_u64, u64::MAX);
    while !rest.is_empty() {
        let (number, tail) = leading_number(rest).ok_or_else(wrong)?;
        let end = tail.find(|ch: char| !ch.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, after) = tail.split_at_checked(end).ok_or_else(wrong)?;
        let millis = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, millis)| *millis).ok_or_else(wrong)?;
        if millis >= smallest {
            return Err(wrong());
        }
        smallest = millis;
        total = number.checked_mul(millis).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = after;
    }
    // A year; what is longer is a slip of the keys, and no clock has to add it.
    if total == 0 || total > 366 * 86_400_000 { Err(wrong()) } else { Ok(Duration::from_millis(total)) }
}

/// Reads a size: a whole number of bytes, or with `K`, `M` or `G` of 1024 each.
///
/// Errors: none of these, or less than 64 KiB, which holds hardly a screen.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "write it like 500K, 256M or 2G, at least 64K".to_owned();
    let (number, unit) = leading_number(text.trim()).ok_or_else(wrong)?;
    let shift = match unit.to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(1 << shift).filter(|bytes| *bytes >= 64 << 10).ok_or_else(wrong)
}

/// The number that a text begins with, and what follows it.
fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read_as_people_write_them() {
        for (text, seconds) in [("90s", 90), ("30m", 1800), ("8h", 28_800), ("1h30m", 5400), ("2d", 172_800)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "8", "h", "0s", "30m1h", "1h1h", "-5s", "1.5h", "8 h", "99999999999999999999s", "9999d", "5ß"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        for (text, bytes) in
            [("65536", 65_536), ("500K", 512_000), ("256M", 256 << 20), ("2GiB", 2 << 30), ("1g", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "1K", "-1M", "99999999999G", "5X", "1.5G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
