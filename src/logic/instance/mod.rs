//! Is the watcher alive, and which watcher owns this state directory?
//!
//! [`verdict`] folds the three liveness files, the process check and the lock into one answer; [`holder`] reads what the
//! lock file says of its holder; [`beacon`] judges the heartbeat that instances on other hosts see; [`takeover`] decides
//! whom a successor ends, [`supervise`] what a supervisor does; [`records`] is the text of the small files; [`mod@unit`] that
//! of the systemd unit. All values in, values out: `sys::liveness` and `sys::lock` gather the facts.
//!
//! The lock, not a pid, is the truth about a holder on this host; the beacon is the only witness across hosts. What
//! cannot be told (an unreadable `/proc`, a lock that cannot be tried) never makes a watcher dead.

pub mod beacon;
pub mod holder;
pub mod records;
pub mod supervise;
pub mod takeover;
pub mod unit;
pub mod verdict;
