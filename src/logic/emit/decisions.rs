//! The `pending decisions` section: which records are told now, and the rows as the protocol prints them.
//!
//! A record is withheld only where the pane is plainly being driven forward; silencing a real block is the worse
//! error. Text in records comes from agents and is data.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::logic::ids::{Fingerprint, WindowName};
use crate::logic::pane::verdict::{PaneVerdict, State};
use crate::logic::shell::quote;
use crate::logic::signal::{Commit, Section, SectionKind};
use crate::logic::snapshot::{DecisionFile, ObservedPane, PaneFacts};
use crate::logic::time::{Now, Timestamp};

use super::clean::{label, one_line};
use super::dedup::is_within;

/// Table of the last delivery of each row: `window\tfingerprint\t<epoch>`.
pub const STAMPS_FILE: &str = "pending-decisions-emit-state.tsv";

/// Characters of the excerpt.
const EXCERPT_CHARS: usize = 160;

/// Rows of one emit; further rows are not stamped and follow in the next one.
const MAX_ROWS: usize = 25;

/// When each row was last delivered, by its key columns.
#[derive(Clone, Debug, Default)]
pub struct Stamps(BTreeMap<(String, String), Timestamp>);

impl Stamps {
    /// Reads the table; the newest stamp of a row counts, lines of another form are ignored.
    pub fn parse(text: &str) -> Self {
        let mut stamps = BTreeMap::new();
        for line in text.lines() {
            let mut columns = line.rsplitn(3, '\t');
            let (Some(epoch), Some(fingerprint), Some(window)) = (columns.next(), columns.next(), columns.next())
            else {
                continue;
            };
            let Ok(epoch) = epoch.trim().parse() else { continue };
            let at = Timestamp::from_secs(epoch);
            let newest = stamps.entry((window.to_owned(), fingerprint.to_owned())).or_insert(at);
            *newest = at.max(*newest);
        }
        Self(stamps)
    }

    /// When the row was last delivered.
    fn last(&self, key: &(String, String)) -> Option<Timestamp> {
        self.0.get(key).copied()
    }
}

/// Where the windows of records are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    /// Every pane that tmux lists; empty if the list could not be had.
    pub listed: &'a [PaneFacts],
    /// Those that were classified.
    pub observed: &'a [ObservedPane],
    /// The orchestrator's window: it is not told about itself.
    pub target: &'a str,
}

/// Why a record is not told now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// It is about the orchestrator's own window.
    Own,
    /// No window has this name.
    WindowGone,
    /// The pane is being driven forward.
    Driven(State),
    /// It was delivered within the cooldown.
    Cooldown,
}

/// What becomes of the records.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// The section, if a row is due.
    pub section: Option<Section>,
    /// Keys of the rows that it tells.
    pub told: Vec<(String, String)>,
    /// Records that are not told now.
    pub withheld: Vec<Withheld>,
}

/// Judges every live record and prints those that are due.
pub fn render(
    now: &Now,
    files: &[DecisionFile],
    windows: Windows<'_>,
    stamps: &Stamps,
    cooldown: Duration,
) -> Rendered {
    let mut rendered = Rendered::default();
    let mut lines = Vec::new();
    let mut commits = Vec::new();
    let mut named = Vec::new();
    let mut waiting: usize = 0;
    for file in files {
        let key = (label(file.window.as_str()), label(&file.fingerprint));
        let recently = || stamps.last(&key).is_some_and(|stamp| is_within(now.at, stamp, cooldown));
        let withheld = gate(&file.window, windows).or_else(|| recently().then_some(Withheld::Cooldown));
        if let Some(why) = withheld {
            rendered.withheld.push(why);
            continue;
        }
        if rendered.told.len() >= MAX_ROWS {
            waiting = waiting.saturating_add(1);
            continue;
        }
        lines.extend(row(file));
        let columns = vec![key.0.clone(), key.1.clone()];
        commits.push(Commit::StampRow { path: STAMPS_FILE.into(), key: columns, at_s: now.at.secs() });
        named.push(file.window.clone());
        rendered.told.push(key);
    }
    if waiting > 0 {
        lines.push(format!("[+{waiting} more decisions; told in the next report]"));
    }
    if !lines.is_empty() {
        named.dedup();
        rendered.section = Some(Section { kind: SectionKind::Decisions, lines, commits, pages: true, windows: named });
    }
    rendered
}

