//! Every saved screen, varied: other words and rows in the conversation, other widths, no colours, status lines of the
//! user's own, wide glyphs. The verdict stays, or becomes `unknown`; it never becomes another.
//!
//! Where the conversation is, is told here by each agent's plainest signs and never by the classifier. What is varied is
//! older than the last exchange, so that no variation takes away or adds what the label is about.
//!
//! `NEXUS_MUTATIONS` is the number of variations a screen (200 where a number of runs is asked for, fewer in CI); a
//! failure names the seed, which alone makes the same screen again.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that can't read its captures has to stop")]

#[path = "support/captures.rs"]
#[expect(dead_code, reason = "other tests read more of a capture")]
mod captures;

use captures::{Screen, screens};
use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::pane::{InputRow, PaneVerdict, Profile, State, judge_capture};
use nexus_watcher::logic::screen::style::{Colour, StyledRow};
use nexus_watcher::logic::screen::{Attr, Capture, Cell, parse_rows};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Variations a screen where nobody asks for another number.
const VARIATIONS: u64 = 60;

/// What a conversation may contain: quoted pieces of every agent's screen, and text of any script.
const TEXTS: &[&str] = &[
    "the parser reads one frame at a time",
    "Do you want to proceed?",
    "❯ 1. Yes",
    "❯ 2. No, and tell Claude what to do differently (esc)",
    "✻ Pondering… (12s · ↓ 1.2k tokens · esc to interrupt)",
    "• Working (12s • esc to interrupt)",
    "⠏ Thinking... (esc to cancel, 12s)",
    "You've hit your limit · resets 3am",
    "● API Error: 500 Internal server error.",
    "Esc to cancel · Tab to amend",
    "Enter to select · ↑/↓ to navigate · Esc to cancel",
    "Press up to edit queued messages",
    "1 background terminal running · /ps to view",
    "⬝⬝⬝⬝⬝⬝⬝⬝  esc interrupt",
    "Create it? (Y)es/(N)o [Yes]:",
    "△ Permission required",
    "日本語のテキスト：ファイルを読み込みました。",
    "한국어: 테스트가 모두 통과했습니다. 🚀 ✅ 👩‍👩‍👧",
    "RTL: שלום עולם مرحبا بالعالم",
    "combining: é ñ ǟ, zero width: a\u{200b}b",
    "─── a heading ───",
    "demo$ make test",
];

/// Words that take the place of others.
const WORDS: &[&str] = &["alpha", "Bravo", "chär", "δέλτα", "эхо", "三文字", "🚀", "golf-9", "hotel.rs", "שלום", "x"];

/// Rows with attributes.
type Rows = Vec<StyledRow>;

fn text(row: &StyledRow) -> String {
    row.cells.iter().map(|cell| cell.ch).collect()
}

fn cells(text: &str) -> StyledRow {
    let cells = text.chars().map(|ch| Cell { ch, attr: Attr::default() }).collect();
    StyledRow { cells, end: Attr::default() }
}

fn indent(text: &str) -> usize {
    text.chars().take_while(|ch| ch.is_whitespace()).count()
}

/// Whether a line runs across the screen in this row.
fn is_line(text: &str) -> bool {
    text.starts_with("───") && text.chars().filter(|ch| *ch == '─').count() >= 10
}

/// How many of the first rows are conversation that is older than the last exchange.
fn older_rows(screen: &Screen, rows: &[String]) -> usize {
    let starts = |row: &String| match screen.label.agent.as_str() {
        "claude" => ["❯", "●", "⏺", "✻", "☐", "←"].iter().any(|sign| row.starts_with(sign)),
        "codex" => ["›", "•", "■", "◦"].iter().any(|sign| row.starts_with(sign)),
        "gemini" => ["✦", "ℹ", "✕", " > "].iter().any(|sign| row.starts_with(sign)),
        "qwen" => {
            ["✦", "●", "✕", ">"].iter().any(|sign| row.strip_prefix("  ").is_some_and(|row| row.starts_with(sign)))
        }
        "opencode" => row.trim_start().starts_with('▣'),
        _ => is_line(row),
    };
    // A picker that floats over the page hides parts of any row.
    if screen.label.agent == "opencode" && screen.label.overlay != "none" {
        return 0;
    }
    let heads: Vec<usize> = (0..rows.len()).filter(|at| starts(&rows[*at])).collect();
    // The last may be the input box or an option under the cursor, the one before it what the label is about.
    heads.len().checked_sub(3).map_or(0, |nth| heads[nth])
}

