//! What the pane itself proves: that our text stands unsent in the box, or that it has left it and arrived.

use super::gate::Seen;
use super::{Proof, ProofBy};
use crate::logic::ids::Signature;
use crate::logic::pane::{InputRow, State};

/// Where our text is, by the screen alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnText {
    /// In the box, unsent. `evidence` is a literal text of ours that one screen row shows; tmux checks it again with
    /// the Enter.
    InBox {
        /// A text that only our paste can have put there: the nonce, or the folded mark of the right size.
        evidence: String,
        /// The nonce itself is visible, not only a folded mark.
        certain: bool,
    },
    /// Shown outside the box while the box holds nothing of ours.
    Outside,
    /// Neither.
    Nowhere,
}

/// Finds our text on the screen. `line_breaks` is the number of line breaks in what was pasted.
pub fn locate(seen: &Seen, signature: &Signature, line_breaks: u32) -> OwnText {
    let nonce = signature.nonce.as_str();
    if let Some(composer) = &seen.composer {
        if let Some(row) = composer.rows.iter().find(|row| row.contains(nonce)) {
            debug_assert!(!row.is_empty(), "a row that holds the nonce is not empty");
            return OwnText::InBox { evidence: nonce.to_owned(), certain: true };
        }
        if composer.text.contains(nonce) {
            // The nonce is broken over two rows: the last row of the box is ours as well.
            if let Some(tail) = composer.rows.iter().rev().map(|row| row.trim()).find(|row| !row.is_empty()) {
                return OwnText::InBox { evidence: tail.to_owned(), certain: true };
            }
        }
        if let Some(chip) = composer.chip.as_ref().filter(|chip| chip.lines == Some(line_breaks)) {
            return OwnText::InBox { evidence: chip.text.clone(), certain: false };
        }
        let box_is_open = matches!(seen.verdict.input, Some(InputRow::Blank | InputRow::Ghost));
        if box_is_open && shows(&seen.outside, &signature.needle()) {
            return OwnText::Outside;
        }
    }
    OwnText::Nowhere
}

/// At most this many rows can hold one needle, even at a few columns' width.
const SPAN: usize = 12;

/// Whether rows show these words, possibly broken over rows by a narrow pane.
fn shows(rows: &[String], words: &str) -> bool {
    if rows.iter().any(|row| row.contains(words)) {
        return true;
    }
    let squeeze = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let needle = squeeze(words);
    let squeezed: Vec<String> = rows.iter().map(|row| squeeze(row)).collect();
    (0..squeezed.len()).any(|start| {
        let end = squeezed.len().min(start + SPAN);
        squeezed.get(start..end).is_some_and(|window| window.concat().contains(&needle))
    })
}

