//! Makes the page: header, cue, workspace line, sections in their fixed order, footer, signature.
//!
//! Whatever the sections hold, the result parses back into exactly the frame that was put in: each body line is
//! cleaned and guarded here, once, however trusted its producer is.

use std::fmt::Write as _;

use crate::logic::action::Emit;
use crate::logic::ids::Signature;
use crate::logic::signal::{Commit, Section, SectionKind};
use crate::logic::time::Now;

use super::clean;
use super::dedup::stable_hash;
use super::sections::{SECTIONS, SectionSpec};

/// Largest body, in bytes. A paste of this size still fits every agent's input.
pub const MAX_BODY_BYTES: usize = 48 << 10;

/// Bytes kept free for the footer, the note about postponed sections and the signature.
const RESERVED_BYTES: usize = 4 << 10;

/// The line under the header.
pub const CUE: &str = "*If unsure how to proceed: see CLAUDE.md.*";

/// What an emit is made from.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// Its reason label.
    pub reason: &'a str,
    /// Six lower-case hex digits, unique for the emit.
    pub nonce: &'a str,
    /// The emit of unknown outcome whose news this one repeats.
    pub repeat_of: Option<&'a Signature>,
    /// What follows `workspace: `.
    pub workspace: &'a str,
    /// The sections, in any order.
    pub sections: Vec<Section>,
    /// The footer; see [`super::footer::footer`].
    pub footer: Section,
    /// `monitor.emit_section_max_lines`.
    pub section_max_lines: usize,
    /// What the delivery retires, whichever sections the page holds.
    pub commits: Vec<Commit>,
}

/// Makes the emit.
///
/// Shape: sections of one kind are joined. A section that no longer fits is postponed whole, keeps its commits for
///        itself, and is named; one that alone exceeds the page is cut with a mark and keeps its commits, since it
///        can't ever be told whole. The last commit remembers the hash.
pub fn compose(now: &Now, draft: &Draft<'_>) -> Emit {
    let signature = Signature { iso: now.iso(), nonce: draft.nonce.to_owned() };
    // Without the words that witnesses look for, so that a repeat can't prove the emit that it repeats.
    let repeat = draft.repeat_of.map(|sig| format!("; repeat of {} {}", sig.iso, sig.nonce)).unwrap_or_default();
    let mut body = format!(
        "{} ({}{repeat}) ===\n{CUE}\nworkspace: {}\n",
        signature.opening(),
        draft.reason,
        clean::one_line(draft.workspace, clean::MAX_LINE_CHARS)
    );
    let mut told = Vec::new();
    let mut commits = Vec::new();
    let mut postponed = Vec::new();
    for spec in SECTIONS {
        let mut parts: Vec<&Section> = draft.sections.iter().filter(|section| section.kind == spec.kind).collect();
        if draft.footer.kind == spec.kind {
            parts.push(&draft.footer);
        }
        if parts.is_empty() {
            continue;
        }
        let is_footer = matches!(spec.kind, SectionKind::Dashboard | SectionKind::StatusSurface);
        let lines: Vec<String> =
            parts.iter().flat_map(|part| &part.lines).flat_map(|line| clean::lines(line)).collect();
        let text = print(spec, &lines, draft.section_max_lines);
        let room = MAX_BODY_BYTES.saturating_sub(RESERVED_BYTES);
        let text = if is_footer || body.len().saturating_add(text.len()) <= room {
            text
        } else if told.is_empty() {
            let free = room.saturating_sub(body.len());
            print(spec, &fitting(&lines, free), usize::MAX)
        } else {
            postponed.push(spec.title);
            continue;
        };
        if is_footer && !postponed.is_empty() {
            let names = postponed.join(", ");
            let _infallible = write!(body, "\n[this page is full; told in the next one: {names}]\n");
        }
        body.push_str(&text);
        told.push(spec.kind);
        commits.extend(parts.iter().flat_map(|part| part.commits.iter().cloned()));
    }
    body.push('\n');
    body.push_str(&signature.trailer());
    commits.extend(draft.commits.iter().cloned());
    let stable_hash = stable_hash(&body);
    commits.push(Commit::RememberHash { hash: stable_hash.clone(), at_s: now.at.secs() });
    Emit { reason: draft.reason.to_owned(), at: now.at, signature, body, sections: told, stable_hash, commits }
}

/// A section as it stands on the page: a blank line, the header, the body, the footer line.
fn print(spec: &SectionSpec, lines: &[String], max_lines: usize) -> String {
    let max_lines = if spec.capped { max_lines } else { usize::MAX };
    let mut text = format!("\n{}\n", spec.header());
    for line in lines.iter().take(max_lines) {
        text.push_str(line);
        text.push('\n');
    }
    let omitted = lines.len().saturating_sub(max_lines);
    if omitted > 0 {
        let _infallible = writeln!(text, "  [+{omitted} more lines omitted]");
    }
    if let Some(footer) = spec.footer {
        text.push_str(footer);
        text.push('\n');
    }
    text
}

