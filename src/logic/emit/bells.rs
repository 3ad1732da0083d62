//! The `standing bells` section, from what tmux lists.

use crate::logic::ids::WindowId;
use crate::logic::local::baseline::without_bells;
use crate::logic::signal::{Commit, Section, SectionKind};
use crate::logic::snapshot::{PaneFacts, TmuxView};
use crate::logic::worker::scope::{WindowRow, rings};

use super::clean::label;

/// Rows of one emit; further bells stay set and are told in the next one.
const MAX_ROWS: usize = 100;

/// The bells that stand on windows in scope; `None` if none does. Of a server that does not answer, none is told: what it
/// said last may be over, and nothing could be cleared.
pub fn section<'a>(
    view: &TmuxView,
    windows: impl IntoIterator<Item = &'a WindowRow<'a>>,
    target: &str,
) -> Option<Section> {
    // tmux clears a session's bells together or not at all, so those that are never told go with the rest.
    let (ringing, silent): (Vec<&PaneFacts>, Vec<&PaneFacts>) = windows
        .into_iter()
        .filter(|row| row.facts.bell && view.server(row.facts.window.server()).is_some())
        .map(|row| row.facts)
        .partition(|facts| rings(&facts.window_name, target));
    if ringing.is_empty() {
        return None;
    }
    let told: Vec<_> = ringing.iter().take(MAX_ROWS).collect();
    let mut lines: Vec<String> = told.iter().map(|facts| row(facts)).collect();
    let more = ringing.len().saturating_sub(told.len());
    if more > 0 {
        lines.push(format!("  [+{more} more bells; told in the next report]"));
    }
    Some(Section {
        kind: SectionKind::Bells,
        lines,
        commits: view
            .answered()
            .filter_map(|(number, server)| {
                let windows = told.iter().copied().chain(&silent).map(|row| row.window);
                let windows: Vec<WindowId> = windows.filter(|window| window.server() == number).collect();
                let is_told = told.iter().any(|row| row.window.server() == number);
                is_told.then(|| Commit::ClearBells { server: server.clone(), windows })
            })
            .collect(),
        pages: true,
        windows: told.iter().map(|row| row.window_name.clone()).collect(),
    })
}

/// The row of a window; on a further server an index alone would not find it.
fn row(facts: &PaneFacts) -> String {
    let name = label(facts.window_name.as_str());
    match facts.window.server() {
        0 => format!("  - {name} (idx {})", facts.window_index),
        _ => format!("  - {name} (idx {}, {})", facts.window_index, facts.window),
    }
}

/// Lets the baseline absorb the clearing of the bells that these sections tell, so that it is no news afterwards.
///
/// Shape: the baseline that a local change brings along is adjusted; without one, the present baseline is, by a
///        commit of the bells' own section. Only flags of told windows change, so nothing fresh is masked.
pub fn absorb_clearing(sections: &mut [Section], baseline_file: &str, baseline: Option<&str>) {
    let cleared: Vec<WindowId> = sections
        .iter()
        .flat_map(|section| &section.commits)
        .filter_map(|commit| match commit {
            Commit::ClearBells { windows, .. } => Some(windows.as_slice()),
            _ => None,
        })
        .flatten()
        .copied()
        .collect();
    if cleared.is_empty() {
        return;
    }
    let mut advanced = false;
    for commit in sections.iter_mut().flat_map(|section| &mut section.commits) {
        if let Commit::WriteState { path, text } = commit
            && path == baseline_file
        {
            advanced = true;
            if let Some(adjusted) = without_bells(text, &cleared) {
                *text = adjusted;
            }
        }
    }
    if advanced {
        return;
    }
    let Some(text) = baseline.and_then(|text| without_bells(text, &cleared)) else { return };
    if let Some(bells) = sections.iter_mut().find(|section| section.kind == SectionKind::Bells) {
        bells.commits.push(Commit::WriteState { path: baseline_file.to_owned(), text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::ids::ServerId;

    const FILE: &str = "last-snapshot.txt";

    fn section(kind: SectionKind, commit: Commit) -> Section {
        Section { kind, lines: vec![], commits: vec![commit], pages: true, windows: vec![] }
    }

    fn bells() -> Section {
        let server = ServerId { socket: "/tmp/s".into(), pid: 1, start_s: 1 };
        section(SectionKind::Bells, Commit::ClearBells { server, windows: vec![WindowId::new(5)] })
    }

    fn write(text: &str) -> Commit {
        Commit::WriteState { path: FILE.into(), text: text.into() }
    }

    #[test]
    fn the_baseline_of_a_local_change_absorbs_the_clearing() {
        let mut sections = [section(SectionKind::LocalChanges, write("w5 @5 bell=1\nw6 @6 bell=1\n")), bells()];
        absorb_clearing(&mut sections, FILE, Some("w5 @5 bell=1\n"));
        assert_eq!(sections[0].commits, [write("w5 @5 bell=0\nw6 @6 bell=1\n")]);
        assert_eq!(sections[1].commits.len(), 1);
    }

    #[test]
    fn without_a_local_change_only_the_flags_of_told_windows_advance() {
        let mut sections = [bells()];
        absorb_clearing(&mut sections, FILE, Some("w5 @5 bell=1\nold @9 bell=0\n"));
        assert_eq!(sections[0].commits.get(1), Some(&write("w5 @5 bell=0\nold @9 bell=0\n")));
        let mut sections = [bells()];
        absorb_clearing(&mut sections, FILE, Some("w5 @5 bell=0\n"));
        assert_eq!(sections[0].commits.len(), 1);
    }

    #[test]
    fn without_bells_nothing_is_touched() {
        let mut sections = [section(SectionKind::LocalChanges, write("w5 @5 bell=1\n"))];
        absorb_clearing(&mut sections, FILE, Some("w5 @5 bell=1\n"));
        assert_eq!(sections[0].commits, [write("w5 @5 bell=1\n")]);
    }
}
