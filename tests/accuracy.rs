//! `docs/accuracy.md` says how well the screens are read now, and nothing in it is wrong or unsafe.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/accuracy.rs"]
mod accuracy;
#[path = "support/captures.rs"]
#[expect(dead_code, reason = "other tests read more of a capture")]
mod captures;

#[test]
fn the_published_table_is_current() {
    let page = std::fs::read_to_string(captures::root().join(accuracy::PAGE)).unwrap();
    assert!(page == accuracy::page(&page), "docs/accuracy.md is not current: cargo run --example accuracy");
}

#[test]
fn no_published_number_is_wrong_or_unsafe() {
    let page = std::fs::read_to_string(captures::root().join(accuracy::PAGE)).unwrap();
    let rows: Vec<Vec<&str>> = page.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
    let counts: Vec<&Vec<&str>> = rows.iter().filter(|row| row.len() == 10 && row[3].parse::<u32>().is_ok()).collect();
    assert!(counts.len() > 5, "{counts:?}");
    for row in counts {
        assert_eq!((row[6], row[7]), ("0", "0"), "wrong and unsafe of {row:?}");
    }
}
