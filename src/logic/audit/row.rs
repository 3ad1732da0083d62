//! Acts as `ng audit` shows them: the lines of the log folded into one row an act.

use std::collections::HashMap;

use serde::Serialize;

use super::screen::ScreenId;
use super::{Cause, Checked, Ended, Event, Intent, Line, Place, Program, Source, What};
use crate::logic::time::Timestamp;

/// One act with what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Tells it from every other.
    pub id: String,
    /// When it was announced, milliseconds since 1970.
    pub at_ms: Timestamp,
    /// Who.
    pub by: Source,
    /// Why.
    pub cause: Cause,
    /// What.
    pub what: What,
    /// Where.
    pub place: Place,
    /// What tmux was told to check together with it.
    pub checked: Option<Checked>,
    /// How it ended.
    pub outcome: Settled,
    /// Why, for people.
    pub why: Option<String>,
    /// When tmux answered.
    pub ended_ms: Option<Timestamp>,
    /// What was seen afterwards.
    pub observed: Option<String>,
    /// The screen on which it was decided.
    pub before: Option<ScreenId>,
    /// The screen afterwards.
    pub after: Option<ScreenId>,
}

/// How an act ended, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", untagged)]
pub enum Settled {
    /// So.
    Ended(Ended),
    /// Not yet.
    Open(Open),
}

/// The word of an act that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Open {
    /// Who acts still lives.
    UnderWay,
}

impl Settled {
    /// The printed word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ended(ended) => ended.word(),
            Self::Open(Open::UnderWay) => "under-way",
        }
    }
}

/// Folds the log into rows, oldest first, and counts the lines that can't be read. `lives` tells whether the process of a
/// source still runs that announced something then: an act without an end of one that does not is unknown.
pub fn fold(text: &str, lives: &dyn Fn(&Source, Timestamp) -> bool) -> (Vec<Row>, usize) {
    let mut rows: Vec<Row> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut unreadable = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(Line { at_ms, id, event }) = serde_json::from_str::<Line>(line) else {
            unreadable += 1;
            continue;
        };
        let known = index.get(&id).and_then(|at| rows.get_mut(*at));
        match (event, known) {
            (Event::Intent(intent), None) => {
                index.insert(id.clone(), rows.len());
                rows.push(Row::new(id, at_ms, *intent));
            }
            (Event::NotTried { intent, outcome, why }, None) => {
                index.insert(id.clone(), rows.len());
                let mut row = Row::new(id, at_ms, *intent);
                (row.outcome, row.why, row.ended_ms) = (Settled::Ended(outcome), Some(why), Some(at_ms));
                rows.push(row);
            }
            (Event::Outcome { outcome, why }, Some(row)) => {
                (row.outcome, row.why, row.ended_ms) = (Settled::Ended(outcome), why, Some(at_ms));
            }
            (Event::Seen { observed, after }, Some(row)) => {
                (row.observed, row.after) = (Some(observed), after);
            }
            // Its beginning has left the log, or it stands there twice.
            (Event::Outcome { .. } | Event::Seen { .. }, None)
            | (Event::Intent(_) | Event::NotTried { .. }, Some(_)) => {}
        }
    }
    for row in &mut rows {
        row.settle(lives);
    }
    (rows, unreadable)
}

impl Row {
    /// An act that was announced.
    fn new(id: String, at_ms: Timestamp, intent: Intent) -> Self {
        let Intent { by, cause, what, place, checked, before } = intent;
        Self {
            id,
            at_ms,
            by,
            cause,
            what,
            place,
            checked,
            outcome: Settled::Open(Open::UnderWay),
            why: None,
            ended_ms: None,
            observed: None,
            before,
            after: None,
        }
    }

    /// What is to be said of an act without an end.
    fn settle(&mut self, lives: &dyn Fn(&Source, Timestamp) -> bool) {
        if self.outcome == Settled::Open(Open::UnderWay) && !lives(&self.by, self.at_ms) {
            self.outcome = Settled::Ended(Ended::Unknown);
            let who = match self.by.program {
                Program::NgSend => "the sender ended",
                Program::Watcher => "the watcher ended",
            };
            self.why = Some(who.to_owned());
        }
    }

    /// Whether an act or what it is about is named so.
    pub fn is_named(&self, id: &str) -> bool {
        self.id == id || self.cause.about() == Some(id)
    }
}

/// Which acts are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// In the window of this name, or in this pane (`%3`).
    pub window: Option<String>,
    /// Announced at this time or later.
    pub since: Option<Timestamp>,
    /// Of this kind, by its word.
    pub kind: Option<String>,
    /// With this outcome, by its word.
    pub outcome: Option<String>,
}

