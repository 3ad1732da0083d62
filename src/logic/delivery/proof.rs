//! What the pane itself proves: that our text stands unsent in the box, or that it has left it and arrived.

use unicode_width::UnicodeWidthChar as _;

use super::gate::Seen;
use super::{Mark, Pasted, Proof, ProofBy};
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
    /// In the box, unsent, with something beside it that is not known to be ours. Never sent by us.
    Mixed,
    /// Shown outside the box while the box holds nothing of ours.
    Outside,
    /// Neither.
    Nowhere,
}

/// Finds our text on the screen.
///
/// It is in the box only if the box holds nothing else: a draft that somebody typed between the look and the paste has
/// merged with our text, and an Enter would send it in their name. A box that shows only a part of our text, because it
/// scrolls, is not known to hold nothing else.
pub fn locate(seen: &Seen, pasted: &Pasted) -> OwnText {
    if let Some(composer) = &seen.composer {
        let text = squeeze(&composer.text);
        let is_whole = !text.is_empty() && text == squeeze(&pasted.body);
        let has_mark = match &pasted.mark {
            Mark::Signed(signature) => text.contains(&signature.nonce),
            Mark::Words(words) => is_whole || (words.len() > 1 && text.contains(&squeeze(words))),
        };
        if has_mark && is_whole {
            // Where the nonce is broken over two rows, the last row of the box is ours as well.
            let whole = match &pasted.mark {
                Mark::Signed(signature) => {
                    let nonce = signature.nonce.as_str();
                    composer.rows.iter().any(|row| row.contains(nonce)).then_some(nonce)
                }
                Mark::Words(_) => None,
            };
            let last = || composer.rows.iter().rev().map(|row| row.trim()).find(|row| !row.is_empty());
            if let Some(evidence) = whole.or_else(last) {
                return OwnText::InBox { evidence: evidence.to_owned(), certain: true };
            }
        }
        let chip = composer.chip.as_ref().filter(|chip| chip.lines == Some(pasted.line_breaks));
        if let Some(chip) = chip.filter(|chip| text == squeeze(&chip.text)) {
            return OwnText::InBox { evidence: chip.text.clone(), certain: false };
        }
        if chip.is_some() || has_mark {
            return OwnText::Mixed;
        }
        let box_is_open = matches!(seen.verdict.input, Some(InputRow::Blank | InputRow::Ghost));
        if box_is_open && is_shown(seen, pasted) {
            return OwnText::Outside;
        }
    }
    OwnText::Nowhere
}

/// Whether the text's mark stands outside the input box.
fn is_shown(seen: &Seen, pasted: &Pasted) -> bool {
    pasted.needle().is_some_and(|needle| shows(&seen.outside, &needle))
}

/// Whether the text's first words stand outside the input box.
fn is_opening_shown(seen: &Seen, pasted: &Pasted) -> bool {
    pasted.opening().is_some_and(|opening| shows(&seen.outside, &opening))
}

/// A text without what wrapping and drawing change: white space, and characters that take no room of their own.
fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && c.width().is_some_and(|columns| columns > 0)).collect()
}

/// At most this many rows can hold one needle, even at a few columns' width.
const SPAN: usize = 12;

/// Whether rows show these words, possibly broken over rows by a narrow pane.
fn shows(rows: &[String], words: &str) -> bool {
    if rows.iter().any(|row| row.contains(words)) {
        return true;
    }
    let needle = squeeze(words);
    let squeezed: Vec<String> = rows.iter().map(|row| squeeze(row)).collect();
    (0..squeezed.len()).any(|start| {
        let end = squeezed.len().min(start + SPAN);
        squeezed.get(start..end).is_some_and(|window| window.concat().contains(&needle))
    })
}

/// What was seen before the paste, so that it proves nothing now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// The agent's queue held nothing, and we pressed Enter since: only then is a queue mark by itself the agent's word
    /// that it has our text.
    pub queue_was_empty: bool,
    /// The words of an unsigned text stood on the screen already.
    pub was_shown: bool,
    /// Its first words did.
    pub was_opening_shown: bool,
}

impl Before {
    /// What a look before the paste finds of the text; the queue is not judged here.
    pub fn look(seen: &Seen, pasted: &Pasted) -> Self {
        let unsigned = !pasted.is_signed();
        Self {
            queue_was_empty: false,
            was_shown: unsigned && is_shown(seen, pasted),
            was_opening_shown: unsigned && is_opening_shown(seen, pasted),
        }
    }
}

