//! Texts for every rule of every profile: one file an agent.

mod aider;
mod claude;
mod codex;
mod gemini;
mod opencode;
mod qwen;

/// A rule's id, texts of its region that it must match, and near misses that it must not.
pub(crate) type Fingerprint = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The texts of every agent's rules.
pub(crate) fn all() -> impl Iterator<Item = &'static Fingerprint> {
    [claude::TEXTS, codex::TEXTS, gemini::TEXTS, qwen::TEXTS, opencode::TEXTS, aider::TEXTS].into_iter().flatten()
}
