//! `ng send`: one text of a person or an agent to one pane, by the same gate, actuator and state machine as the watcher's
//! emits. Owns the wait for an idle prompt and `sends.jsonl`. A text is never typed twice.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::audit::{Repeat, Warrant};
use super::drive::{self, Journal, Letter};
use super::look::{self, Aim};
use super::outside::Outside;
use super::tally;
use super::witness::Watch;
use crate::logic::audit::{Cause, Program};
use crate::logic::delivery::gate::{Gate, Hold, Target, judge};
use crate::logic::delivery::machine::{Delivery, Fold};
use crate::logic::delivery::sends::{Event, INTENT, SENDS, Sent, TEXTS};
use crate::logic::delivery::{Outcome, Pasted, Proof, cap};
use crate::logic::emit::{archive, clean};
use crate::logic::ids::{PaneId, PaneKey, WindowName};
use crate::logic::time::Now;
use crate::sys::files::{self, Durability};
use crate::sys::once;
use crate::sys::tmux::Tmux;

/// How often the pane is looked at while something is in the way.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// A text to send.
#[derive(Clone, Debug)]
pub struct Order {
    /// Tells this send from every other: six hex digits.
    pub id: String,
    /// The pane.
    pub pane: PaneId,
    /// The name of its window, for the files that carry it.
    pub window: WindowName,
    /// The text, already cleaned ([`crate::logic::text::visible`]).
    pub text: String,
    /// Who sends, as `machine-input.tsv` has it.
    pub src: String,
    /// Whether Enter is pressed.
    pub enter: bool,
    /// A key under which it is typed at most once, whoever sends and whatever ends in between.
    pub once: Option<String>,
    /// How long an idle prompt is waited for; then a running turn's queue is used, where the agent has one.
    pub wait: Duration,
    /// How long a proof of arrival is looked for.
    pub confirm: Duration,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// In the words of `ng send`.
    pub sent: Sent,
    /// Why, or what was seen.
    pub outcome: Outcome,
    /// The proof, if it arrived.
    pub proof: Option<Proof>,
    /// How often Enter was pressed.
    pub enters: usize,
    /// Where all of a text stands that was too long to paste whole.
    pub whole: Option<PathBuf>,
}

/// Sends. `say` is told once what is waited for.
///
/// Errors: a text that is too long could not be stored; nothing was typed.
pub async fn send<T: Tmux>(out: &Outside<T>, order: &Order, say: &mut dyn FnMut(&str)) -> io::Result<Report> {
    let (body, whole) = body(out, order)?;
    let letter = Letter {
        aim: Aim::Pane(order.pane),
        window: order.window.clone(),
        warrant: warrant(order),
        pasted: Pasted::unsigned(body),
        must_stamp: true,
    };
    let mut journal = SendLog { out, order, has_intent: false };
    let until = out.clock.now().uptime.saturating_add(order.wait);
    let mut said = false;
    let (outcome, delivery) = loop {
        let left = until.saturating_sub(out.clock.now().uptime);
        // What is not to be typed need not wait for anything.
        let left =
            if order.once.as_ref().is_some_and(|key| once::is_used(&out.state, key)) { Duration::ZERO } else { left };
        if let Some(why) = obstacle(&look::at(out, &letter.aim).await).filter(|_| !left.is_zero()) {
            if !std::mem::replace(&mut said, true) {
                say(&why);
            }
            tokio::time::sleep(LOOK_EVERY.min(left)).await;
            continue;
        }
        let delivery = Delivery::new(letter.pasted.clone(), drive::limits(out, order.confirm));
        let delivery = if order.enter { delivery } else { delivery.without_enter() };
        let watch = Watch::new(order.window.clone(), Some(order.pane), None);
        let (outcome, delivery) = drive::drive(out, &letter, delivery, watch, &mut journal).await;
        let left = until.saturating_sub(out.clock.now().uptime);
        match &outcome {
            // Nothing was typed, so that trying again repeats nothing.
            Outcome::Held(hold) if !left.is_zero() && *hold != Hold::Once => {
                if !std::mem::replace(&mut said, true) {
                    say(hold.says());
                }
                tokio::time::sleep(LOOK_EVERY.min(left)).await;
            }
            _ => break (outcome, delivery),
        }
    };
    let sent = Sent::of(&outcome, delivery.has_submitted());
    journal.end(sent, &outcome);
    tally::count(out, &order.window, &outcome, tally::Whose::Person);
    let proof = match outcome {
        Outcome::Received(proof) => Some(proof),
        _ => None,
    };
    Ok(Report { sent, outcome, proof, enters: delivery.enters(), whole })
}