/// The proof that the pane gives after Enter, if any.
pub fn by_screen(seen: &Seen, pasted: &Pasted, before: Before) -> Option<Proof> {
    match locate(seen, pasted) {
        OwnText::InBox { .. } | OwnText::Mixed => None,
        OwnText::Outside if before.was_shown => None,
        OwnText::Outside => Some(Proof { by: ProofBy::Screen, queued: seen.verdict.queued }),
        OwnText::Nowhere => {
            // A long message in the queue shows only its first lines; the time in the first one is ours alone.
            let is_queued = seen.verdict.queued && seen.verdict.state == State::Busy;
            let is_new = || !before.was_opening_shown && is_opening_shown(seen, pasted);
            let is_ours = || before.queue_was_empty || is_new();
            (is_queued && is_ours()).then_some(Proof { by: ProofBy::Screen, queued: true })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::tests::seen;
    use super::super::gate::{Chip, Composer};
    use super::*;
    use crate::logic::ids::Signature;

    fn signature() -> Signature {
        Signature { iso: "2026-05-11T13:42:01-07:00".into(), nonce: "a1b2c3".into() }
    }

    /// What was pasted: `breaks` line breaks, the last line being the signature.
    fn pasted(breaks: usize) -> Pasted {
        let mut body = "--- nexus-emit ---\n".to_owned();
        body.extend(std::iter::repeat_n("a line\n", breaks.saturating_sub(1)));
        Pasted::new(signature(), body + &signature().trailer())
    }

    /// Nothing was in the queue before.
    const FRESH: Before = Before { queue_was_empty: true, was_shown: false, was_opening_shown: false };

    fn boxed(rows: &[&str], chip: Option<Chip>) -> Composer {
        let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
        Composer { text: rows.concat(), rows, chip }
    }

    #[test]
    fn text_in_the_box_is_not_a_proof_even_if_it_stands_outside_too() {
        let mut target = seen(State::Idle, Some(InputRow::Typed));
        target.composer = Some(boxed(&pasted(3).body.lines().collect::<Vec<_>>(), None));
        target.outside = vec![signature().trailer()];
        assert_eq!(locate(&target, &pasted(3)), OwnText::InBox { evidence: "a1b2c3".into(), certain: true });
        assert_eq!(by_screen(&target, &pasted(3), FRESH), None);
    }

    #[test]
    fn a_box_that_holds_more_or_less_than_our_text_is_not_ours() {
        let whole = pasted(2).body;
        let check = |box_text: &str, ours: bool| {
            let mut target = seen(State::UserTyping, Some(InputRow::Typed));
            target.composer = Some(boxed(&box_text.lines().collect::<Vec<_>>(), None));
            let found = locate(&target, &pasted(2));
            assert_eq!(matches!(found, OwnText::InBox { .. }), ours, "{box_text}");
            assert!(ours || found == OwnText::Mixed, "{box_text}");
            // Somebody else's message in the queue proves nothing while our text stands in the box.
            target.verdict.state = State::Busy;
            target.verdict.queued = true;
            assert_eq!(by_screen(&target, &pasted(2), FRESH), None, "{box_text}");
        };
        check(&whole, true);
        check(&whole.replace("nexus-emit-sig ", "nexus-emit-\n  sig "), true);
        check(&format!("{whole}\n"), true);
        check(&format!("delete everything {whole}"), false);
        check(&format!("{whole} delete everything"), false);
        check(&format!("{whole} y"), false);
        check(&format!("{whole}\u{44f}"), false);
        check(whole.split_once('\n').unwrap().1, false);
        check(&signature().trailer(), false);
    }

    #[test]
    fn a_fold_with_anything_beside_it_is_not_ours() {
        let chip = || Some(Chip { text: "[Pasted text #1 +41 lines]".into(), lines: Some(41) });
        for text in [
            "[Pasted text #1 +41 lines] and then",
            "no! [Pasted text #1 +41 lines]",
            "[Pasted text #1 +41 lines][Pasted text #2 +41 lines]",
        ] {
            let mut target = seen(State::UserTyping, Some(InputRow::Typed));
            target.composer = Some(boxed(&[text], chip()));
            assert_eq!(locate(&target, &pasted(41)), OwnText::Mixed, "{text}");
        }
    }

    #[test]
    fn a_folded_paste_counts_only_at_the_right_size_and_is_never_certain() {
        let chip = Chip { text: "[Pasted text #1 +41 lines]".into(), lines: Some(41) };
        let mut target = seen(State::UserTyping, Some(InputRow::Typed));
        target.composer = Some(boxed(&["[Pasted text #1 +41 lines]"], Some(chip)));
        assert_eq!(
            locate(&target, &pasted(41)),
            OwnText::InBox { evidence: "[Pasted text #1 +41 lines]".into(), certain: false }
        );
        assert_eq!(locate(&target, &pasted(40)), OwnText::Nowhere);
        assert_eq!(by_screen(&target, &pasted(40), FRESH), None);
    }

    #[test]
    fn a_signature_above_an_open_box_is_a_proof_also_when_broken_over_rows() {
        let mut target = seen(State::Busy, Some(InputRow::Blank));
        target.outside =
            vec!["❯ report".into(), "  --- nexus-emit-sig 2026-05-11T13:42:01-".into(), "  07:00 a1b2c3 ---".into()];
        assert_eq!(by_screen(&target, &pasted(3), FRESH), Some(Proof { by: ProofBy::Screen, queued: false }));
    }

    #[test]
    fn another_signature_with_the_same_words_is_no_proof() {
        let mut target = seen(State::Idle, Some(InputRow::Blank));
        target.outside = vec!["--- nexus-emit-sig 2026-05-11T13:42:01-07:00 ffffff ---".into()];
        assert_eq!(locate(&target, &pasted(3)), OwnText::Nowhere);
    }

    #[test]
    fn a_new_queue_mark_proves_a_long_message_and_an_old_one_does_not() {
        let mut target = seen(State::Busy, Some(InputRow::Ghost));
        target.verdict.queued = true;
        assert_eq!(by_screen(&target, &pasted(41), FRESH), Some(Proof { by: ProofBy::Screen, queued: true }));
        assert_eq!(by_screen(&target, &pasted(41), Before::default()), None);
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
            let proof = by_screen(&target, &pasted(41), Before::default());
            assert_eq!(proof, proves.then_some(Proof { by: ProofBy::Screen, queued: true }), "{rows:?}");
        }
        // Nor does it prove anything once it is no longer marked as queued, since the end may be missing.
        target.verdict.queued = false;
        assert_eq!(by_screen(&target, &pasted(41), Before::default()), None);
    }

    #[test]
    fn without_an_input_box_nothing_is_proven() {
        let mut target = seen(State::Blocked, None);
        target.composer = None;
        target.outside = vec![signature().trailer()];
        assert_eq!(locate(&target, &pasted(3)), OwnText::Nowhere);
    }

    #[test]
    fn an_unsigned_text_is_ours_only_as_the_whole_of_the_box() {
        let ours = || Pasted::unsigned("please look at the tests".into());
        let check = |ours: &Pasted, rows: &[&str], expected: OwnText| {
            let mut target = seen(State::UserTyping, Some(InputRow::Typed));
            target.composer = Some(boxed(rows, None));
            assert_eq!(locate(&target, ours), expected, "{rows:?}");
        };
        let certain = |evidence: &str| OwnText::InBox { evidence: evidence.into(), certain: true };
        check(&ours(), &["please look at", "the tests"], certain("the tests"));
        check(&ours(), &["please look at the tests, all of them"], OwnText::Mixed);
        check(&ours(), &["half a thought"], OwnText::Nowhere);
        check(&Pasted::unsigned("y".into()), &["y"], certain("y"));
        check(&Pasted::unsigned("y".into()), &["why?"], OwnText::Nowhere);
        check(&Pasted::unsigned("прочитай".into()), &["прочитай"], certain("прочитай"));
    }

    #[test]
    fn the_words_of_an_unsigned_text_prove_nothing_if_they_stood_there_before() {
        let ours = Pasted::unsigned("please look at the tests".into());
        let mut target = seen(State::Busy, Some(InputRow::Blank));
        target.outside = vec!["❯ please look at the tests".into()];
        assert!(by_screen(&target, &ours, FRESH).is_some());
        assert_eq!(by_screen(&target, &ours, Before { was_shown: true, ..FRESH }), None);
        target.verdict.queued = true;
        assert_eq!(by_screen(&target, &ours, Before { queue_was_empty: false, ..Before::look(&target, &ours) }), None);
        assert_eq!(by_screen(&target, &Pasted::unsigned("yes".into()), Before::default()), None);
        // A long one shows only its first lines while it waits.
        let long = Pasted::unsigned("row 1 of a text\nthe longest line of them all".into());
        target.outside = vec!["❯ row 1 of a text".into(), "  … +53 lines".into()];
        target.verdict.input = Some(InputRow::Ghost);
        let queued = Some(Proof { by: ProofBy::Screen, queued: true });
        assert_eq!(by_screen(&target, &long, Before::default()), queued);
        assert_eq!(by_screen(&target, &long, Before::look(&target, &long)), None);
        // Its last words are new all the same.
        let before = Before::look(&target, &long);
        target.verdict.queued = false;
        target.outside.push("  the longest line of them all".into());
        assert!(by_screen(&target, &long, before).is_some());
    }
}