/// One variation: its name and the rows.
fn vary(screen: &Screen, rows: &Rows, rng: &mut StdRng) -> (&'static str, Rows, bool) {
    let mut rows = rows.clone();
    let plain: Vec<String> = rows.iter().map(text).collect();
    let older = older_rows(screen, &plain);
    let lead = if screen.label.agent == "opencode" { "     " } else { "  " };
    match rng.random_range(0..7) {
        0 if older > 0 => {
            let at = rng.random_range(0..older);
            rows.remove(at);
            ("a row less", rows, false)
        }
        1 if older > 1 => {
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(1..older);
                rows.insert(at, cells(&format!("{lead}{}", TEXTS.choose(rng).unwrap())));
            }
            ("rows more", rows, false)
        }
        2 if older > 0 => {
            for row in &mut rows[..older] {
                let old = text(row);
                if indent(&old) == 0 || old.trim().is_empty() || old.contains(['│', '┃', '╭', '╰', '▣']) {
                    continue;
                }
                let count = old.split_whitespace().count();
                let words: Vec<&str> = (0..count).map(|_| *WORDS.choose(rng).unwrap()).collect();
                *row = cells(&format!("{}{}", " ".repeat(indent(&old)), words.join(" ")));
            }
            ("other words", rows, false)
        }
        3 => {
            let more = rng.random_range(1..90);
            for row in &mut rows {
                let old = text(row);
                let last = row.cells.last().copied();
                if let Some(last) = last.filter(|last| is_line(&old) && last.ch == '─') {
                    row.cells.extend(std::iter::repeat_n(last, more));
                }
            }
            ("wider", rows, false)
        }
        4 => ("narrower", narrower(rows, &plain, older, rng), false),
        5 => {
            for row in &mut rows {
                for cell in &mut row.cells {
                    cell.attr = Attr::default();
                }
                row.end = Attr::default();
            }
            ("without colours", rows, true)
        }
        6 if screen.label.agent == "claude" && screen.label.input_row != "none" => {
            let below = plain.iter().rposition(|row| is_line(row));
            if let Some(below) = below.filter(|at| plain[at + 1..].iter().any(|row| indent(row) >= 2)) {
                for _ in 0..rng.random_range(1..4) {
                    rows.insert(
                        below + 1,
                        cells(["  main | 12% ctx | $0.42", "  ➜ demo git:(main)", "  三文字 🚀"].choose(rng).unwrap()),
                    );
                }
            }
            ("status lines", rows, false)
        }
        _ => ("nothing", rows, false),
    }
}

/// The conversation wrapped at a narrower edge, and lines across the screen cut there; nothing else is as wide.
fn narrower(rows: Rows, plain: &[String], older: usize, rng: &mut StdRng) -> Rows {
    let widest = plain.iter().skip(older).filter(|row| !is_line(row)).map(|row| row.trim_end().chars().count()).max();
    let widest = widest.unwrap_or(0).max(30);
    let lines = plain.iter().filter(|row| is_line(row)).map(|row| row.chars().count()).max().unwrap_or(0);
    if lines <= widest {
        return rows;
    }
    let width = rng.random_range(widest..lines);
    let mut out = Rows::new();
    for (at, mut row) in rows.into_iter().enumerate() {
        let old = &plain[at];
        if is_line(old) {
            row.cells.truncate(width);
            out.push(row);
        } else if at < older && row.cells.len() > width && !old.contains(['│', '┃', '▀']) {
            let hang = indent(old).max(2);
            let rest = row.cells.split_off(width);
            let end = row.end;
            out.push(StyledRow { cells: row.cells, end: Attr::default() });
            for part in rest.chunks(width.saturating_sub(hang).max(1)) {
                let mut wrapped = cells(&" ".repeat(hang));
                wrapped.cells.extend_from_slice(part);
                wrapped.end = end;
                out.push(wrapped);
            }
        } else {
            out.push(row);
        }
    }
    out
}

/// The rows as `capture-pane -e` would print them.
fn printed(rows: &Rows) -> String {
    let mut out = String::new();
    for row in rows {
        let mut attr = Attr::default();
        for cell in &row.cells {
            if cell.attr != attr {
                attr = cell.attr;
                out.push_str(&sgr(attr));
            }
            out.push(cell.ch);
        }
        if row.end != attr {
            out.push_str(&sgr(row.end));
        }
        if row.end != Attr::default() || attr != Attr::default() {
            // The next row starts anew; a cursor drawn on a blank has to be seen before.
            if row.end.reverse {
                out.push(' ');
            }
            out.push_str("\x1b[0m");
        }
        out.push('\n');
    }
    out
}

