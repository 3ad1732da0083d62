//! What holds of any screen whatever, for every profile: bytes of any kind at any width, and rows of real screens shuffled.
//!
//! Nothing panics; `blocked` rests on something that is no input box or on a rule that says so; no pane is idle without an
//! empty or suggested input row, or while any mark of a running turn was seen.

#![expect(clippy::unwrap_used, reason = "a test that can't read its captures has to stop")]

#[path = "support/captures.rs"]
#[expect(dead_code, reason = "other tests read more of a capture")]
mod captures;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::pane::{self, InputRow, Profile, ScreenFacts, State, judge_capture};
use nexus_watcher::logic::screen::Capture;
use proptest::prelude::*;

static PROFILES: LazyLock<Profiles> = LazyLock::new(|| Profiles::builtin().unwrap());

/// The last rows of real screens, by agent.
static ROWS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for screen in captures::screens() {
        let plain = screen.capture.plain();
        let filled = plain.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |at| at + 1);
        rows.entry(screen.label.agent).or_default().extend_from_slice(&plain[filled.saturating_sub(16)..filled]);
    }
    rows
});

fn check(profile: &Profile, text: &str) -> Result<(), TestCaseError> {
    let capture = Capture::from_bytes(text.as_bytes());
    let facts = ScreenFacts::default();
    let verdict = judge_capture(profile, &facts, &capture);
    let says = |id: &str| profile.screen.rules.iter().find(|rule| rule.id == id).map(|rule| rule.votes.state);
    let found = pane::matches(profile, &facts, capture.plain(), None);
    if matches!(verdict.state, State::Idle | State::AutosuggestOnly) {
        prop_assert!(matches!(verdict.input, Some(InputRow::Blank | InputRow::Ghost)), "{}: {verdict:?}", profile.name);
        for (_, id, _) in &found {
            prop_assert!(says(id) != Some(Some(State::Busy)), "{}: idle with {id}:\n{text}", profile.name);
        }
    }
    if verdict.state == State::Blocked {
        let rule = verdict.evidence.first().map(|reason| reason.rule.clone()).unwrap_or_default();
        let boxed = pane::composer(profile, capture.plain(), None).is_some();
        prop_assert!(
            !boxed || says(&rule) == Some(Some(State::Blocked)),
            "{}: {rule} over a box:\n{text}",
            profile.name
        );
    }
    Ok(())
}

/// The rows cut at this width.
fn at_width(rows: &[String], width: usize) -> String {
    let cut = rows.iter().map(|row| row.chars().take(width).collect::<String>());
    cut.collect::<Vec<_>>().join("\n")
}

proptest! {
    #[test]
    fn any_bytes_at_any_width_are_judged_soundly(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        width in 20_usize..400,
    ) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let rows: Vec<String> = text.chars().collect::<Vec<_>>().chunks(width).map(|row| row.iter().collect()).collect();
        for profile in PROFILES.iter() {
            check(profile, &rows.join("\n"))?;
        }
    }

    #[test]
    fn rows_of_real_screens_in_any_order_at_any_width_are_judged_soundly(
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 1..30),
        width in 20_usize..400,
    ) {
        for profile in PROFILES.iter() {
            let Some(pool) = ROWS.get(&profile.name) else { continue };
            let rows: Vec<String> = picks.iter().map(|pick| pick.get(pool).clone()).collect();
            check(profile, &at_width(&rows, width))?;
        }
    }

    #[test]
    fn the_end_of_a_real_screen_below_anything_is_judged_soundly(
        pick in any::<prop::sample::Index>(),
        above in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        width in 20_usize..400,
    ) {
        for profile in PROFILES.iter() {
            let Some(pool) = ROWS.get(&profile.name) else { continue };
            let start = pick.index(pool.len());
            let mut rows: Vec<String> = above.iter().map(|pick| pick.get(pool).clone()).collect();
            rows.extend(pool.iter().skip(start).take(16).cloned());
            check(profile, &at_width(&rows, width))?;
        }
    }
}
