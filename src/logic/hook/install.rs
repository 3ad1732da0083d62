//! Puts our hooks into somebody's settings, and takes them out: everything else in the file stays as it is.
//!
//! Which commands are ours is the caller's word (a nexus knows its own state directory). The command of one of ours is
//! brought up to date in its place; what its owner changed beside it (a matcher, a timeout) stays.

use std::collections::BTreeMap;

use super::json::{self, Mistake, Node, Shape};
use super::settings::{HookCommand, HookLine, Hooked};

/// What became of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Our hook was not there and is.
    Added,
    /// It called something else (a program that has moved), or stood there more than once.
    Updated,
    /// It is not there any more.
    Removed,
}

impl Change {
    /// How it is printed.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Removed => "removed",
        }
    }
}

/// A text after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The whole text; equal to the old one if nothing had to change.
    pub text: String,
    /// The events that changed, by name.
    pub changes: Vec<(String, Change)>,
}

/// Says whether a hook of somebody's settings is the caller's.
type IsOurs<'a> = dyn Fn(&HookLine) -> bool + 'a;

/// The text with our hooks for exactly these events. A text of blanks counts as `{}`.
///
/// Errors: it is no JSON object, or `hooks` in it is not what an agent's settings have there.
pub fn install(text: &str, command: &HookCommand, events: &[&Hooked], is_ours: &IsOurs<'_>) -> Result<Edited, Mistake> {
    let mut edit = Edit::begin(text, is_ours)?;
    edit.drop_all_but(events)?;
    for hooked in events {
        edit.put(command, hooked)?;
    }
    Ok(edit.end())
}

/// The text without our hooks, and without what became empty by that.
///
/// Errors: as for [`install`].
pub fn uninstall(text: &str, is_ours: &IsOurs<'_>) -> Result<Edited, Mistake> {
    let mut edit = Edit::begin(text, is_ours)?;
    edit.drop_all_but(&[])?;
    Ok(edit.end())
}

/// Where one of our hooks stands in the list of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    /// Number of the entry.
    entry: usize,
    /// Number of the hook in it.
    hook: usize,
}

/// An edit under way.
struct Edit<'a> {
    /// The text so far.
    text: String,
    /// Which hooks are ours.
    is_ours: &'a IsOurs<'a>,
    /// What has changed so far.
    changes: Vec<(String, Change)>,
}

impl<'a> Edit<'a> {
    /// Begins with a text whose form is fine.
    fn begin(text: &str, is_ours: &'a IsOurs<'a>) -> Result<Self, Mistake> {
        let blank = text.trim_start_matches('\u{feff}').trim().is_empty();
        let text = if blank { "{}\n".to_owned() } else { text.to_owned() };
        let edit = Self { text, is_ours, changes: Vec::new() };
        edit.check()?;
        Ok(edit)
    }

    /// The result.
    fn end(mut self) -> Edited {
        self.changes.sort_by(|a, b| a.0.cmp(&b.0));
        Edited { text: self.text, changes: self.changes }
    }

    /// Reads the text as it is now.
    fn root(&self) -> Result<Node, Mistake> {
        Node::parse(&self.text)
    }

    /// Checks the form of everything that will be edited.
    fn check(&self) -> Result<(), Mistake> {
        let root = self.root()?;
        if !matches!(root.shape, Shape::Object(_)) {
            return Err(self.odd(&root, "settings are an object, { ... }"));
        }
        let Some(hooks) = root.get("hooks") else { return Ok(()) };
        let Shape::Object(events) = &hooks.shape else {
            return Err(self.odd(hooks, "`hooks` is an object, { ... }"));
        };
        match events.iter().find(|event| !matches!(event.value.shape, Shape::Array(_))) {
            Some(event) => Err(self.odd(&event.value, &format!("`hooks.{}` is a list, [ ... ]", event.key))),
            None => Ok(()),
        }
    }