/// Why the pane's state forbids a row; `None` lets it through.
fn gate(window: &WindowName, windows: Windows<'_>) -> Option<Withheld> {
    if window.as_str() == windows.target {
        return Some(Withheld::Own);
    }
    // A name from a file of the older, lossy form matches the window that has that form.
    let is_it = |name: &WindowName| name == window || name.legacy_file_stem() == window.as_str();
    if !windows.listed.is_empty() && !windows.listed.iter().any(|pane| is_it(&pane.window_name)) {
        return Some(Withheld::WindowGone);
    }
    let mut verdicts = windows.observed.iter().filter(|pane| is_it(&pane.facts.window_name)).map(|pane| &pane.verdict);
    let first = verdicts.next()?;
    let driven = |verdict: &PaneVerdict| verdict.queued || is_driven(verdict.state);
    // A window whose panes differ is told: one of them may be the one that waits.
    (driven(first) && verdicts.all(driven)).then_some(Withheld::Driven(first.state))
}

/// Whether a pane in this state is being driven forward. A state that is not named here is told.
const fn is_driven(state: State) -> bool {
    matches!(state, State::Busy | State::WorkingBackground | State::WorkingSelfPaced | State::UserTyping)
}

/// The rows of one record.
fn row(file: &DecisionFile) -> Vec<String> {
    let window = quote(&label(file.window.as_str()));
    let fingerprint = label(&file.fingerprint);
    let (kind, unresolved, excerpt) = match &file.record {
        Ok(record) => {
            let first = record.prompt_excerpt.lines().map(|line| one_line(line, EXCERPT_CHARS));
            let excerpt = first.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
            (one_line(&record.kind, 40).replace(' ', "_"), record.unresolved == Some(true), excerpt)
        }
        Err(why) => {
            ("unreadable".to_owned(), false, one_line(&format!("(the record can't be read: {why})"), EXCERPT_CHARS))
        }
    };
    let kind = if kind.is_empty() { "unknown".to_owned() } else { kind };
    let unresolved = if unresolved { " unresolved=true" } else { "" };
    let path = one_line(&file.path, 300);
    // A name that was changed to be printed would not find its record; the path does.
    let by_name = label(file.window.as_str()) == file.window.as_str() && Fingerprint::parse(&fingerprint).is_some();
    let subject = if by_name { format!("{window} {fingerprint}") } else { quote(&path) };
    vec![
        format!("window={window} fp={fingerprint} kind={kind}{unresolved}"),
        format!("    prompt-excerpt={excerpt}"),
        format!("    file={path}"),
        format!("    ack=monitor/ng decision-ack {subject}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::pane::verdict::{Evidence, Witness};
    use crate::logic::snapshot::DecisionRecord;
    use crate::logic::worker::scope::tests::pane;

    const FP: &str = "0a1b2c3d4e5f";

    fn file(window: &str, excerpt: &str) -> DecisionFile {
        let record: DecisionRecord =
            serde_json::from_value(serde_json::json!({"kind": "permission_prompt", "prompt_excerpt": excerpt}))
                .unwrap();
        DecisionFile {
            path: format!("/n/monitor/.state/decisions/{window}.{FP}.json"),
            window: WindowName(window.into()),
            fingerprint: FP.into(),
            record: Ok(record),
        }
    }

    fn observed(name: &str, state: State, queued: bool) -> ObservedPane {
        let verdict = PaneVerdict { queued, ..PaneVerdict::of(state, Evidence::new(Witness::Screen, "test")) };
        ObservedPane { facts: pane(3, name), verdict }
    }

    fn run(files: &[DecisionFile], panes: &[ObservedPane], stamps: &str) -> Rendered {
        let now = Now::fixed(Timestamp::from_secs(10_000));
        let listed: Vec<PaneFacts> = panes.iter().map(|pane| pane.facts.clone()).collect();
        let windows = Windows { listed: &listed, observed: panes, target: "orchestrator" };
        render(&now, files, windows, &Stamps::parse(stamps), Duration::from_secs(300))
    }

    fn lines(rendered: &Rendered) -> Vec<String> {
        rendered.section.as_ref().map(|section| section.lines.clone()).unwrap_or_default()
    }

    #[test]
    fn a_row_has_the_form_of_the_protocol() {
        let mut file = file("w3", "\n  Claude needs your permission to use Bash  \nmore");
        if let Ok(record) = &mut file.record {
            record.unresolved = Some(true);
        }
        assert_eq!(
            lines(&run(&[file], &[observed("w3", State::Blocked, false)], "")),
            [
                "window=w3 fp=0a1b2c3d4e5f kind=permission_prompt unresolved=true",
                "    prompt-excerpt=Claude needs your permission to use Bash",
                "    file=/n/monitor/.state/decisions/w3.0a1b2c3d4e5f.json",
                "    ack=monitor/ng decision-ack w3 0a1b2c3d4e5f",
            ]
        );
    }

    #[test]
    fn only_a_pane_that_is_driven_forward_withholds() {
        for state in State::ALL {
            let withheld = matches!(state.word(), "busy" | "working-background" | "working-self-paced" | "user-typing");
            let rendered = run(&[file("w3", "x")], &[observed("w3", *state, false)], "");
            assert_eq!(rendered.section.is_none(), withheld, "{state}");
            assert!(run(&[file("w3", "x")], &[observed("w3", *state, true)], "").section.is_none(), "queued {state}");
        }
    }

    #[test]
    fn a_window_that_is_gone_is_dropped_unless_the_list_is_empty() {
        assert_eq!(run(&[file("w9", "x")], &[observed("w3", State::Idle, false)], "").withheld, [Withheld::WindowGone]);
        assert!(run(&[file("w9", "x")], &[], "").section.is_some());
    }

    #[test]
    fn the_orchestrator_is_not_told_about_itself() {
        let own = run(&[file("orchestrator", "x")], &[observed("orchestrator", State::Idle, false)], "");
        assert_eq!(own.withheld, [Withheld::Own]);
    }

    #[test]
    fn a_delivered_row_rests_for_the_cooldown() {
        let told = |stamps: &str| run(&[file("w3", "x")], &[observed("w3", State::Idle, false)], stamps).told.len();
        assert_eq!(told(&format!("w3\t{FP}\t9701")), 0);
        assert_eq!(told(&format!("w3\t{FP}\t9700")), 1);
        assert_eq!(told(&format!("w3\t{FP}\t9000\nw3\t{FP}\t9800\nw3\t{FP}\t9100")), 0);
        assert_eq!(told(&format!("w4\t{FP}\t9900")), 1);
        assert_eq!(told("garbage"), 1);
    }

    #[test]
    fn text_from_agents_stays_in_its_place() {
        let mut hostile = file("a b\nwindow=x fp=1", &format!("{}\u{1b}[2J", "y".repeat(300)));
        let rows = lines(&run(&[hostile.clone()], &[], ""));
        assert_eq!(rows.len(), 4);
        assert!(rows[0].starts_with("window='a b window=x fp=1' fp=0a1b"), "{rows:?}");
        assert!(rows[1].ends_with("yy…"), "{rows:?}");
        assert!(rows[3].contains("decision-ack '/n/monitor"), "{rows:?}");
        hostile.record = Err("not JSON".into());
        assert!(lines(&run(&[hostile], &[], ""))[1].contains("can't be read: not JSON"));
    }

    #[test]
    fn many_rows_are_told_in_turns() {
        let files: Vec<_> = (0..40).map(|n| file(&format!("w{n}"), "x")).collect();
        let rendered = run(&files, &[], "");
        assert_eq!(rendered.told.len(), MAX_ROWS);
        let section = rendered.section.unwrap();
        assert_eq!(section.commits.len(), MAX_ROWS);
        assert_eq!(section.lines.last().unwrap(), "[+15 more decisions; told in the next report]");
    }
}
