//! The tables of `docs/accuracy.md`: how every saved screen is read, by agent and version, and what is taken for what.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::pane::{Grade, Label, PaneVerdict, ScreenFacts, State, judge_capture};

use super::captures::{Screen, known_gaps, screens};

/// The page.
pub(crate) const PAGE: &str = "docs/accuracy.md";

/// What stands before and after the tables.
const BEGIN: &str = "<!-- Made by `cargo run --example accuracy`; do not edit by hand. -->\n";
const END: &str = "<!-- End of what is made. -->\n";

/// The page with the tables as they are now.
pub(crate) fn page(old: &str) -> String {
    let (head, rest) = old.split_once(BEGIN).expect("docs/accuracy.md has the mark before its tables");
    let (_old_tables, tail) = rest.split_once(END).expect("docs/accuracy.md has the mark after its tables");
    format!("{head}{BEGIN}\n{}\n{END}{tail}", tables())
}

/// How many screens were read how.
#[derive(Default)]
struct Count {
    total: usize,
    right: usize,
    unknown: usize,
    wrong: usize,
    unsafe_: usize,
    /// Of which the label says what the screen does not show, as the page lists.
    untold: usize,
}

impl Count {
    /// Counts a screen.
    fn add(&mut self, grade: Grade, is_listed: bool) {
        self.total += 1;
        match grade {
            Grade::Unsafe => self.unsafe_ += 1,
            Grade::Right => self.right += 1,
            _ if is_listed => self.untold += 1,
            Grade::Unknown => self.unknown += 1,
            Grade::Wrong => self.wrong += 1,
        }
    }
}

/// All tables.
fn tables() -> String {
    let profiles = Profiles::builtin().expect("the built-in profiles load");
    let screens = screens();
    let judge = |screen: &Screen, facts: &ScreenFacts| {
        let profile = profiles.get(&screen.label.agent).expect("every capture is of an agent with a profile");
        judge_capture(profile, facts, &screen.capture)
    };
    let live: Vec<(&Screen, PaneVerdict)> =
        screens.iter().map(|screen| (screen, judge(screen, &screen.label.facts()))).collect();
    // What tmux alone knows is left out: a saved text can't tell of it.
    let texts = screens.iter().filter(|screen| screen.label.state != "copy-mode");
    let text: Vec<(&Screen, PaneVerdict)> =
        texts.map(|screen| (screen, judge(screen, &ScreenFacts::default()))).collect();
    let mut out = String::new();
    let versions: BTreeSet<&str> = screens.iter().map(folder).collect();
    let _infallible = writeln!(out, "{} screens in {} groups.\n", screens.len(), versions.len());
    out.push_str(&counts("With the facts of tmux", &live, &known_gaps(false)));
    out.push_str(&counts("By the text alone", &text, &known_gaps(true)));
    let agents: BTreeSet<&str> = screens.iter().map(|screen| screen.label.agent.as_str()).collect();
    for agent in agents {
        out.push_str(&confusion(agent, live.iter().filter(|(screen, _)| screen.label.agent == agent)));
    }
    out.trim_end().to_owned() + "\n"
}

/// The folder of a screen: its agent, version and renderer.
fn folder(screen: &Screen) -> &str {
    screen.name.split('/').next().unwrap_or_default()
}

/// How many screens of each agent and version were read how.
fn counts(title: &str, judged: &[(&Screen, PaneVerdict)], gaps: &BTreeSet<String>) -> String {
    let mut rows: BTreeMap<(&str, &str), Count> = BTreeMap::new();
    let mut all = Count::default();
    for (screen, verdict) in judged {
        let agent = screen.label.agent.as_str();
        let version = folder(screen).strip_prefix(agent).unwrap_or_default().trim_start_matches('-');
        let (grade, is_listed) = (screen.label.grade(verdict), gaps.contains(&screen.name));
        rows.entry((agent, version)).or_default().add(grade, is_listed);
        all.add(grade, is_listed);
    }
    let mut out = format!(
        "### {title}\n\n| agent | version | captures | right | unknown | wrong | unsafe | not on the screen |\n"
    );
    out.push_str("|---|---|--:|--:|--:|--:|--:|--:|\n");
    let mut row = |agent: &str, version: &str, count: &Count| {
        let Count { total, right, unknown, wrong, unsafe_, untold } = count;
        let _infallible =
            writeln!(out, "| {agent} | {version} | {total} | {right} | {unknown} | {wrong} | {unsafe_} | {untold} |");
    };
    for ((agent, version), count) in &rows {
        row(agent, version, count);
    }
    row("all", "", &all);
    out.push('\n');
    out
}

/// Which labels became which verdicts.
fn confusion<'a>(agent: &str, judged: impl Iterator<Item = &'a (&'a Screen, PaneVerdict)>) -> String {
    let mut cells: BTreeMap<String, BTreeMap<State, usize>> = BTreeMap::new();
    for (screen, verdict) in judged {
        *cells.entry(meant(&screen.label)).or_default().entry(verdict.state).or_default() += 1;
    }
    let used: BTreeSet<State> = cells.values().flat_map(BTreeMap::keys).copied().collect();
    let mut out = format!("### What is taken for what: {agent}\n\n| what was done |");
    for state in &used {
        let _infallible = write!(out, " {state} |");
    }
    out.push_str("\n|---|");
    out.push_str(&"--:|".repeat(used.len()));
    out.push('\n');
    for (label, counts) in &cells {
        let _infallible = write!(out, "| {label} |");
        for state in &used {
            let count = counts.get(state).map(ToString::to_string).unwrap_or_default();
            let _infallible = write!(out, " {count} |");
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

/// The label as a row of the matrix: its state, and what makes another verdict right.
fn meant(label: &Label) -> String {
    let mut text = label.state.clone();
    let varies = matches!(label.state.as_str(), "api-error" | "auth-required" | "busy" | "copy-mode" | "over-limit");
    if varies && label.input_row == "typed" {
        text.push_str(", draft");
    } else if varies && label.input_row == "none" {
        text.push_str(", no box");
    }
    if varies && label.state != "busy" && label.turn_running {
        text.push_str(", turn runs");
    }
    text
}