    /// A value that is not what it should be.
    fn odd(&self, node: &Node, what: &str) -> Mistake {
        let before = self.text.get(..node.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Mistake { line, column, what: format!("something else stands here, but {what}") }
    }

    /// Our hooks in the list of an event.
    fn ours(&self, list: &Node) -> Vec<At> {
        let mut found = Vec::new();
        for (entry, node) in list.elements().iter().enumerate() {
            let hooks = node.get("hooks").map(Node::elements).unwrap_or_default();
            for (hook, node) in hooks.iter().enumerate() {
                let command = node.get("command").and_then(|command| command.string(&self.text));
                if command.and_then(|command| HookLine::parse(&command)).is_some_and(|line| (self.is_ours)(&line)) {
                    found.push(At { entry, hook });
                }
            }
        }
        found
    }

    /// Takes ours out of every event that is not among these.
    fn drop_all_but(&mut self, events: &[&Hooked]) -> Result<(), Mistake> {
        let root = self.root()?;
        let Some(Shape::Object(members)) = root.get("hooks").map(|hooks| hooks.shape.clone()) else { return Ok(()) };
        for member in members.iter().filter(|member| !events.iter().any(|hooked| hooked.event == member.key)) {
            if self.keep_first(&member.key, 0)? {
                self.changes.push((member.key.clone(), Change::Removed));
                self.drop_empty(&member.key)?;
            }
        }
        Ok(())
    }

    /// Removes all of ours from an event but the first `keep`. Returns whether there was something to remove.
    fn keep_first(&mut self, event: &str, keep: usize) -> Result<bool, Mistake> {
        let mut has_removed = false;
        loop {
            let root = self.root()?;
            let Some(list) = root.get("hooks").and_then(|hooks| hooks.get(event)) else { return Ok(has_removed) };
            let ours = self.ours(list);
            // From the end, so that the first ones keep their places.
            let Some(at) = ours.last().filter(|_| ours.len() > keep) else { return Ok(has_removed) };
            let Some(hooks) = list.elements().get(at.entry).and_then(|entry| entry.get("hooks")) else {
                return Ok(has_removed);
            };
            self.text = if hooks.elements().len() > 1 {
                json::remove_element(&self.text, hooks, at.hook)
            } else {
                json::remove_element(&self.text, list, at.entry)
            };
            has_removed = true;
        }
    }

    /// Removes an event without entries, then `hooks` without events.
    fn drop_empty(&mut self, event: &str) -> Result<(), Mistake> {
        let root = self.root()?;
        if let Some(hooks) = root.get("hooks")
            && hooks.get(event).is_some_and(|list| list.elements().is_empty())
        {
            self.text = json::remove_member(&self.text, hooks, event);
        }
        let root = self.root()?;
        if root.get("hooks").is_some_and(|hooks| matches!(&hooks.shape, Shape::Object(events) if events.is_empty())) {
            self.text = json::remove_member(&self.text, &root, "hooks");
        }
        Ok(())
    }

    /// Sees to it that an event has our hook once, with this command.
    fn put(&mut self, command: &HookCommand, hooked: &Hooked) -> Result<(), Mistake> {
        let event = &hooked.event;
        let had_more = self.keep_first(event, 1)?;
        let root = self.root()?;
        let list = root.get("hooks").and_then(|hooks| hooks.get(event));
        let first = list.and_then(|list| {
            let at = *self.ours(list).first()?;
            list.elements().get(at.entry)?.get("hooks")?.elements().get(at.hook)?.get("command")
        });
        if let Some(node) = first {
            let line = command.line(event);
            let is_other = node.string(&self.text).is_none_or(|found| found != line);
            if is_other {
                self.text = json::replace(&self.text, node, &line);
            }
            if is_other || had_more {
                self.changes.push((event.clone(), Change::Updated));
            }
            return Ok(());
        }
        let entry = command.entry(hooked);
        self.text = match (root.get("hooks"), list) {
            (_, Some(list)) => json::append(&self.text, list, &entry),
            (Some(hooks), None) => json::insert(&self.text, hooks, event, &[entry]),
            (None, None) => json::insert(&self.text, &root, "hooks", &BTreeMap::from([(event, [entry])])),
        };
        self.changes.push((event.clone(), Change::Added));
        Ok(())
    }
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
