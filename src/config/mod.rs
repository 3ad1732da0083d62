//! The one key table, and how a file becomes checked settings.
//!
//! [`keys`] lists every key; defaults, checks, `nexus.example.yml` and `docs/configuration.md` come from it. [`load`]
//! finds the root and the one file, and makes [`resolved::Settings`]. Files are never merged, and a value that is
//! wrong is an error that names file, line, column and key.

pub mod document;
pub mod error;
pub mod in_force;
pub mod keys;
pub mod live;
pub mod load;
pub mod migrate;
pub mod resolved;
pub mod schema;
pub mod value;

mod checks;
mod judge;
mod loaded;
mod old;
mod stamp;
mod yaml;

pub use yaml::Position;
