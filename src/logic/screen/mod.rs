//! What stands on a pane's screen: rows of text with attributes, the regions they form, and the rules that look at them.
//!
//! Owns the geometry (where the input box, the footer, the dialog are) and the matching. It must not know any agent's
//! wording: words and glyphs come from a profile ([`ScreenRules`]). The rows come from `capture-pane`, plain or with
//! escape sequences; everything here works on text, so that wide glyphs need no column arithmetic.

pub mod composer;
pub mod dialog;
pub mod nearest;
pub mod region;
pub mod rule;
pub mod shape;
pub mod style;
pub mod tail;

pub use composer::{Chip, Composer};
pub use region::Region;
pub use rule::{Layout, Match, Rule, ScreenRules, Template, Votes};
pub use shape::Shape;
pub use style::{Attr, Capture, Cell, Colour, parse_rows};
