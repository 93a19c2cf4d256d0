//! Grammar of a recipe as tables, and the checker that applies it to a document.
//!
//! A shape describes permitted values; the checker walks document and shape together and collects
//! every deviation with its path. The typed model (`crate::model`) represents everything the
//! tables accept without loss: a test builds the largest document that the tables permit and
//! parses it into the model and back.

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

/// Description of the JSON values that are permitted at one place of a recipe.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Any value.
    Any,
    /// An object with any members.
    Free,
    /// `true` or `false`.
    Bool,
    /// `true`, but not `false`.
    True,
    /// Text of this pattern, with minimum and maximum length in characters.
    Text(Pattern, usize, usize),
    /// Whole number, with minimum and maximum.
    Integer(i64, i64),
    /// A number.
    Number,
    /// Text, number, boolean or null.
    Scalar,
    /// Text that is one of these words.
    Word(&'static [&'static str]),
    /// A list with items of one shape, with minimum and maximum number of items.
    List(&'static List),
    /// An object whose values all have one shape.
    Map(&'static Shape),
    /// An object that may only have these members.
    Record(&'static [Field]),
    /// A value of any of these shapes. The text describes them for error messages.
    Either(&'static [Shape], &'static str),
}

/// Description of a permitted list: shape and number of its items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub of: Shape,
    pub least: usize,
    pub most: usize,
    pub items: Items,
}

/// Whether a list may have the same item twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Items {
    Free,
    Unique,
}

/// Whether an object must have a certain member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Must,
    May,
    /// The object must have at least one of the members that are marked `OneOf`.
    OneOf,
}

/// A member that an object may or must have.
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
/// Default maximum number of items of a list; it bounds the cost of checks that compare all items
/// with each other.
const DEFAULT_MAX_ITEMS: usize = 1000;
/// Permits any text.
const TEXT: Shape = text(Pattern::Any);
/// Permits any text that is not empty.
const NON_EMPTY: Shape = Shape::Text(Pattern::Any, 1, usize::MAX);
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
    most: DEFAULT_MAX_ITEMS,
    items: Items::Free,
});
const ENVS: Shape = list(&List {
    of: ENV,
    least: 0,
    most: DEFAULT_MAX_ITEMS,
    items: Items::Free,
});
const fn list(list: &'static List) -> Shape {
    Shape::List(list)
}

/// Permits a list: `rows!(SHAPE)` of up to [`DEFAULT_MAX_ITEMS`] items, `rows!(SHAPE, MIN, MAX,
/// Unique)` of a given number of items.
macro_rules! rows {
    ($shape:expr) => {
        $crate::grammar::rows!($shape, 0, $crate::grammar::DEFAULT_MAX_ITEMS, Free)
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
/// Permits an object with these members and no others: `record![must("a", SHAPE), …]`.
macro_rules! record {
    ($($field:expr),* $(,)?) => {{
        const FIELDS: &[$crate::grammar::Field] = &[$($field),*];
        $crate::grammar::Shape::Record(FIELDS)
    }};
}
/// Permits one of these texts: `words!("a", "b")`.
macro_rules! words {
    ($($word:literal),*) => { $crate::grammar::Shape::Word(&[$($word),*]) };
}
pub(crate) use {record, rows, words};
