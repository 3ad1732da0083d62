//! The parts of what an event changes, as the original's hook scripts divide them.
//!
//! Settings made for the original call several scripts for one event. Each of our shims for them asks for its part, so
//! that together they do what one whole call does, and no log gets a line twice.

use super::effects::Effect;

/// A part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Decision records.
    Decision,
    /// The log of notices.
    Notice,
    /// The stamp of a usage limit.
    OverLimit,
    /// The record of the tool that is about to run.
    PendingTool,
    /// The marker of a failed turn.
    TurnFailure,
    /// Everything else: heartbeat, receipts, the stamps of a prompt, the orchestrator's files.
    Heartbeat,
}

impl Part {
    /// Every part by its name on the command line.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("decision", Self::Decision),
        ("heartbeat", Self::Heartbeat),
        ("notice", Self::Notice),
        ("over-limit", Self::OverLimit),
        ("pending-tool", Self::PendingTool),
        ("turn-failure", Self::TurnFailure),
    ];

    /// The part with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, part)| *part)
    }

    /// The part that a change belongs to; `None` belongs to every part.
    pub fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Refuse { .. } => None,
            Effect::Decide(_) | Effect::Close { .. } | Effect::MarkUnresolved { .. } => Some(Self::Decision),
            Effect::Append { .. } => Some(Self::Notice),
            Effect::Touch { .. } | Effect::Receipt { .. } => Some(Self::Heartbeat),
            Effect::Write { path, .. } | Effect::Remove { path } => {
                Some(match path.split('/').next().unwrap_or_default() {
                    "over-limit" => Self::OverLimit,
                    "pending-tool" => Self::PendingTool,
                    "turn-failure" => Self::TurnFailure,
                    _ => Self::Heartbeat,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_belongs_to_the_part_that_its_file_names() {
        let remove = |path: &str| Effect::Remove { path: path.into() };
        for (effect, part) in [
            (remove("over-limit/w3.json"), Some(Part::OverLimit)),
            (remove("turn-failure/w3.json"), Some(Part::TurnFailure)),
            (remove("pending-tool/w3.json"), Some(Part::PendingTool)),
            (Effect::Write { path: "heartbeat/w3.json".into(), text: String::new() }, Some(Part::Heartbeat)),
            (Effect::Append { path: "worker-notifications.jsonl", line: String::new() }, Some(Part::Notice)),
            (Effect::Refuse { why: "" }, None),
        ] {
            assert_eq!(Part::of(&effect), part, "{effect:?}");
        }
    }

    #[test]
    fn every_name_reads_back_and_no_other() {
        for (name, part) in Part::ALL {
            assert_eq!(Part::parse(name), Some(*part));
        }
        assert_eq!(Part::parse("all"), None);
    }
}