impl Filter {
    /// Whether an act is wanted.
    pub fn wants(&self, row: &Row) -> bool {
        let is_there = |window: &String| {
            let rang = matches!(&row.what, What::Bell { names, .. } if names.contains(window));
            rang || row.place.window == *window || row.place.pane.is_some_and(|pane| pane.to_string() == *window)
        };
        self.window.as_ref().is_none_or(is_there)
            && self.since.is_none_or(|since| row.at_ms >= since)
            && self.kind.as_ref().is_none_or(|kind| row.what.kind() == kind)
            && self.outcome.as_ref().is_none_or(|outcome| row.outcome.word() == outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::ids::{PaneId, WindowId};

    fn intent(what: What, pane: u32) -> Intent {
        Intent {
            by: Source { program: Program::Watcher, src: "watcher-emit".into(), pid: 7 },
            cause: Cause::Report { nonce: "a1b2c3".into() },
            what,
            place: Place { window: format!("w{pane}"), server: None, pane: Some(PaneId::new(pane)) },
            checked: Some(Checked { pid: 42, no_shell: false, texts: vec!["x".into()], rows: vec![] }),
            before: Some(ScreenId("00ff".into())),
        }
    }

    fn line(secs: i64, id: &str, event: Event) -> String {
        Line { at_ms: Timestamp::from_secs(secs), id: id.into(), event }.line()
    }

    fn enter() -> What {
        What::Keys { keys: vec!["Enter".into()] }
    }

    const ENDED: &dyn Fn(&Source, Timestamp) -> bool = &|_, _| false;

    #[test]
    fn lines_fold_into_one_row_an_act() {
        let text = line(1, "a", Event::Intent(Box::new(intent(What::paste("\nfirst line\nsecond"), 3))))
            + &line(2, "a", Event::Outcome { outcome: Ended::Done, why: None })
            + &line(3, "b", Event::Intent(Box::new(intent(enter(), 3))))
            + &line(4, "a", Event::Seen { observed: "it stands there".into(), after: Some(ScreenId("11".into())) });
        let (rows, unreadable) = fold(&text, ENDED);
        assert_eq!((rows.len(), unreadable), (2, 0));
        let [paste, enter] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((paste.outcome.word(), paste.ended_ms), ("done", Some(Timestamp::from_secs(2))));
        assert_eq!(paste.observed.as_deref(), Some("it stands there"));
        let What::Paste { bytes, first_line, sha256 } = &paste.what else { panic!("{paste:?}") };
        assert_eq!((*bytes, first_line.as_str(), sha256.len()), (18, "first line", 64));
        // Nobody knows whether an act without an end has happened.
        assert_eq!((enter.outcome.word(), enter.why.as_deref()), ("unknown", Some("the watcher ended")));
        assert_eq!(fold(&text, &|by, _| by.pid == 7).0[1].outcome.word(), "under-way");
    }

    #[test]
    fn torn_lines_are_counted_and_the_rest_is_read() {
        let whole = line(1, "a", Event::Intent(Box::new(intent(enter(), 3))));
        let refused =
            Event::NotTried { intent: Box::new(intent(enter(), 3)), outcome: Ended::Refused, why: "draft".into() };
        let orphan = line(2, "gone", Event::Outcome { outcome: Ended::Done, why: None });
        let text = format!("{}\n{orphan}{whole}{whole}{}{{\"at_ms\":1,\"id", &whole[..40], line(3, "c", refused));
        let (rows, unreadable) = fold(&text, ENDED);
        assert_eq!(unreadable, 2);
        let told: Vec<_> =
            rows.iter().map(|row| (row.id.as_str(), row.outcome.word(), row.why.as_deref().unwrap_or(""))).collect();
        assert_eq!(told, [("a", "unknown", "the watcher ended"), ("c", "refused", "draft")]);
    }

    #[test]
    fn each_filter_leaves_the_others_out() {
        let bell = What::Bell { windows: vec![WindowId::new(1), WindowId::new(5)], names: vec!["w4".into()] };
        assert_eq!(bell.says(), "bell @1 @5");
        let text = line(10, "a", Event::Intent(Box::new(intent(enter(), 3))))
            + &line(20, "b", Event::Intent(Box::new(intent(What::paste("x"), 4))))
            + &line(20, "b", Event::Outcome { outcome: Ended::Done, why: None })
            + &line(30, "c", Event::Intent(Box::new(intent(bell, 9))));
        let (rows, _) = fold(&text, ENDED);
        let check = |filter: Filter, ids: &[&str]| {
            let found: Vec<_> = rows.iter().filter(|row| filter.wants(row)).map(|row| row.id.as_str()).collect();
            assert_eq!(found, ids, "{filter:?}");
        };
        let some = |text: &str| Some(text.to_owned());
        check(Filter::default(), &["a", "b", "c"]);
        check(Filter { window: some("w4"), ..Filter::default() }, &["b", "c"]);
        check(Filter { window: some("%3"), ..Filter::default() }, &["a"]);
        check(Filter { since: Some(Timestamp::from_secs(20)), ..Filter::default() }, &["b", "c"]);
        check(Filter { kind: some("keys"), ..Filter::default() }, &["a"]);
        check(Filter { outcome: some("done"), ..Filter::default() }, &["b"]);
        check(Filter { kind: some("bell"), outcome: some("unknown"), ..Filter::default() }, &["c"]);
        assert!(rows[0].is_named("a1b2c3") && rows[0].is_named("a") && !rows[0].is_named("b"));
    }
}
