//! The one key table, and how a file becomes checked settings.

pub mod resolved;
