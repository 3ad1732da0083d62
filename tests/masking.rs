//! Every capture, masked: the verdict stays, and little of the text does.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/captures.rs"]
#[expect(dead_code, reason = "other tests read more of a capture")]
mod captures;

use captures::screens;
use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::archive::{differences, masked};
use nexus_watcher::logic::pane::judge_capture;
use nexus_watcher::logic::screen::Capture;

#[test]
fn a_masked_screen_is_judged_as_before_and_says_little() {
    let profiles = Profiles::builtin().unwrap();
    let (mut refused, mut count, mut words) = (Vec::new(), 0, (0, 0));
    for screen in screens() {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let facts = screen.label.facts();
        count += 1;
        let Some((text, verdict)) = masked(profile, &facts, &screen.capture) else {
            refused.push(screen.name);
            continue;
        };
        let again = judge_capture(profile, &facts, &Capture::from_rows(text.clone()));
        let whole = judge_capture(profile, &facts, &screen.capture);
        assert_eq!(again, verdict, "{}", screen.name);
        let others: Vec<String> = differences(&whole, &again).into_iter().map(|one| one.field).collect();
        let of_screen = ["question", "options", "chip"];
        assert!(others.iter().all(|field| of_screen.contains(&field.as_str())), "{}: {others:?}", screen.name);
        let long = |rows: &[String]| {
            rows.iter()
                .flat_map(|row| row.split_whitespace())
                .filter(|word| {
                    word.len() > 4
                        && word.chars().all(|ch| ch.is_ascii_alphabetic())
                        && word.chars().any(|ch| !matches!(ch, 'x' | 'X'))
                })
                .count()
        };
        words.0 += long(screen.capture.plain());
        words.1 += long(Capture::from_rows(text).plain());
    }
    assert!(refused.len() * 50 < count, "{} of {count} can't be masked: {refused:?}", refused.len());
    assert!(words.1 * 3 < words.0, "of {} words {} are still there", words.0, words.1);
}

#[test]
fn no_secret_survives_wherever_it_stands() {
    let profiles = Profiles::builtin().unwrap();
    let secrets = ["sk-ant-api03-SECRETsecret0123", "jane.doe@example.com", "0123456789abcdef0123456789abcdef"];
    let mut checked = 0;
    for screen in screens().iter().step_by(9) {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let text = String::from_utf8_lossy(&screen.ansi).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        for at in (0..lines.len()).step_by(7) {
            let mut with: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            with[at] = format!("{} {}", lines[at], secrets.join(" "));
            let capture = Capture::from_bytes(with.join("\n").as_bytes());
            if let Some((shown, verdict)) = masked(profile, &screen.label.facts(), &capture) {
                let shown = shown.join("\n");
                let told = serde_json::to_string(&verdict).unwrap();
                checked += 1;
                for secret in secrets {
                    assert!(!shown.contains(secret) && !told.contains(secret), "{} row {at}: {secret}", screen.name);
                }
            }
        }
    }
    assert!(checked > 100, "only {checked}");
}
