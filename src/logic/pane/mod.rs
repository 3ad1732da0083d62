//! What a pane is doing: the vocabulary, and the fusion of all witnesses into one verdict with its evidence.
//!
//! The vocabulary is `protocol-facts` §3.3 (`docs/contracts.md` §3). *Cannot tell* is [`State::Unknown`] or
//! [`State::Empty`]; both cause no action. A screen is read in stages, the same live and offline ([`reader`]);
//! [`judge_screen`] gives its verdict, and [`fuse()`] weighs that against tmux, the process tree and the hooks.

pub mod activity;
pub mod choice;
pub mod classify;
pub mod elsewhere;
pub mod explain;
pub mod fuse;
pub mod history;
pub mod identity;
pub mod label;
pub mod limit_stamp;
pub mod precedence;
pub mod process;
pub mod process_rule;
pub mod profile;
pub mod reader;
pub mod sanity;
pub mod silence;
pub mod steady;
pub mod turn;
pub mod verdict;
pub mod witnesses;

pub use choice::Choice;
pub use classify::{DIALOG_SHAPE, ScreenFacts, VERSION_NOT_SEEN, composer, judge_screen, matches, wanted_style};
pub use explain::{Explanation, explain};
pub use fuse::{HookFacts, LIVE_DESCENDANT, Liveness, PID_GONE, ProcessFacts, fuse, weighs_background, weighs_session};
pub use identity::Unclear;
pub use label::{Grade, Label};
pub use limit_stamp::{LimitStamp, OVER_LIMIT_STAMP, with_limit_stamp};
pub use process_rule::ProcessRule;
pub use profile::{BusyPaste, Hooks, PasteTraits, Profile};
pub use reader::{Reader, Wanted, judge_capture, nothing_to_judge};
pub use verdict::{Auth, Evidence, InputRow, Mode, Overlay, PaneVerdict, State, Witness};
pub use witnesses::WitnessSeen;
