//! What an event of an agent's hook means: from its payload to the files that change.
//!
//! Pure: `cli::hook` reads the payload and the few files that [`Prior`] names, and carries the [`Effect`]s out. Every
//! text of a payload is data from an agent; none of it becomes a path.
//!
//! One record a prompt. A permission prompt is announced twice: by `PermissionRequest` at once and by a
//! `Notification` about six seconds later. The record is written at the first of the two. Its fingerprint is made from
//! the tool call's own id, since a fingerprint made from the message alone is the same for every prompt of a window, so
//! that acking one would silence all later ones. The heartbeat remembers the open record (`open_decision`), by which
//! the later notification knows that it has been told. When that tool call ends, the prompt was answered in the pane,
//! and its record is closed. `idle_prompt` keeps the protocol's fingerprint (window, kind, message).

mod audit;
mod decision;
mod effects;
mod failure;
mod heartbeat;
mod install;
mod json;
mod notification;
mod part;
mod payload;
mod place;
mod receipt;
mod settings;

pub use audit::{Audited, Machine, audit};
pub use effects::{Effect, HookContext, Prior, effects_of, is_session_id};
pub use heartbeat::{Heartbeat, Twin, Whose, server_in};
pub use install::{Change, Edited, install, uninstall};
pub use json::Mistake;
pub use notification::{Notification, asked_since};
pub use part::Part;
pub use payload::{Event, Payload};
pub use place::{Above, Place, Standing, of_pane, standing};
pub use receipt::Receipt;
pub use settings::{HookCommand, HookLine, Hooked, Version, commands_of, version_of, wanted};