/// The proof that the pane gives after Enter, if any.
///
/// `queue_was_empty` tells that the agent's queue held nothing before our paste and that we pressed Enter since: only
/// then is a queue mark by itself the agent's word that it has our text.
pub fn by_screen(seen: &Seen, signature: &Signature, line_breaks: u32, queue_was_empty: bool) -> Option<Proof> {
    match locate(seen, signature, line_breaks) {
        OwnText::InBox { .. } => None,
        OwnText::Outside => Some(Proof { by: ProofBy::Screen, queued: seen.verdict.queued }),
        OwnText::Nowhere => {
            // A long message in the queue shows only its first lines; the time in the first one is ours alone.
            let is_queued = seen.verdict.queued && seen.verdict.state == State::Busy;
            let is_ours = || queue_was_empty || shows(&seen.outside, &signature.opening());
            (is_queued && is_ours()).then_some(Proof { by: ProofBy::Screen, queued: true })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::tests::seen;
    use super::super::gate::{Chip, Composer};
    use super::*;

    fn signature() -> Signature {
        Signature { iso: "2026-05-11T13:42:01-07:00".into(), nonce: "a1b2c3".into() }
    }

    fn boxed(rows: &[&str], chip: Option<Chip>) -> Option<Composer> {
        let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
        Some(Composer { text: rows.concat(), rows, chip })
    }

    #[test]
    fn text_in_the_box_is_not_a_proof_even_if_it_stands_outside_too() {
        let mut target = seen(State::Idle, Some(InputRow::Typed));
        target.composer = boxed(&["--- nexus-emit-sig 2026-05-11T13:42:01-07:00 a1b2c3 ---"], None);
        target.outside = vec![signature().trailer()];
        assert_eq!(locate(&target, &signature(), 3), OwnText::InBox { evidence: "a1b2c3".into(), certain: true });
        assert_eq!(by_screen(&target, &signature(), 3, true), None);
    }

    #[test]
    fn a_folded_paste_counts_only_at_the_right_size_and_is_never_certain() {
        let chip = Chip { text: "[Pasted text #1 +41 lines]".into(), lines: Some(41) };
        let mut target = seen(State::UserTyping, Some(InputRow::Typed));
        target.composer = boxed(&["[Pasted text #1 +41 lines]"], Some(chip));
        assert_eq!(
            locate(&target, &signature(), 41),
            OwnText::InBox { evidence: "[Pasted text #1 +41 lines]".into(), certain: false }
        );
        assert_eq!(locate(&target, &signature(), 40), OwnText::Nowhere);
        assert_eq!(by_screen(&target, &signature(), 40, true), None);
    }

    #[test]
    fn a_signature_above_an_open_box_is_a_proof_also_when_broken_over_rows() {
        let mut target = seen(State::Busy, Some(InputRow::Blank));
        target.outside =
            vec!["❯ report".into(), "  --- nexus-emit-sig 2026-05-11T13:42:01-".into(), "  07:00 a1b2c3 ---".into()];
        assert_eq!(by_screen(&target, &signature(), 3, true), Some(Proof { by: ProofBy::Screen, queued: false }));
    }

    #[test]
    fn another_signature_with_the_same_words_is_no_proof() {
        let mut target = seen(State::Idle, Some(InputRow::Blank));
        target.outside = vec!["--- nexus-emit-sig 2026-05-11T13:42:01-07:00 ffffff ---".into()];
        assert_eq!(locate(&target, &signature(), 3), OwnText::Nowhere);
    }

    #[test]
    fn a_new_queue_mark_proves_a_long_message_and_an_old_one_does_not() {
        let mut target = seen(State::Busy, Some(InputRow::Ghost));
        target.verdict.queued = true;
        assert_eq!(by_screen(&target, &signature(), 41, true), Some(Proof { by: ProofBy::Screen, queued: true }));
        assert_eq!(by_screen(&target, &signature(), 41, false), None);
    }

    #[test]
    fn in_a_queue_that_held_something_only_our_own_first_line_proves_ours() {
        let mut target = seen(State::Busy, Some(InputRow::Ghost));
        target.verdict.queued = true;
        let cases: [(&[&str], bool); 4] = [
            (&["❯ please look at the tests"], false),
            (&["❯ === nexus state changed at 2026-05-11T13:41:59-07:00 (poll) ==="], false),
            (&["❯ === nexus state changed at 2026-05-11T13:42:01-07:00 (poll) ==="], true),
            (&["❯ === nexus state changed at", "  2026-05-11T13:42:01-", "  07:00 (poll) ==="], true),
        ];
        for (rows, proves) in cases {
            target.outside = rows.iter().map(|row| (*row).to_owned()).collect();
            let proof = by_screen(&target, &signature(), 41, false);
            assert_eq!(proof, proves.then_some(Proof { by: ProofBy::Screen, queued: true }), "{rows:?}");
        }
        // Nor does it prove anything once it is no longer marked as queued, since the end may be missing.
        target.verdict.queued = false;
        assert_eq!(by_screen(&target, &signature(), 41, false), None);
    }

    #[test]
    fn without_an_input_box_nothing_is_proven() {
        let mut target = seen(State::Blocked, None);
        target.composer = None;
        target.outside = vec![signature().trailer()];
        assert_eq!(locate(&target, &signature(), 3), OwnText::Nowhere);
    }
}