fn sgr(attr: Attr) -> String {
    let mut codes = vec!["0".to_owned()];
    codes.extend(
        [(attr.bold, "1"), (attr.dim, "2"), (attr.reverse, "7")]
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, code)| (*code).to_owned()),
    );
    match attr.fg {
        Some(Colour::Palette(n)) => codes.push(format!("38;5;{n}")),
        Some(Colour::Rgb(r, g, b)) => codes.push(format!("38;2;{r};{g};{b}")),
        None => {}
    }
    format!("\x1b[{}m", codes.join(";"))
}

/// Whether the new verdict is one that may follow from the variation.
fn may_become(before: &PaneVerdict, after: &PaneVerdict, colourless: bool) -> bool {
    let same = before.state == after.state && before.overlay == after.overlay;
    let unclear = colourless
        && before.input == Some(InputRow::Ghost)
        && (after.state, after.input) == (State::UserTyping, Some(InputRow::Unclear));
    same || after.state == State::Unknown || unclear
}

/// Varies the screens of an agent: every `parts`-th, from `part` on, so that no test takes minutes.
fn check(agent: &str, part: usize, parts: usize) {
    let profiles = Profiles::builtin().unwrap();
    let variations = std::env::var("NEXUS_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(VARIATIONS);
    let profile: &Profile = profiles.get(agent).unwrap();
    let (mut failures, mut count, mut changed) = (Vec::new(), 0_u32, 0_u32);
    let screens = screens();
    for screen in screens.iter().filter(|screen| screen.label.agent == agent).skip(part).step_by(parts) {
        let facts = screen.label.facts();
        let rows = parse_rows(&String::from_utf8_lossy(&screen.ansi).lines().map(str::to_owned).collect::<Vec<_>>());
        let before = judge_capture(profile, &facts, &Capture::from_bytes(printed(&rows).as_bytes()));
        let whole = judge_capture(profile, &facts, &screen.capture);
        assert_eq!((before.state, before.input), (whole.state, whole.input), "{}: printed anew", screen.name);
        for nth in 0..variations {
            let seed = nth.wrapping_mul(0x9e37_79b9).wrapping_add(screen.ansi.len() as u64);
            let (what, varied, colourless) = vary(screen, &rows, &mut StdRng::seed_from_u64(seed));
            changed += u32::from(varied != rows);
            count += 1;
            let shown = printed(&varied);
            let after = judge_capture(profile, &facts, &Capture::from_bytes(shown.as_bytes()));
            if !may_become(&before, &after, colourless) {
                let reasons: Vec<&str> = after.evidence.iter().map(|reason| reason.rule.as_str()).collect();
                failures.push(format!(
                    "{} seed {seed}, {what}: {} {:?} became {} {:?} ({reasons:?})\n{}",
                    screen.name,
                    before.state,
                    before.overlay,
                    after.state,
                    after.overlay,
                    varied.iter().map(text).collect::<Vec<_>>().join("\n")
                ));
                break;
            }
        }
    }
    assert!(changed * 6 > count, "only {changed} of {count} variations changed anything");
    let shown = failures.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n");
    let names: Vec<&str> = failures.iter().map(|failure| failure.lines().next().unwrap_or_default()).collect();
    assert!(failures.is_empty(), "{} screens:\n{}\n\n{shown}", failures.len(), names.join("\n"));
}

#[test]
fn a_varied_screen_of_claude_is_read_as_before_or_not_at_all_1() {
    check("claude", 0, 4);
}

#[test]
fn a_varied_screen_of_claude_is_read_as_before_or_not_at_all_2() {
    check("claude", 1, 4);
}

#[test]
fn a_varied_screen_of_claude_is_read_as_before_or_not_at_all_3() {
    check("claude", 2, 4);
}

#[test]
fn a_varied_screen_of_claude_is_read_as_before_or_not_at_all_4() {
    check("claude", 3, 4);
}

#[test]
fn a_varied_screen_of_codex_is_read_as_before_or_not_at_all_1() {
    check("codex", 0, 3);
}

#[test]
fn a_varied_screen_of_codex_is_read_as_before_or_not_at_all_2() {
    check("codex", 1, 3);
}

#[test]
fn a_varied_screen_of_codex_is_read_as_before_or_not_at_all_3() {
    check("codex", 2, 3);
}

#[test]
fn a_varied_screen_of_gemini_is_read_as_before_or_not_at_all() {
    check("gemini", 0, 1);
}

#[test]
fn a_varied_screen_of_qwen_is_read_as_before_or_not_at_all() {
    check("qwen", 0, 1);
}

#[test]
fn a_varied_screen_of_opencode_is_read_as_before_or_not_at_all() {
    check("opencode", 0, 1);
}

#[test]
fn a_varied_screen_of_aider_is_read_as_before_or_not_at_all() {
    check("aider", 0, 1);
}