/// The first lines that fit into so many bytes, and a mark that counts the others.
fn fitting(lines: &[String], max_bytes: usize) -> Vec<String> {
    // The header, the mark and the footer line need less than this.
    let mut free = max_bytes.saturating_sub(256);
    let mut kept = Vec::new();
    for line in lines {
        let Some(left) = free.checked_sub(line.len().saturating_add(1)) else { break };
        free = left;
        kept.push(line.clone());
    }
    let omitted = lines.len().saturating_sub(kept.len());
    if omitted > 0 {
        kept.push(format!("  [+{omitted} more lines omitted]"));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::time::Timestamp;

    fn section(kind: SectionKind, lines: &[&str]) -> Section {
        let commits = vec![Commit::RemoveState { path: format!("{kind:?}") }];
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Section { kind, lines, commits, pages: true, windows: vec![] }
    }

    fn emit(sections: Vec<Section>) -> Emit {
        let now = Now::fixed(Timestamp::parse_iso("2026-05-11T20:42:01Z").unwrap());
        let footer = Section { commits: vec![], ..section(SectionKind::Dashboard, &["last put: never"]) };
        let draft = Draft {
            reason: "poll",
            nonce: "a1b2c3",
            repeat_of: None,
            workspace: "1 busy | 2 idle",
            sections,
            footer,
            section_max_lines: 50,
            commits: Vec::new(),
        };
        compose(&now, &draft)
    }

    #[test]
    fn the_page_has_the_shape_of_the_specification() {
        let emit = emit(vec![
            section(SectionKind::IdleWorkers, &["  - w3 idle 8m WITHOUT wrap-up — consider follow-up paste"]),
            section(SectionKind::Bells, &["  - w3 (idx 4)"]),
        ]);
        assert_eq!(
            emit.body,
            "=== nexus state changed at 2026-05-11T20:42:01+00:00 (poll) ===\n\
             *If unsure how to proceed: see CLAUDE.md.*\n\
             workspace: 1 busy | 2 idle\n\
             \n--- standing bells ---\n  - w3 (idx 4)\n(silenced after emit; agents will re-ring on the next event)\n\
             \n--- idle workers ---\n  - w3 idle 8m WITHOUT wrap-up — consider follow-up paste\n\
             (emitted on transitions only; see skills/nexus.window-cleanup)\n\
             \n--- dashboard ---\nlast put: never\n\
             \n--- nexus-emit-sig 2026-05-11T20:42:01+00:00 a1b2c3 ---"
        );
        assert_eq!(emit.sections, [SectionKind::Bells, SectionKind::IdleWorkers, SectionKind::Dashboard]);
        assert_eq!(emit.commits.len(), 3);
        assert!(matches!(emit.commits.last(), Some(Commit::RememberHash { .. })));
    }

    #[test]
    fn local_changes_are_cut_and_nothing_else_is() {
        let many: Vec<String> = (0..87).map(|n| format!("+line {n}")).collect();
        let lines: Vec<&str> = many.iter().map(String::as_str).collect();
        let cut = emit(vec![section(SectionKind::LocalChanges, &lines)]).body;
        assert!(cut.contains("+line 49\n  [+37 more lines omitted]\n"), "{cut}");
        let whole = emit(vec![section(SectionKind::Comments, &lines)]).body;
        assert!(whole.contains("+line 86\n") && !whole.contains("omitted"), "{whole}");
    }

    #[test]
    fn what_does_not_fit_is_postponed_with_its_commits_and_named() {
        let long = "x".repeat(390);
        let lines = vec![long.as_str(); 70];
        let emit = emit(vec![
            section(SectionKind::Comments, &lines),
            section(SectionKind::Requests, &lines),
            section(SectionKind::IdleWorkers, &["  - w3"]),
        ]);
        assert!(emit.body.len() <= MAX_BODY_BYTES);
        assert_eq!(emit.sections, [SectionKind::Comments, SectionKind::IdleWorkers, SectionKind::Dashboard]);
        assert!(emit.body.contains("[this page is full; told in the next one: requests]"), "{}", emit.body);
        assert!(!emit.commits.contains(&Commit::RemoveState { path: "Requests".into() }));
    }

    #[test]
    fn a_section_larger_than_the_page_is_cut_with_a_mark() {
        let long = "ü".repeat(400);
        let lines = vec![long.as_str(); 200];
        let emit = emit(vec![section(SectionKind::Requests, &lines)]);
        assert!(emit.body.len() <= MAX_BODY_BYTES);
        assert!(emit.body.contains(" more lines omitted]"));
        assert!(emit.commits.contains(&Commit::RemoveState { path: "Requests".into() }));
    }

    #[test]
    fn a_repeat_says_so_without_the_words_that_witnesses_look_for() {
        let old = Signature { iso: "2026-05-11T13:42:01+00:00".into(), nonce: "0ddba1".into() };
        let footer = Section {
            kind: SectionKind::Dashboard,
            lines: Vec::new(),
            commits: Vec::new(),
            pages: false,
            windows: Vec::new(),
        };
        let draft = Draft {
            reason: "poll",
            nonce: "a1b2c3",
            repeat_of: Some(&old),
            workspace: "",
            sections: Vec::new(),
            footer,
            section_max_lines: 50,
            commits: Vec::new(),
        };
        let emit = compose(&Now::fixed(crate::logic::time::Timestamp::from_secs(9)), &draft);
        let header = emit.body.lines().next().unwrap();
        assert!(header.ends_with("(poll; repeat of 2026-05-11T13:42:01+00:00 0ddba1) ==="), "{header}");
        assert!(!emit.body.contains(&old.needle()));
    }
}
