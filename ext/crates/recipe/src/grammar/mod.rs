//! The grammar of a recipe as tables, and the reader that holds a document against them.
//!
//! A shape says what a value may be; the reader walks a document and a shape together
//! and collects every deviation with its path. What the tables accept, the typed model
//! (`crate::model`) takes in without loss: a test makes the largest document that the
//! tables allow and reads it back.

mod check;
mod experiments;
mod inputs;
mod pattern;
mod recipe;
mod runtime;
mod schema;
mod workflow;

pub(crate) use check::check;
#[cfg(test)]
pub(crate) use check::fullest;
pub(crate) use pattern::Pattern;
pub(crate) use recipe::RECIPE;
pub(crate) use schema::schema;

/// What a value may be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Anything.
    Any,
    /// An object with any members.
    Free,
    /// `true` or `false`.
    Bool,
    /// `true`.
    True,
    /// Text of this form, with least and most characters.
    Text(Pattern, usize, usize),
    /// A whole number in this range.
    Integer(i64, i64),
    /// A number.
    Number,
    /// Text, number, boolean or null.
    Scalar,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list.
    List(&'static List),
    /// An object whose values all have one shape.
    Map(&'static Shape),
    /// An object with named members.
    Record(&'static [Field]),
    /// Whatever of these fits; the sentence says what is accepted.
    Either(&'static [Shape], &'static str),
}

/// A list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub of: Shape,
    pub least: usize,
    pub most: usize,
    pub items: Items,
}

/// Whether items may repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Items {
    Free,
    Unique,
}

/// Whether a member must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Must,
    May,
    /// At least one of the members marked so.
    OneOf,
}

/// A member of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub name: &'static str,
    pub need: Need,
    pub shape: Shape,
}

pub(crate) const fn must(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        need: Need::Must,
        shape,
    }
}
pub(crate) const fn may(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        need: Need::May,
        shape,
    }
}
pub(crate) const fn one_of(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        need: Need::OneOf,
        shape,
    }
}

const fn text(pattern: Pattern) -> Shape {
    Shape::Text(pattern, 0, usize::MAX)
}
/// Most rows of a list that has no bound of its own: checks that compare rows stay cheap.
const MANY: usize = 1000;
/// Any text.
const TEXT: Shape = text(Pattern::Any);
/// Text with something in it.
const FILLED: Shape = Shape::Text(Pattern::Any, 1, usize::MAX);
/// A name: letters, digits, `_`, `.` and `-`, beginning with a letter or digit.
const NAME: Shape = text(Pattern::Name);
const SLUG: Shape = text(Pattern::Slug);
const ENV: Shape = text(Pattern::EnvName);
const ABSOLUTE: Shape = text(Pattern::Absolute);
const SHA256: Shape = text(Pattern::Sha256);
const METADATA: Shape = Shape::Free;
const TEXTS: Shape = Shape::List(&List {
    of: TEXT,
    least: 0,
    most: MANY,
    items: Items::Free,
});
const ENVS: Shape = list(&List {
    of: ENV,
    least: 0,
    most: MANY,
    items: Items::Free,
});
const fn list(list: &'static List) -> Shape {
    Shape::List(list)
}

/// `rows!(SHAPE)`: a list of any usual length; `rows!(SHAPE, least, most, Unique)`.
macro_rules! rows {
    ($shape:expr) => {
        $crate::grammar::rows!($shape, 0, $crate::grammar::MANY, Free)
    };
    ($shape:expr, $least:expr, $most:expr, $items:ident) => {{
        const LIST: &$crate::grammar::List = &$crate::grammar::List {
            of: $shape,
            least: $least,
            most: $most,
            items: $crate::grammar::Items::$items,
        };
        $crate::grammar::Shape::List(LIST)
    }};
}
/// `record!{ FIELDS… }`: an object with exactly these members.
macro_rules! record {
    ($($field:expr),* $(,)?) => {{
        const FIELDS: &[$crate::grammar::Field] = &[$($field),*];
        $crate::grammar::Shape::Record(FIELDS)
    }};
}
/// `words!("a", "b")`.
macro_rules! words {
    ($($word:literal),*) => { $crate::grammar::Shape::Word(&[$($word),*]) };
}
pub(crate) use {record, rows, words};
