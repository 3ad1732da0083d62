//! Tells signal from noise in a unified diff of the local state (spec, "Signal vs noise").
//!
//! Noise is what the specification names, and only that. Anything else is signal: losing a real emit is worse than
//! pasting a borderline one.

/// What the changed lines of a diff are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Changed lines that are worth an emit.
    pub signal: usize,
    /// Changed lines under `--- git ---`.
    pub git: usize,
    /// Interim reports that came or went.
    pub interim: usize,
}

impl Verdict {
    /// Whether the diff pages.
    pub const fn is_signal(self) -> bool {
        self.signal > 0
    }

    /// The line for the log, where nothing pages.
    pub fn note(self) -> String {
        let interim = if self.interim > 0 { format!(", {} interim report(s)", self.interim) } else { String::new() };
        format!("suppressed emit: {} git-section update(s){interim}", self.git)
    }
}

/// A part of the local state, as the diff shows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Files under `reports/`.
    Reports,
    /// Windows.
    Tmux,
    /// Repositories.
    Git,
    /// A header that nobody knows.
    Other,
}

/// Classifies every changed line of a unified diff.
///
/// The part that a line belongs to is told by the header above it in the same hunk; where the context window dropped
/// the header, by the line's own shape.
pub fn classify<'a>(diff: impl IntoIterator<Item = &'a str>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut part = None;
    for line in diff {
        if line.starts_with("@@") {
            part = None;
            continue;
        }
        let mut rest = line.chars();
        let mark = rest.next();
        let text = rest.as_str();
        if let Some(found) = header(text) {
            part = Some(found);
        }
        if !matches!(mark, Some('+' | '-')) {
            continue;
        }
        match part.or_else(|| shape(text)) {
            Some(Part::Git) => verdict.git = verdict.git.saturating_add(1),
            Some(Part::Reports) if is_interim(text) => verdict.interim = verdict.interim.saturating_add(1),
            _ => verdict.signal = verdict.signal.saturating_add(1),
        }
    }
    verdict
}

/// The part that this line is the header of.
fn header(text: &str) -> Option<Part> {
    match text {
        "--- reports ---" => Some(Part::Reports),
        "--- tmux ---" => Some(Part::Tmux),
        "--- git ---" => Some(Part::Git),
        _ if text.starts_with("--- ") && text.ends_with(" ---") => Some(Part::Other),
        _ => None,
    }
}

/// The part that a line of this shape can only come from.
fn shape(text: &str) -> Option<Part> {
    if is_markdown(text) {
        return Some(Part::Reports);
    }
    let words: Vec<&str> = text.split(' ').collect();
    let [_project, _branch, sha, tree, rest @ ..] = words.as_slice() else { return None };
    let is_sha = (4..=64).contains(&sha.len()) && sha.bytes().all(|b| b.is_ascii_hexdigit());
    // `dirty` may carry a hash of what is changed.
    let is_tree = *tree == "clean" || *tree == "dirty" || tree.starts_with("dirty:");
    (is_sha && is_tree && rest.is_empty()).then_some(Part::Git)
}

/// Whether a file of this name is listed as a report.
fn is_markdown(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|extension| extension == "md")
}

/// Whether this is an interim report: `-interim` in its base name.
fn is_interim(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    name.contains("-interim") && is_markdown(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row of the specification's table: the changed lines, and whether they page.
    fn check(what: &str, diff: &str, signal: bool) {
        assert_eq!(classify(diff.lines()).is_signal(), signal, "{what}:\n{diff}");
    }

    #[test]
    fn git_section_changes_are_noise() {
        check("clean to dirty", "@@\n --- git ---\n-web main 1a2b3c4 clean\n+web main 1a2b3c4 dirty", false);
        check("dirty to clean", "@@\n --- git ---\n-web main 1a2b3c4 dirty\n+web main 1a2b3c4 clean", false);
        check("sha bump, clean to clean", "@@\n --- git ---\n-web main 1a2b3c4 clean\n+web main 5d6e7f8 clean", false);
        check("hash bump while dirty", "@@\n --- git ---\n-web main 1a2b dirty:99\n+web main 1a2b dirty:aa", false);
        check("project added", "@@\n --- git ---\n+api main 1a2b3c4 clean", false);
        check("project removed", "@@\n --- git ---\n-api main 1a2b3c4 clean", false);
        check("unknown shape under git", "@@\n --- git ---\n+whatever", false);
    }

    #[test]
    fn interim_reports_are_noise_and_final_ones_are_signal() {
        check("interim added", "@@\n --- reports ---\n+web_2026-05-11_120000_x-interim.md", false);
        check("interim added, numbered", "@@\n --- reports ---\n+web_2026-05-11_120000_x-interim-2.md", false);
        check("interim removed", "@@\n --- reports ---\n-web_2026-05-11_120000_x-interim.md", false);
        check("final added", "@@\n --- reports ---\n+web_2026-05-11_120000_x.md", true);
        check("final removed", "@@\n --- reports ---\n-web_2026-05-11_120000_x.md", true);
        check("final renamed", "@@\n --- reports ---\n-web_x.md\n+web_y.md", true);
        check("interim renamed to final", "@@\n --- reports ---\n-web_x-interim.md\n+web_x.md", true);
        check("interim in the folder only", "@@\n --- reports ---\n+a-interim/web_x.md", true);
        check("interim, not markdown", "@@\n --- reports ---\n+x-interim.txt", true);
    }

    #[test]
    fn tmux_lines_are_signal() {
        check("window added", "@@\n --- tmux ---\n+w3 @7 bell=0", true);
        check("window removed", "@@\n --- tmux ---\n-w3 @7 bell=0", true);
        check("bell flag flip", "@@\n --- tmux ---\n-w3 @7 bell=0\n+w3 @7 bell=1", true);
        check("a window named like a repository", "@@\n --- tmux ---\n+web main 1a2b3c4 clean", true);
        check("a window named like an interim report", "@@\n --- tmux ---\n+x-interim.md", true);
    }

    #[test]
    fn where_the_header_was_dropped_the_shape_decides() {
        check("git", "@@\n web main 1a2b3c4 clean\n-api main 1a2b3c4 clean\n+api main 5d6e7f8 dirty", false);
        check("interim report", "@@\n a.md\n+b-interim.md", false);
        check("final report", "@@\n a.md\n+b.md", true);
        check("window", "@@\n w2 @6 bell=0\n+w3 @7 bell=0", true);
        check("a header of an earlier hunk", "@@\n --- git ---\n-a main 1a2b3c4 clean\n@@\n+w3 @7 bell=0", true);
    }

    #[test]
    fn what_nobody_knows_is_signal() {
        check("unknown section", "@@\n --- weather ---\n+web main 1a2b3c4 clean", true);
        check("malformed line", "@@\n+???", true);
        check("empty line", "@@\n+", true);
        check("mixed", "@@\n --- tmux ---\n+w3 @7 bell=0\n --- git ---\n-a main 1a2b3c4 clean", true);
        check("nothing changed", "@@\n --- tmux ---\n w3 @7 bell=0", false);
    }

    #[test]
    fn the_note_counts_what_was_suppressed() {
        let verdict = classify("@@\n --- reports ---\n+x-interim.md\n --- git ---\n+a\n-b".lines());
        assert_eq!(verdict.note(), "suppressed emit: 2 git-section update(s), 1 interim report(s)");
    }
}