/// Why a text is typed, by whom, and whether it may be again: a send is known by nothing but its key.
fn warrant(order: &Order) -> Warrant {
    let repeat = order.once.clone().map_or(Repeat::Journalled, Repeat::Never);
    Warrant::new(Program::NgSend, &order.src, Cause::Send { id: order.id.clone() }, repeat)
}

/// What is worth waiting for before a text is typed: something in the way, or a running turn.
fn obstacle(target: &Target) -> Option<String> {
    match target {
        // The attempt itself says what is wrong.
        Target::NoTmux(_) | Target::Absent(_) => None,
        Target::CannotTell(why) | Target::Ambiguous(why) => Some(why.clone()),
        Target::Present(seen) => match judge(seen) {
            Gate::Open { queue: false } => None,
            Gate::Open { queue: true } => Some("a turn is running".to_owned()),
            Gate::Held(hold) => Some(hold.says().to_owned()),
        },
    }
}

/// What is pasted: the text, or its beginning with a pointer to the file that has all of it.
fn body<T>(out: &Outside<T>, order: &Order) -> io::Result<(String, Option<PathBuf>)> {
    let settings = out.settings.get();
    if order.text.len() <= settings.paste_max_bytes {
        return Ok((order.text.clone(), None));
    }
    let now = out.clock.now();
    let folder = out.state.at(TEXTS);
    let path = folder.join(archive::file_name(now.at, &order.id, ""));
    files::write_atomic(&path, format!("{}\n", order.text).as_bytes(), Durability::Durable)?;
    let limits = archive::Retention {
        keep: settings.archive_keep,
        max_files: settings.archive_max_files,
        max_per_run: settings.archive_prune_max,
    };
    for name in archive::to_prune(&files::list_names(&folder)?, now.at, limits) {
        files::remove(&folder.join(name))?;
    }
    let pointer = |missing| cap::pointer(missing, &path.display().to_string(), "read that file");
    Ok((cap::fit(&order.text, "", settings.paste_max_bytes, pointer), Some(path)))
}

/// The journal of a send: `sends.jsonl`.
struct SendLog<'a, T> {
    out: &'a Outside<T>,
    order: &'a Order,
    has_intent: bool,
}

impl<T> SendLog<'_, T> {
    /// An event with everything that a row shows.
    fn event(&self, now: &Now, event: &str) -> Event {
        let order = self.order;
        Event {
            window: Some(order.window.to_string()),
            pane: Some(order.pane.to_string()),
            src: Some(order.src.clone()),
            bytes: Some(order.text.len() as u64),
            excerpt: Some(clean::label(&order.text)),
            ..Event::new(now.at, &order.id, event)
        }
    }

    fn end(&self, sent: Sent, outcome: &Outcome) {
        let now = self.out.clock.now();
        let mut event = if self.has_intent {
            Event::new(now.at, &self.order.id, sent.word())
        } else {
            self.event(&now, sent.word())
        };
        match outcome {
            Outcome::Received(proof) => event.witness = Some(proof.by),
            Outcome::Placed => {}
            Outcome::Held(hold) => event.detail = Some(format!("{}: {}", hold.word(), hold.says())),
            Outcome::Absent(why) | Outcome::NoTmux(why) | Outcome::Failed(why) | Outcome::Unknown(why) => {
                event.detail = Some(why.clone());
            }
        }
        if let Err(error) = files::append_lines(&self.out.state.at(SENDS), &event.line(), Durability::Durable) {
            tracing::warn!(%error, "what became of a send could not be recorded");
        }
    }
}

impl<T> Journal for SendLog<'_, T> {
    fn intent(&mut self, _: &PaneKey, _: u32, _: Option<(String, u64)>, now: &Now) -> io::Result<()> {
        let line = self.event(now, INTENT).line();
        files::append_lines(&self.out.state.at(SENDS), &line, Durability::Durable)?;
        self.has_intent = true;
        Ok(())
    }

    fn fold(&mut self, _: &Fold) -> io::Result<()> {
        // Nobody settles a send that was cut off but a person, who sees the box.
        Ok(())
    }

    fn withdraw(&mut self) {
        // The end of the send says that nothing was typed.
    }
}
