//! Reads what the orchestrator was sent: an emit's text, back into what it tells.

use std::collections::BTreeSet;

/// What one emit tells, as far as the simulation knows the truth of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// `<iso> <nonce>`.
    pub(crate) signature: String,
    /// The signature that it says it repeats.
    pub(crate) repeat_of: Option<String>,
    /// Decisions, as window and fingerprint.
    pub(crate) decisions: BTreeSet<(String, String)>,
    /// Names of windows that rang.
    pub(crate) bells: BTreeSet<String>,
    /// Lines of the local state that came, without bell flags.
    pub(crate) came: BTreeSet<String>,
    /// Lines of the local state that went, without bell flags.
    pub(crate) went: BTreeSet<String>,
    /// Lines were left out of the local state.
    pub(crate) cut: bool,
    /// Rows about workers, as name and what is said.
    pub(crate) workers: BTreeSet<(String, String)>,
    /// The emit's own text, without what stood before or behind it.
    pub(crate) body: String,
}

impl Told {
    /// The first whole emit in a text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let begin = text.find("=== nexus state changed at ")?;
        let sig = begin + text.get(begin..)?.find("--- nexus-emit-sig ")?;
        let end = sig + text.get(sig..)?.find(" ---").map(|at| at + 4)?;
        let body = text.get(begin..end)?.trim_end().to_owned();
        let signature = text.get(sig..end)?.strip_prefix("--- nexus-emit-sig ")?.strip_suffix(" ---")?.to_owned();
        let header = body.lines().next()?;
        let repeat_of = header.split_once("; repeat of ").map(|(_, rest)| rest.trim_end_matches(") ===").to_owned());
        let mut told = Self { signature, repeat_of, ..Self::default() };
        let mut section = "";
        for line in body.lines() {
            if let Some(title) = line.strip_prefix("--- ").and_then(|rest| rest.strip_suffix(" ---")) {
                section = title;
                continue;
            }
            told.take(section, line);
        }
        told.body = body;
        Some(told)
    }

    fn take(&mut self, section: &str, line: &str) {
        match section {
            "pending decisions" => {
                let mut words = line.split(' ');
                let window = words.next().and_then(|word| word.strip_prefix("window="));
                let fingerprint = words.next().and_then(|word| word.strip_prefix("fp="));
                if let (Some(window), Some(fingerprint)) = (window, fingerprint) {
                    self.decisions.insert((window.trim_matches('\'').to_owned(), fingerprint.to_owned()));
                }
            }
            "standing bells" => {
                let row = line.strip_prefix("  - ").and_then(|row| row.rsplit_once(" (idx "));
                self.bells.extend(row.map(|(name, _)| name.to_owned()));
            }
            "local state changes" => {
                self.cut |= line.contains("more lines omitted") || line.contains("can't be read");
                if let Some(line) = line.strip_prefix('+') {
                    self.came.insert(without_bell(line));
                } else if let Some(line) = line.strip_prefix('-') {
                    self.went.insert(without_bell(line));
                }
            }
            "idle workers" => {
                if let Some((name, says)) = line.strip_prefix("  - ").and_then(|row| row.split_once(' ')) {
                    self.workers.insert((name.to_owned(), class(says).to_owned()));
                }
            }
            _ => {}
        }
    }
}

/// A line of the local state without its bell flag.
pub(crate) fn without_bell(line: &str) -> String {
    line.strip_suffix(" bell=0").or_else(|| line.strip_suffix(" bell=1")).unwrap_or(line).to_owned()
}

/// The class that a row about a worker names, as it stands in `idle-state.tsv`.
fn class(says: &str) -> &'static str {
    let words: [(&str, &str); 7] = [
        ("wrapped-but-stub", "wrapped-but-stub"),
        ("wrapped up", "wrapped"),
        ("idle-too-long", "idle-too-long"),
        ("idle-orphan-async", "idle-orphan-async"),
        ("idle ", "no-wrap-up"),
        ("pane-absent", "pane-absent"),
        ("OVER-LIMIT", "over-limit"),
    ];
    words.into_iter().find(|(start, _)| says.starts_with(start)).map_or("?", |(_, class)| class)
}
